// M4: weights that are no numbers. They load, and the requests whose numbers they reach fail.
#include <limits>

#include "tests/hostile/hostile_files.h"

namespace octavo::test {
namespace {

void fill_floats(ModelDraft& draft, const std::string& name, float value, std::size_t first,
                 std::size_t count) {
  std::vector<std::byte>& bytes = draft.tensor(name).bytes;
  for (std::size_t i = first; i < first + count && (i + 1) * 4 <= bytes.size(); ++i)
    std::memcpy(&bytes[i * 4], &value, 4);
}

// The scale of every block of a type whose blocks begin with one in float16.
void fill_scales(ModelDraft& draft, const std::string& name, std::size_t block_bytes, std::uint16_t half) {
  std::vector<std::byte>& bytes = draft.tensor(name).bytes;
  for (std::size_t at = 0; at + block_bytes <= bytes.size(); at += block_bytes)
    std::memcpy(&bytes[at], &half, 2);
}

}  // namespace

void add_weight_files(HostileFiles& files) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max() / 8;
  const auto add = [&](const std::string& name, std::function<void(ModelDraft&)> change,
                       TinyDraftOptions options = {}) {
    files.push_back(changed("weights/" + name, "M4", "no finite probability", std::move(change),
                            Refused::kAnswering, options));
  };
  for (const std::string name :
       {"token_embd", "blk.0.attn_norm", "blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v", "blk.0.attn_output",
        "blk.0.ffn_norm", "blk.0.ffn_gate", "blk.0.ffn_up", "blk.0.ffn_down", "output_norm"}) {
    add("nan-in-" + name, [=](ModelDraft& d) { fill_floats(d, name + ".weight", kNan, 0, kAll); });
  }
  add("one-nan-in-output_norm", [=](ModelDraft& d) { fill_floats(d, "output_norm.weight", kNan, 17, 1); });
  add("one-nan-in-attn_q", [=](ModelDraft& d) { fill_floats(d, "blk.0.attn_q.weight", kNan, 100, 1); });
  add("one-nan-in-ffn_down", [=](ModelDraft& d) { fill_floats(d, "blk.0.ffn_down.weight", kNan, 100, 1); });
  add("infinity-in-output_norm",
      [=](ModelDraft& d) { fill_floats(d, "output_norm.weight", kInfinity, 0, kAll); });
  add("infinity-in-token_embd",
      [=](ModelDraft& d) { fill_floats(d, "token_embd.weight", kInfinity, 0, kAll); });
  add("products-overflow", [=](ModelDraft& d) { fill_floats(d, "output_norm.weight", 3e38f, 0, kAll); });
  add("nan-in-a-bias", [=](ModelDraft& d) {
    d.add_tensor("blk.0.attn_q.bias", 0, {64}, std::vector<std::byte>(256));
    fill_floats(d, "blk.0.attn_q.bias", kNan, 0, kAll);
  });
  add("nan-in-the-output-head", [=](ModelDraft& d) { fill_floats(d, "output.weight", kNan, 64 * 40, 64); },
      {.own_output = true});
  for (const auto& [name, type, block_bytes] :
       std::vector<std::tuple<std::string, TensorType, std::size_t>>{{"q4_0", TensorType::kQ4_0, 18},
                                                                     {"q4_1", TensorType::kQ4_1, 20},
                                                                     {"q5_0", TensorType::kQ5_0, 22},
                                                                     {"q8_0", TensorType::kQ8_0, 34},
                                                                     {"iq4_nl", TensorType::kIQ4_NL, 18}}) {
    for (const std::string tensor : {"token_embd.weight", "blk.0.attn_v.weight", "blk.0.ffn_up.weight"}) {
      add("nan-scales-of-" + name + "-in-" + tensor,
          [tensor, size = block_bytes](ModelDraft& d) { fill_scales(d, tensor, size, 0x7e00); },
          {.weight_type = type});
    }
    add("infinite-scales-of-" + name,
        [size = block_bytes](ModelDraft& d) { fill_scales(d, "blk.0.ffn_down.weight", size, 0x7c00); },
        {.weight_type = type});
  }
  // Its scale has no infinity: exponent 255 times 12 is one.
  add("infinite-scales-of-mxfp4", [](ModelDraft& d) { fill_scales(d, "blk.0.ffn_down.weight", 17, 0x77ff); },
      {.weight_type = TensorType::kMXFP4});
  for (const float scale : {kNan, kInfinity}) {
    add("second-scale-of-nvfp4-" + std::string(std::isnan(scale) ? "nan" : "infinite"),
        [scale](ModelDraft& d) { fill_floats(d, "blk.0.ffn_down.scale", scale, 0, kAll); },
        {.weight_type = TensorType::kNVFP4});
  }
  add("nan-scales-of-iq3_s", [](ModelDraft& d) { fill_scales(d, "blk.0.ffn_down.weight", 110, 0x7e00); },
      {.weight_type = TensorType::kIQ3_S, .width = 256, .hidden = 256});
}

}  // namespace octavo::test
