#include "app/window/memory_export.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

using Json = nlohmann::ordered_json;

const char* state_name(BlockState state) {
  switch (state) {
    case BlockState::kFree: return "free";
    case BlockState::kCached: return "cached";
    case BlockState::kUsed: return "used";
  }
  return "";
}

const char* state_name(SequenceState state) {
  switch (state) {
    case SequenceState::kWaiting: return "waiting";
    case SequenceState::kRunning: return "running";
    case SequenceState::kSwapped: return "swapped";
  }
  return "";
}

Json table_json(const std::vector<BlockId>& table) {
  Json blocks = Json::array();
  for (const BlockId block : table) blocks.push_back(block.value);
  return blocks;
}

Json figures_json(const KvFigures& figures) {
  return {{"used_blocks", figures.used_blocks},
          {"cached_blocks", figures.cached_blocks},
          {"free_blocks", figures.free_blocks},
          {"logical_blocks", figures.logical_blocks},
          {"sharing_ratio", figures.sharing_ratio},
          {"saved_bytes", figures.saved_bytes},
          {"internal_fragmentation", figures.internal_fragmentation},
          {"unfilled_slots", figures.unfilled_slots},
          {"reserved_ahead_slots", figures.reserved_ahead_slots},
          {"host_used_blocks", figures.host_used_blocks}};
}

// ---- PNG (ISO/IEC 15948): one IDAT of stored deflate blocks ----

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xff);
}

std::uint32_t crc32(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = 0xffff'ffffu;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t kModulus = 65'521;
  std::uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % kModulus;
    b = (b + a) % kModulus;
  }
  return (b << 16) | a;
}

void put_chunk(std::string& out, std::string_view kind, std::string_view data) {
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  std::string body(kind);
  body += data;
  out += body;
  put_u32(out, crc32(body));
}

std::string stored_zlib(std::string_view bytes) {
  constexpr std::size_t kMostStored = 65'535;
  std::string out = "\x78\x01";
  for (std::size_t at = 0; at < bytes.size(); at += kMostStored) {
    const std::string_view part = bytes.substr(at, kMostStored);
    const auto length = static_cast<std::uint32_t>(part.size());
    out += static_cast<char>(at + part.size() == bytes.size() ? 1 : 0);
    for (const std::uint32_t value : {length, ~length}) {
      out += static_cast<char>(value & 0xff);
      out += static_cast<char>((value >> 8) & 0xff);
    }
    out += part;
  }
  put_u32(out, adler32(bytes));
  return out;
}

}  // namespace

std::string memory_json(const ui::InspectorState& state) {
  Json json = {{"source", state.pool.name},
               {"step", state.cursor.step},
               {"time_us", state.cursor.time_us},
               {"block_size", state.pool.block_size},
               {"num_blocks", state.pool.num_blocks},
               {"num_host_blocks", state.pool.num_host_blocks},
               {"bytes_per_block", state.pool.bytes_per_block}};
  if (state.snapshot == nullptr) return json.dump(1) + "\n";
  json["figures"] = figures_json(state.snapshot->figures);
  Json& sequences = json["sequences"] = Json::array();
  for (std::size_t i = 0; i < state.snapshot->sequences.size() && i < state.sequences.size(); ++i) {
    const SequenceSnapshot& sequence = state.snapshot->sequences[i];
    sequences.push_back({{"sequence", sequence.sequence_id.value},
                         {"label", state.sequences[i].label},
                         {"state", state_name(sequence.state)},
                         {"num_computed_tokens", sequence.num_computed_tokens},
                         {"block_table", table_json(sequence.block_table)}});
  }
  Json& blocks = json["blocks"] = Json::array();
  for (std::size_t i = 0; i < state.snapshot->blocks.size(); ++i) {
    const BlockSnapshot& block = state.snapshot->blocks[i];
    if (block.state == BlockState::kFree) continue;
    blocks.push_back({{"block", i},
                      {"state", state_name(block.state)},
                      {"references", block.ref_count},
                      {"filled", block.filled},
                      {"parent", block.parent},
                      {"findable", block.findable}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string steps_csv(const ui::InspectorTimeline& timeline) {
  std::string text =
      "step,begin_us,prefill_tokens,decode_tokens,running,waiting,swapped_groups,used_blocks,cached_blocks,"
      "free_blocks,host_used_blocks,logical_blocks,unfilled_slots,preempted,block_copies,swapped_out,swapped_"
      "in,"
      "schedule_us,execute_us,commit_us\n";
  for (const ui::TimelineStep& step : timeline.steps) {
    const StepRecord& r = step.record;
    for (const std::int64_t value :
         {r.step, r.begin_us, std::int64_t{r.num_prefill_tokens}, std::int64_t{r.num_decode_tokens},
          std::int64_t{r.num_running}, std::int64_t{r.num_waiting}, std::int64_t{r.num_swapped_groups},
          std::int64_t{r.used_blocks}, std::int64_t{r.cached_blocks}, std::int64_t{r.free_blocks},
          std::int64_t{r.host_used_blocks}, std::int64_t{r.logical_blocks}, std::int64_t{r.unfilled_slots},
          std::int64_t{r.num_preempted}, std::int64_t{r.num_block_copies}, std::int64_t{r.num_swapped_out},
          std::int64_t{r.num_swapped_in}, r.schedule_us, r.execute_us}) {
      text += std::to_string(value) + ",";
    }
    text += std::to_string(r.commit_us) + "\n";
  }
  return text;
}

std::string png_bytes(const Picture& picture) {
  const auto width = static_cast<std::size_t>(picture.width),
             height = static_cast<std::size_t>(picture.height);
  std::string rows;
  rows.reserve(height * (3 * width + 1));
  for (std::size_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    const auto* row = reinterpret_cast<const char*>(picture.pixels.data()) + y * 3 * width;
    rows.append(row, 3 * width);
  }
  std::string header;
  put_u32(header, static_cast<std::uint32_t>(picture.width));
  put_u32(header, static_cast<std::uint32_t>(picture.height));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits of red, green, blue
  std::string out = "\x89PNG\r\n\x1a\n";
  put_chunk(out, "IHDR", header);
  put_chunk(out, "IDAT", stored_zlib(rows));
  put_chunk(out, "IEND", {});
  return out;
}

Result<void> write_export(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return Error{ErrorCode::kInvalidArgument,
               "the file " + escape_for_message(path.string()) +
                   " could not be written: make room there, or make it writable"};
}

}  // namespace octavo::app
