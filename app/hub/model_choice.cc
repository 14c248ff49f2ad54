#include "app/hub/model_choice.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo::hub {
namespace {

constexpr std::string_view kEnding = ".gguf";
constexpr std::size_t kMostNamed = 12;  // in a sentence

// The best for most first: small enough, and hardly worse than the original.
constexpr std::array<std::string_view, 10> kWanted = {"Q4_K_M", "MXFP4",  "Q4_K_S", "Q4_K_XL", "Q4_1",
                                                      "Q4_0",   "IQ4_XS", "Q5_K_M", "Q8_0",    "Q6_K"};

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// "name-00001-of-00003.gguf"
struct Split {
  std::string stem;
  int index = 0, count = 0;
};
std::optional<Split> split_of(std::string_view path) {
  constexpr std::string_view kPattern = "-00001-of-00003.gguf";
  if (path.size() <= kPattern.size()) return std::nullopt;
  const std::string_view end = path.substr(path.size() - kPattern.size());
  if (end[0] != '-' || end.substr(6, 4) != "-of-") return std::nullopt;
  Split split{.stem = std::string(path.substr(0, path.size() - kPattern.size()))};
  const auto number = [](std::string_view digits, int& value) {
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && last == digits.data() + digits.size();
  };
  if (!number(end.substr(1, 5), split.index) || !number(end.substr(10, 5), split.count)) return std::nullopt;
  return split;
}

bool is_beside_a_model(std::string_view path) {
  const std::string name = ascii_lower_case(last_part(path));
  return name.find("mmproj") != std::string::npos || name.find("imatrix") != std::string::npos;
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

// Q4_K_M, IQ3_XXS, TQ1_0, BF16, F16, F32, MXFP4, NVFP4
bool is_type(std::string_view word) {
  for (const std::string_view name : {"BF16", "F16", "FP16", "F32", "MXFP4", "NVFP4", "MXFP4_MOE"})
    if (word == name) return true;
  for (const std::string_view prefix : {"IQ", "TQ", "Q"}) {
    if (!word.starts_with(prefix) || word.size() <= prefix.size()) continue;
    const char digit = word[prefix.size()];
    const bool goes_on = word.size() == prefix.size() + 1 || word[prefix.size() + 1] == '_';
    if (digit >= '1' && digit <= '8' && goes_on) return true;
  }
  return false;
}

}  // namespace

std::string type_in_name(std::string_view path) {
  std::string name = upper_case(last_part(path));
  if (const auto split = split_of(path)) name = upper_case(last_part(split->stem));
  if (name.ends_with(".GGUF")) name.resize(name.size() - kEnding.size());
  std::string type;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find_first_of("-. ", at), name.size());
    if (const std::string word = name.substr(at, end - at); is_type(word)) type = word;
    at = end + 1;
  }
  return type;
}

std::vector<GgufModel> gguf_models(const std::vector<HubFile>& files) {
  std::map<std::string, GgufModel> models;  // by stem
  std::map<std::string, int> counts;
  for (const HubFile& file : files) {
    if (!ascii_lower_case(file.path).ends_with(kEnding) || is_beside_a_model(file.path)) continue;
    const auto split = split_of(file.path);
    const std::string stem = split ? split->stem : file.path;
    GgufModel& model = models[stem];
    if (model.files.empty()) model.path = file.path;  // sorted: the first file comes first
    if (model.type.empty()) model.type = type_in_name(file.path);
    model.bytes += file.bytes;
    model.files.push_back(file);
    counts[stem] = split ? split->count : 1;
  }
  std::vector<GgufModel> sorted;
  for (auto& [stem, model] : models) {
    model.is_whole = static_cast<int>(model.files.size()) == counts[stem];
    sorted.push_back(std::move(model));
  }
  std::ranges::stable_sort(sorted, {}, &GgufModel::bytes);
  return sorted;
}

Result<GgufModel> choose_model(const HubRepository& repository, const std::string& wanted) {
  const std::vector<GgufModel> models = gguf_models(repository.files);
  const std::string name = "'" + escape_for_message(repository.name) + "'";
  if (models.empty())
    return Error{ErrorCode::kNotFound,
                 name + " has no GGUF file; search for another repository of the model"};
  const auto whole = [&](const GgufModel& model) -> Result<GgufModel> {
    if (model.is_whole) return model;
    return Error{ErrorCode::kNotFound,
                 name + " lacks some files of '" + escape_for_message(model.path) + "'"};
  };
  if (wanted.empty()) {
    for (const std::string_view type : kWanted)
      for (const GgufModel& model : models)
        if (model.type == type || model.type == "UD-" + std::string(type)) return whole(model);
    return whole(models[models.size() / 2]);
  }
  std::vector<const GgufModel*> holding;
  for (const GgufModel& model : models) {
    if (model.path == wanted || last_part(model.path) == wanted) return whole(model);
    if (ascii_lower_case(model.path).find(ascii_lower_case(wanted)) != std::string::npos)
      holding.push_back(&model);
  }
  for (const GgufModel* const model : holding)  // Q4_K is no Q4_K_M
    if (model->type == upper_case(wanted)) return whole(*model);
  if (holding.size() == 1) return whole(*holding.front());
  std::string list;
  for (std::size_t i = 0; i < models.size() && i < kMostNamed; ++i)
    list += (i == 0 ? "" : ", ") + escape_for_message(models[i].path);
  if (models.size() > kMostNamed) list += ", …";
  return Error{ErrorCode::kNotFound, name + " has " + (holding.empty() ? "no file" : "several files") +
                                         " called '" + escape_for_message(wanted) + "'; it has " + list};
}

std::vector<HubFile> folder_files(const std::vector<HubFile>& files) {
  const auto is_wanted = [](const HubFile& file) {
    if (file.path.find('/') != std::string::npos) return false;
    const std::string name = ascii_lower_case(file.path);
    return name.ends_with(".safetensors") || name.ends_with(".json") || name.ends_with(".jinja") ||
           name == "tokenizer.model" || name == "merges.txt" || name == "vocab.txt";
  };
  std::vector<HubFile> wanted;
  std::ranges::copy_if(files, std::back_inserter(wanted), is_wanted);
  const auto has = [&](std::string_view ending) {
    return std::ranges::any_of(wanted, [&](const HubFile& file) { return file.path.ends_with(ending); });
  };
  if (!has("config.json") || !has(".safetensors")) wanted.clear();
  return wanted;
}

}  // namespace octavo::hub
