#include "app/window/memory/memory_bar.h"

#include <unistd.h>

#include <cmath>
#include <string>

#include "app/window/models/model_title.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/shapes.h"

namespace octavo::app {
namespace {

constexpr std::uint64_t kBytesOfF16 = 2;
constexpr std::uint64_t kBlockSize = 16;

std::string percent_of(std::int64_t part, std::int64_t whole) {
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return (percent > 0 && percent < 1 ? std::string("<1") : std::to_string(std::lround(percent))) + " %";
}

std::string gigabytes(std::int64_t bytes) {
  return std::to_string(std::lround(static_cast<double>(bytes) / 1e9)) + " GB";
}

}  // namespace

ui::MemoryBar memory_bar(const EngineDescription& description, std::int64_t total_bytes) {
  ui::MemoryBar bar{.name = model_title(description.model),
                    .weight_bytes = description.weight_bytes,
                    .kv_bytes = description.kv_bytes(),
                    .working_bytes = description.working_bytes,
                    .total_bytes = total_bytes,
                    .state_bytes = description.bytes_per_state * description.num_states};
  if (total_bytes <= 0) return bar;
  bar.sentence = "weights " + bytes_text(bar.weight_bytes) + ", " +
                 percent_of(bar.weight_bytes, total_bytes) + " · KV pool " + bytes_text(bar.kv_bytes) + ", " +
                 percent_of(bar.kv_bytes, total_bytes);
  if (bar.state_bytes > 0) {
    bar.sentence +=
        " · states " + bytes_text(bar.state_bytes) + ", " + percent_of(bar.state_bytes, total_bytes);
  }
  if (bar.working_bytes > 0) {
    bar.sentence += " · working memory " + bytes_text(bar.working_bytes) + ", " +
                    percent_of(bar.working_bytes, total_bytes);
  }
  bar.sentence += " of " + bytes_text(total_bytes);
  bar.short_sentence = "weights " + percent_of(bar.weight_bytes, total_bytes) + " · KV " +
                       percent_of(bar.kv_bytes, total_bytes) + " of " + bytes_text(total_bytes);
  return bar;
}

ui::MemoryBar shape_memory_bar(std::string_view shape, std::int64_t total_bytes) {
  const model::NamedShape* known = model::find_shape(shape);
  if (known == nullptr || total_bytes <= 0) return {};
  const auto weights = static_cast<std::uint64_t>(known->num_parameters) * kBytesOfF16;
  const auto capacity = model::kv_capacity(known->kv(), kBytesOfF16, kBlockSize,
                                           static_cast<std::uint64_t>(total_bytes), weights);
  if (!capacity) return {};
  ui::MemoryBar bar{.name = std::string(shape),
                    .weight_bytes = static_cast<std::int64_t>(weights),
                    .kv_bytes = static_cast<std::int64_t>(capacity->bytes),
                    .total_bytes = total_bytes};
  bar.sentence = std::string(shape) + " in f16 on " + gigabytes(total_bytes) + ": weights " +
                 gigabytes(bar.weight_bytes) + ", " + percent_of(bar.weight_bytes, total_bytes) +
                 "; at most " + with_thousands(capacity->num_tokens) +
                 " tokens of keys and values next to them";
  bar.short_sentence = "weights " + gigabytes(bar.weight_bytes) + ", " +
                       percent_of(bar.weight_bytes, total_bytes) + " of " + gigabytes(total_bytes);
  return bar;
}

std::int64_t physical_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::int64_t>(pages) * page : 0;
}

}  // namespace octavo::app
