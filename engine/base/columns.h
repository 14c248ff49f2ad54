// Texts in columns: characters of UTF-8, each as wide as any. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octavo {

std::size_t count_columns(std::string_view text);

// With blanks behind it, or before it, so that it takes at least so many.
std::string pad_to_columns(std::string text, std::size_t columns, bool to_right = false);

// The text, or its beginning and an ellipsis, so that it takes at most so many.
std::string cut_to_columns(std::string_view text, std::size_t columns);

}  // namespace octavo
