// Tensors that are missing, misshapen, or of types that no kernel reads (S6 for GGUF, retired types), and
// rope tables.
#include <limits>

#include "tests/hostile/hostile_files.h"

namespace octavo::test {

void add_tensor_files(HostileFiles& files) {
  const auto add = [&](const std::string& name, const std::string& sentence,
                       std::function<void(ModelDraft&)> change) {
    files.push_back(changed("tensors/" + name, "S6", sentence, std::move(change)));
  };
  const std::vector<std::string> names = {
      "token_embd.weight",   "blk.0.attn_norm.weight",   "blk.0.attn_q.weight",   "blk.0.attn_k.weight",
      "blk.0.attn_v.weight", "blk.0.attn_output.weight", "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight",
      "blk.0.ffn_up.weight", "blk.0.ffn_down.weight",    "output_norm.weight"};
  for (const std::string& name : names) {
    add("missing-" + name, name, [=](ModelDraft& d) { d.remove_tensor(name); });
    add("misshapen-" + name, name, [=](ModelDraft& d) {
      d.set_tensor(name, 0, {32, 3}, std::vector<std::byte>(32 * 3 * 4));
    });
  }
  for (const std::string name : {"blk.0.attn_q.scale", "blk.0.attn_norm.bias", "blk.1.attn_norm.weight",
                                 "blk.0.ffn_gate_exps.weight", "output_norm.bias", "position_embd.weight"}) {
    add("unused-" + name, "tensor \"" + name + "\" is not used",
        [=](ModelDraft& d) { d.add_tensor(name, 0, {64}, std::vector<std::byte>(256)); });
  }
  add("unused-with-a-name-for-terminals", R"(tensor "a\x0ab\x1b[2J" is not used)",
      [](ModelDraft& d) { d.add_tensor("a\nb\x1b[2J", 0, {1}, std::vector<std::byte>(4)); });
  add("turned", "blk.0.ffn_down.weight", [](ModelDraft& d) {
    std::swap(d.tensor("blk.0.ffn_down.weight").dimensions[0],
              d.tensor("blk.0.ffn_down.weight").dimensions[1]);
  });
  add("of-three-dimensions", "blk.0.attn_q.weight", [](ModelDraft& d) {
    d.tensor("blk.0.attn_q.weight").dimensions = {64, 32, 2};
  });
  add("of-one-dimension", "blk.0.attn_q.weight",
      [](ModelDraft& d) { d.tensor("blk.0.attn_q.weight").dimensions = {64 * 64}; });
  add("renamed-with-upper-case", "blk.0.attn_q.weight",
      [](ModelDraft& d) { d.tensor("blk.0.attn_q.weight").name = "BLK.0.attn_q.weight"; });
  add("renamed-with-a-zero-byte", "blk.0.attn_q.weight",
      [](ModelDraft& d) { d.tensor("blk.0.attn_q.weight").name += std::string(1, '\0'); });
  add("output-misshapen", "output.weight", [](ModelDraft& d) {
    d.add_tensor("output.weight", 0, {64, 2}, std::vector<std::byte>(512));
  });
  add("bias-misshapen", "blk.0.attn_q.bias",
      [](ModelDraft& d) { d.add_tensor("blk.0.attn_q.bias", 0, {65}, std::vector<std::byte>(260)); });
  const auto of_type = [&](const std::string& what, std::uint32_t type, std::size_t block,
                           std::size_t block_bytes) {
    add(what + "-" + std::to_string(type), what == "unknown-type" ? "type number" : "has type",
        [=](ModelDraft& d) {
          d.set_tensor("blk.0.attn_q.weight", type, {64, 64},
                       std::vector<std::byte>(64 * 64 / block * block_bytes));
        });
  };
  for (const std::uint32_t retired : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 99u, 0x7fffffffu, 0xffffffffu})
    of_type("unknown-type", retired, 1, 4);
  of_type("type-without-a-kernel", 24, 1, 1);
  of_type("type-without-a-kernel", 25, 1, 2);
  of_type("type-without-a-kernel", 26, 1, 4);
  of_type("type-without-a-kernel", 27, 1, 8);
  of_type("type-without-a-kernel", 28, 1, 8);
  add("second-scale-beside-another-type", "blk.0.attn_q.scale",
      [](ModelDraft& d) { d.add_tensor("blk.0.attn_q.scale", 0, {1}, std::vector<std::byte>(4)); });
  add("nvfp4-with-two-second-scales", "tensor \"blk.0.attn_q.scale\" has the shape 2", [](ModelDraft& d) {
    d.set_tensor("blk.0.attn_q.weight", 40, {64, 64}, std::vector<std::byte>(36 * 64));
    d.add_tensor("blk.0.attn_q.scale", 0, {2}, std::vector<std::byte>(8));
  });
  for (const float factor :
       {0.0f, -1.0f, 1e9f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    add("rope-factor-" + std::to_string(factor), "rope_freqs.weight", [=](ModelDraft& d) {
      ByteWriter factors;
      for (int i = 0; i < 8; ++i) factors.number(i == 3 ? factor : 1.0f);
      d.add_tensor("rope_freqs.weight", 0, {8}, factors.bytes());
    });
  }
  add("rope-factors-too-few", "rope_freqs.weight",
      [](ModelDraft& d) { d.add_tensor("rope_freqs.weight", 0, {7}, std::vector<std::byte>(28)); });
}

}  // namespace octavo::test
