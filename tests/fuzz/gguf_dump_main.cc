// For gguf_differential.py: makes files, and says what Octavo reads in them.
//   octavo_gguf_dump make COUNT SEED FILE     COUNT mutated files, one after the other, each behind its
//   length (32 bits) octavo_gguf_dump read FILE                one line of JSON for each
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/model/gguf_header.h"
#include "tests/fuzz/gguf_mutation.h"

namespace octavo::fuzz {
namespace {

using Json = nlohmann::json;

std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// One value as a text that both sides can make, whatever its type; empty: not of a type that is compared.
std::string fingerprint(const model::GgufHeader& header, std::string_view key) {
  if (const auto text = header.find<std::string_view>(key)) return "s" + hexadecimal(fnv1a(**text));
  if (const auto flag = header.find<bool>(key)) return **flag ? "b1" : "b0";
  if (const auto number = header.find<std::uint64_t>(key)) return "i" + std::to_string(**number);
  if (const auto number = header.find<std::int32_t>(key)) return "i" + std::to_string(**number);
  if (const auto number = header.find<float>(key)) {
    std::uint32_t bits;
    std::memcpy(&bits, &**number, sizeof bits);
    return **number == **number ? "f" + hexadecimal(bits) : "fnan";
  }
  if (const auto texts = header.find<std::vector<std::string_view>>(key)) {
    std::uint64_t hash = fnv1a("");
    for (const std::string_view text : **texts)
      hash = fnv1a(text, fnv1a(std::to_string(text.size()) + ":", hash));
    return "S" + hexadecimal(hash);
  }
  if (const auto numbers = header.find<std::vector<std::int32_t>>(key)) {
    std::uint64_t hash = fnv1a("");
    for (const std::int32_t number : **numbers) hash = fnv1a(std::to_string(number) + ",", hash);
    return "I" + hexadecimal(hash);
  }
  return {};
}

std::string hex_name(std::string_view name) {
  std::string text;
  for (const char c : name) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += digits;
  }
  return text;
}

Json describe(std::span<const std::byte> bytes) {
  const auto header = model::GgufHeader::parse(model::MemorySource(bytes), "file");
  if (!header) return {{"error", header.error().message}};
  Json keys = Json::object(), tensors = Json::array();
  for (std::size_t i = 0; i < header->num_keys(); ++i)
    keys[hex_name(header->key_at(i))] = fingerprint(*header, header->key_at(i));
  for (const model::GgufTensor& tensor : header->tensors()) {
    const std::vector<std::int64_t> shape(tensor.dimensions.begin(),
                                          tensor.dimensions.begin() + tensor.num_dimensions);
    tensors.push_back(
        {hex_name(tensor.name), tensor.type_number, shape, tensor.byte_offset, tensor.num_bytes});
  }
  return {{"keys", keys}, {"tensors", tensors}};
}

int make(std::size_t count, std::uint64_t seed, const char* path) {
  std::ofstream out(path, std::ios::binary);
  Random random(seed);
  std::vector<Bytes> pool = gguf_seeds();
  const std::vector<Bytes> models = model_seeds();
  pool.insert(pool.end(), models.begin(), models.end());
  for (std::size_t i = 0; i < count; ++i) {
    Bytes input = pool[random.below(pool.size())];
    mutate_gguf(input, 16'384, random, mutate_bytes);
    const auto size = static_cast<std::uint32_t>(input.size());
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out.write(reinterpret_cast<const char*>(input.data()), size);
  }
  return out ? 0 : 1;
}

int read(const char* path) {
  std::ifstream in(path, std::ios::binary);
  for (std::uint32_t size = 0; in.read(reinterpret_cast<char*>(&size), sizeof size);) {
    std::vector<std::byte> bytes(size);
    in.read(reinterpret_cast<char*>(bytes.data()), size);
    std::printf("%s\n", describe(bytes).dump().c_str());
  }
  return 0;
}

}  // namespace
}  // namespace octavo::fuzz

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "make") == 0)
    return octavo::fuzz::make(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                              argv[4]);
  if (argc == 3 && std::strcmp(argv[1], "read") == 0) return octavo::fuzz::read(argv[2]);
  std::fputs("usage: octavo_gguf_dump make COUNT SEED FILE | read FILE\n", stderr);
  return 2;
}
