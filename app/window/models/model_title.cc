#include "app/window/models/model_title.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "app/remote/remote_engine.h"
#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == '-' || c == '_' || c == '.' || c == ' '; }

// "q4_1", "q4_k_m", "iq2_xs", "bf16": what quantisers put at the end of names.
bool is_quantisation(std::string_view word) {
  const std::string lower = ascii_lower_case(word);
  constexpr std::array<std::string_view, 6> kPlain = {"f16", "f32", "bf16", "fp16", "fp32", "mxfp4"};
  if (std::find(kPlain.begin(), kPlain.end(), lower) != kPlain.end()) return true;
  std::string_view rest = lower;
  if (rest.starts_with("i")) rest.remove_prefix(1);
  if (rest.size() < 2 || rest[0] != 'q' || !is_digit(rest[1])) return false;
  constexpr std::array<std::string_view, 13> kAfter = {"",      "_0", "_1", "_k",  "_k_s", "_k_m", "_k_l",
                                                       "_k_xl", "_s", "_m", "_xs", "_xxs", "_nl"};
  return std::find(kAfter.begin(), kAfter.end(), rest.substr(2)) != kAfter.end();
}

// "-00001-of-00003"
std::string_view without_part(std::string_view stem) {
  constexpr std::size_t kLength = 15;
  if (stem.size() < kLength) return stem;
  const std::string_view part = stem.substr(stem.size() - kLength);
  const bool has_digits = std::all_of(part.begin() + 1, part.begin() + 6, is_digit) &&
                          std::all_of(part.begin() + 10, part.end(), is_digit);
  return part[0] == '-' && part.substr(6, 4) == "-of-" && has_digits ? stem.substr(0, stem.size() - kLength)
                                                                     : stem;
}

// The longest end after a separator that is a quantisation: they hold separators themselves.
std::string_view without_quantisation(std::string_view stem) {
  for (std::size_t at = 1; at + 1 < stem.size(); ++at) {
    if (is_separator(stem[at]) && is_quantisation(stem.substr(at + 1))) return stem.substr(0, at);
  }
  return stem;
}

bool says_nothing(const std::string& title) {
  constexpr std::array<std::string_view, 5> kUsual = {"model", "ggml model", "pytorch model", "consolidated",
                                                      "weights"};
  const std::string lower = ascii_lower_case(title);
  if (std::find(kUsual.begin(), kUsual.end(), lower) != kUsual.end() || lower.starts_with("sha256"))
    return true;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
  };
  if (std::none_of(lower.begin(), lower.end(), is_letter)) return true;
  const auto is_hexadecimal = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  return lower.size() >= 16 && std::all_of(lower.begin(), lower.end(), is_hexadecimal);
}

}  // namespace

std::string model_title(std::string_view path, std::string_view name_in_file) {
  if (is_remote_model(path)) {  // what stands behind the address is its name
    const std::string_view name = path.substr(std::min(path.size(), path.find('#') + 1));
    return sanitise_utf8(name.empty() ? path : name);
  }
  const std::string stem = std::filesystem::path(path).stem().string();
  std::string title(without_quantisation(without_part(stem)));
  std::replace_if(
      title.begin(), title.end(), [](char c) { return c == '-' || c == '_'; }, ' ');
  if (says_nothing(title)) title = name_in_file.empty() ? stem : std::string(name_in_file);
  return sanitise_utf8(title);
}

std::string model_title(const ModelDescription& model) { return model_title(model.path, model.name); }

}  // namespace octavo::app
