// What one rendering of a template may spend. A template is a program that came with a model file: however it
// loops, repeats or nests, it ends soon and small. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "engine/base/result.h"

namespace octavo::tokenizer::jinja {

// What is wrong, without the place: the interpreter adds the line.
inline Error failure(std::string what) { return {ErrorCode::kInvalidArgument, std::move(what)}; }
inline Error over_limit(std::string what) { return {ErrorCode::kUnsupported, std::move(what)}; }

class Budget {
 public:
#if defined(OCTAVO_TEMPLATE_OPERATIONS)  // when fuzzing
  static constexpr std::int64_t kMaxOperations = OCTAVO_TEMPLATE_OPERATIONS;
#else
  static constexpr std::int64_t kMaxOperations = 5'000'000;
#endif
  static constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20;  // of any one text, the output included
  static constexpr std::size_t kBytesPerOperation = 64;
  static constexpr std::size_t kOperationsPerItem = 4;
  static constexpr int kMaxValueDepth = 100;  // lists in lists

  Result<void> spend(std::size_t operations) {
    if (operations > static_cast<std::size_t>(left_)) {
      left_ = 0;
      return over_limit("the template runs more than 5,000,000 operations");
    }
    left_ -= static_cast<std::int64_t>(operations);
    return {};
  }

  // Before a list of that many items is made: they take more memory than a step of a loop.
  Result<void> spend_items(std::size_t count) {
    return spend(count > kMaxOperations / kOperationsPerItem ? kMaxOperations + 1
                                                             : kOperationsPerItem * count);
  }

  // Before a text of that size is made.
  Result<void> spend_text(std::size_t bytes) {
    if (bytes > kMaxTextBytes) return over_limit("the template builds a string of more than 16 MiB");
    return spend(1 + bytes / kBytesPerOperation);
  }

 private:
  std::int64_t left_ = kMaxOperations;
};

}  // namespace octavo::tokenizer::jinja
