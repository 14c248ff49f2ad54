// The container, and what is read of it: no input leaves the file, and every refusal is one line with its
// place.
#include <string>

#include "engine/model/gguf_header.h"
#include "engine/model/model_config.h"
#include "engine/model/vocabulary_reader.h"
#include "tests/fuzz/gguf_mutation.h"

namespace octavo::fuzz {
namespace {

void check_error(const Error& error, std::size_t size) {
  require(!error.message.empty() && error.message.find('\n') == std::string::npos &&
              error.message.find('\x1b') == std::string::npos,
          "an error is one printable line");
  require(!error.byte_offset || *error.byte_offset <= size, "an error's place lies in the file");
}

template <class T>
void ask(const model::GgufHeader& header, std::string_view key, std::size_t size) {
  if (const auto value = header.find<T>(key); !value) check_error(value.error(), size);
}

// Each key as two of the types, in turn: all eight would spend most of the time on writing errors.
void ask_for_everything(const model::GgufHeader& header, std::size_t size) {
  using Ask = void (*)(const model::GgufHeader&, std::string_view, std::size_t);
  constexpr Ask kAsks[] = {ask<std::uint32_t>,
                           ask<std::vector<std::int32_t>>,
                           ask<std::string_view>,
                           ask<std::vector<std::string_view>>,
                           ask<float>,
                           ask<std::vector<float>>,
                           ask<bool>,
                           ask<std::uint64_t>};
  for (std::size_t i = 0; i < header.num_keys(); ++i) {
    kAsks[(i + size) % std::size(kAsks)](header, header.key_at(i), size);
    kAsks[(i * 3 + size / 8) % std::size(kAsks)](header, header.key_at(i), size);
  }
}

void check_tensors(const model::GgufHeader& header, std::size_t size) {
  for (const model::GgufTensor& tensor : header.tensors()) {
    require(tensor.num_bytes <= size && tensor.byte_offset <= size - tensor.num_bytes,
            "a tensor lies in the file");
    std::int64_t elements = 1;
    for (const std::int64_t dimension : tensor.dimensions) elements *= dimension;
    require(elements == tensor.num_elements && elements > 0,
            "a tensor's elements are the product of its dimensions");
    require(tensor.byte_offset % header.alignment() == 0, "a tensor is aligned");
  }
}

void run(std::span<const std::uint8_t> input) {
  const model::MemorySource source(std::as_bytes(input));
  const auto header = model::GgufHeader::parse(source, "fuzz");
  if (!header) return check_error(header.error(), input.size());
  check_tensors(*header, input.size());
  ask_for_everything(*header, input.size());
  if (const auto config = model::read_model_config(*header); !config)
    check_error(config.error(), input.size());
  if (const auto vocabulary = model::read_vocabulary(*header); !vocabulary)
    check_error(vocabulary.error(), input.size());
}

}  // namespace

const Target kGgufTarget = {"gguf", 4096, run, mutate_gguf, gguf_seeds};

}  // namespace octavo::fuzz
