#include "engine/model/hugging_face/families.h"

#include <algorithm>
#include <vector>

namespace octavo::model {
namespace {

std::vector<const Family*> all_families() {
  std::vector<const Family*> all;
  for (const auto& some : {plain_families(), gemma_families(), expert_families(), recurrent_families()}) {
    for (const Family& family : some) all.push_back(&family);
  }
  std::ranges::sort(all, {}, [](const Family* family) { return family->model_type; });
  return all;
}

}  // namespace

const Family* find_family(std::string_view model_type) {
  for (const Family* family : all_families()) {
    if (family->model_type == model_type) return family;
  }
  return nullptr;
}

std::string supported_families() {
  const std::vector<const Family*> all = all_families();
  std::string text;
  for (const Family* family : all) {
    if (!text.empty()) text += family == all.back() ? " and " : ", ";
    text += family->model_type;
  }
  return text;
}

}  // namespace octavo::model
