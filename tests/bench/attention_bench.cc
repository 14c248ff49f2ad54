// Speed of the CPU's attention over pages, all layers of a step, against what the machine can do.
//
//   octavo_attention_bench [--shapes smollm2,llama8b] [--types f16,int8,...] [--isas avx512_vnni,avx2]
//   [--block-sizes 16] [--cases "decode 2048,..."] [--threads 1] [--rounds 7] [--paged-against-contiguous]
//
// Shapes: smollm2 is the default model's (9 heads, 3 KV heads, dimension 64, 30 layers), llama8b that of
// Llama-3-8B (32, 8, 128) with 4 of its layers.
//
// Cases: `decode N` is one sequence whose new token sees N positions; `batch 16` sixteen sequences of 320;
// `shared 16` sixteen whose first 512 positions are the same blocks, and 64 own; `prefill N` a prompt in
// chunks of 512; `turn 2048` 50 new tokens after 2,048; `few 4096` 11 after 4,096, as many as a slow
// machine's step has room for beside a chat that generates. Blocks lie shuffled in the pool. Of a small
// context there are as many copies as fill 192 MB, used in turn, since a model's weights would have driven it
// out of the caches.
//
// Each line is the median of the rounds: time of all layers; bytes of the keys and values that the step needs
// (each layer's once, however many sequences or tiles read them) in a second, and as a share of what plain
// reading reaches; multiply-adds per second, and as a share of the peak of single precision. With one thread
// time is the processor's, so that other programs disturb only caches and memory; with more it is the
// clock's.
//
// --paged-against-contiguous does the same work three ways, interleaved: blocks shuffled in the pool; in the
// pool's order; and contiguous, that is with a pool for every layer and KV head in which block i + 1 follows
// block i, so that a head's keys and values are one run of memory as in a cache without pages. All three run
// the same kernel and look every block up in a table, which the last one would not have to.
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/machine_limits.h"

namespace octavo::kernels::cpu {
namespace {

struct NamedShape {
  std::string_view name;
  AttentionShape attention;
  std::int32_t num_layers;
};
constexpr NamedShape kShapes[] = {
    {"smollm2", {9, 3, 64, 64, RopePairing::kInterleaved, 0.125f}, 30},
    {"llama8b", {32, 8, 128, 128, RopePairing::kInterleaved, 0.088388346f}, 4},
};

struct NamedType {
  std::string_view name;
  KvType type;
};
constexpr NamedType kTypes[] = {{"f32", KvType::kF32},      {"f16", KvType::kF16},
                                {"bf16", KvType::kBf16},    {"int8", KvType::kInt8},
                                {"e4m3", KvType::kFp8E4m3}, {"e5m2", KvType::kFp8E5m2}};

// `num_sequences` with `shared` common positions, then `own` ones, of which the last `new_tokens` are
// computed in steps of at most `chunk`.
struct Case {
  std::string_view name;
  std::int32_t num_sequences, shared, own, new_tokens;
};
constexpr std::int32_t kChunk = 512;
constexpr Case kCases[] = {
    {"decode 256", 1, 0, 256, 1},       {"decode 2048", 1, 0, 2048, 1},
    {"decode 8192", 1, 0, 8192, 1},     {"batch 16", 16, 0, 320, 1},
    {"shared 16", 16, 512, 64, 1},      {"turn 2048", 1, 0, 2098, 50},
    {"few 4096", 1, 0, 4107, 11},       {"prefill 512", 1, 0, 512, 512},
    {"prefill 2048", 1, 0, 2048, 2048}, {"prefill 4096", 1, 0, 4096, 4096},
    {"prefill 8192", 1, 0, 8192, 8192},
};

struct Options {
  std::string shapes, types = "f16", isas = "avx512_vnni", block_sizes = "16", cases;
  std::int32_t threads = 1;
  int rounds = 7;
  bool paged_against_contiguous = false;
};

bool selected(std::string_view list, std::string_view name) {
  return list.empty() ||
         ("," + std::string(list) + ",").find("," + std::string(name) + ",") != std::string::npos;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Clock {
 public:
  explicit Clock(std::int32_t threads) : id_(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}

  double seconds_of(const auto& function) const {
    const double start = now();
    function();
    return now() - start;
  }

 private:
  double now() const {
    timespec time = {};
    ::clock_gettime(id_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  clockid_t id_;
};

struct Limits {
  double read_bytes_per_s, multiply_adds_per_s;
};

// The best of the rounds, of all threads together.
Limits measure_limits(InstructionSet isa, std::int32_t threads, const Clock& clock) {
  constexpr std::int64_t kBytes = std::int64_t{192} << 20, kPiece = std::int64_t{1} << 20,
                         kRounds = 1'000'000;
  const MachineLimitKernels& kernels = machine_limit_kernels(isa);
  const std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads).value();
  const MappedMemory memory = MappedMemory::create(kBytes, "measuring").value();
  std::memset(memory.data(), 1, kBytes);
  double read_seconds = 1e9, float_seconds = 1e9;
  for (int round = 0; round < 7; ++round) {
    read_seconds = std::min(read_seconds, clock.seconds_of([&] {
      pool->parallel_for(kBytes / kPiece, [&](std::int64_t piece, std::int32_t) {
        kernels.read(memory.data() + piece * kPiece, kPiece);
      });
    }));
    float_seconds = std::min(float_seconds, clock.seconds_of([&] {
      pool->parallel_for(threads, [&](std::int64_t, std::int32_t) { kernels.float_rounds(kRounds); });
    }));
  }
  return {static_cast<double>(kBytes) / read_seconds,
          static_cast<double>(kernels.float_multiply_adds_per_round * kRounds * threads) / float_seconds};
}

// Numbers of ordinary size in every type, without looking at the layout's order.
void fill_pool(const CpuKvCache& kv) {
  constexpr std::size_t kPatternBytes = 4096;
  const KvLayout& layout = kv.layout();
  const std::int64_t element_bytes = kv_element_bytes(layout.type);
  std::mt19937 random(5);
  std::vector<std::byte> pattern(kPatternBytes);
  for (std::size_t i = 0; i < kPatternBytes; ++i) {
    const bool has_sign = (i + 1) % static_cast<std::size_t>(element_bytes) == 0;
    // The highest byte of an element becomes a sign and an exponent around zero.
    const unsigned top = element_bytes == 1 ? 0xb7u : element_bytes == 2 ? 0xbbu : 0xbfu;
    pattern[i] = static_cast<std::byte>(random() & (has_sign ? top : 0xffu));
  }
  const std::int64_t bytes = layout.block_bytes() * kv.num_blocks();
  for (std::int64_t done = 0; done < bytes; done += kPatternBytes) {
    std::memcpy(kv.data() + done, pattern.data(),
                static_cast<std::size_t>(std::min<std::int64_t>(kPatternBytes, bytes - done)));
  }
  if (!layout.has_scales()) return;
  const std::vector<float> scales(static_cast<std::size_t>(2 * layout.block_size), 0.01f);
  for (std::int64_t head = 0; head < bytes / layout.layer(0).head_bytes; ++head) {
    std::memcpy(kv.data() + head * layout.layer(0).head_bytes + layout.layer(0).scales_offset, scales.data(),
                scales.size() * sizeof(float));
  }
}

// Blocks of a case's copies, numbered as they come; `place[i]` is where block i lies.
struct Tables {
  std::int32_t num_blocks = 0, max_blocks = 0;
  std::vector<std::vector<std::int32_t>> copies;  // [copy][sequence * max_blocks + i]
};

Tables number_blocks(const Case& c, std::int32_t block_size, std::int64_t token_bytes) {
  constexpr std::int64_t kEnoughBytes = 192'000'000;
  const auto blocks_of = [&](std::int32_t tokens) { return (tokens + block_size - 1) / block_size; };
  const std::int32_t shared = blocks_of(c.shared), own = blocks_of(c.own);
  const std::int64_t copy_bytes = (std::int64_t{shared} + c.num_sequences * own) * block_size * token_bytes;
  const std::int64_t num_copies = c.new_tokens > 1 ? 1 : std::max<std::int64_t>(1, kEnoughBytes / copy_bytes);
  Tables tables{.max_blocks = shared + own, .copies = {}};
  for (std::int64_t copy = 0; copy < num_copies; ++copy) {
    const std::int32_t first = tables.num_blocks;
    tables.num_blocks += shared;
    std::vector<std::int32_t>& table = tables.copies.emplace_back();
    for (std::int32_t sequence = 0; sequence < c.num_sequences; ++sequence) {
      for (std::int32_t i = 0; i < shared; ++i) table.push_back(first + i);
      for (std::int32_t i = 0; i < own; ++i) table.push_back(tables.num_blocks++);
    }
  }
  return tables;
}

// A step's arrays.
struct Step {
  std::vector<std::int32_t> positions, query_start, context_lens;
};

std::vector<Step> steps_of(const Case& c) {
  std::vector<Step> steps;
  const std::int32_t context = c.shared + c.own;
  for (std::int32_t done = context - c.new_tokens; done < context;) {
    const std::int32_t rows = std::min(kChunk, context - done);
    Step& step = steps.emplace_back();
    step.query_start.push_back(0);
    for (std::int32_t sequence = 0; sequence < c.num_sequences; ++sequence) {
      for (std::int32_t row = 0; row < rows; ++row) step.positions.push_back(done + row);
      step.query_start.push_back(static_cast<std::int32_t>(step.positions.size()));
      step.context_lens.push_back(done + rows);
    }
    done += rows;
  }
  return steps;
}

PagedBatch batch_of(const Step& step, std::span<const std::int32_t> block_tables, std::int32_t max_blocks) {
  return {.num_tokens = static_cast<std::int32_t>(step.positions.size()),
          .num_sequences = static_cast<std::int32_t>(step.context_lens.size()),
          .positions = step.positions,
          .slot_mapping = {},
          .query_start = step.query_start,
          .context_lens = step.context_lens,
          .block_tables = block_tables,
          .max_blocks = max_blocks,
          .rotations = {}};
}

// A pool with the tables that point into it.
struct Pool {
  std::unique_ptr<KvCache> kv;
  std::vector<std::vector<std::int32_t>> copies;
  // One layer and KV head; head h of layer l is l * num_kv_heads + h block tables on
  bool is_contiguous = false;
};

class Bench {
 public:
  Bench(InstructionSet isa, const NamedShape& shape, const NamedType& type, std::int32_t block_size,
        const Options& options)
      : shape_(shape),
        type_(type),
        block_size_(block_size),
        options_(options),
        isa_(isa),
        clock_(options.threads),
        backend_(create_cpu_backend(options.threads, Activation::kF32, isa).value()) {}

  void run(const Case& c, const Limits& limits) {
    prepare(c);
    std::vector<Pool> pools;
    pools.push_back(shuffled_pool());
    if (options_.paged_against_contiguous) {
      pools.push_back(ordered_pool());
      pools.push_back(contiguous_pool());
    }
    std::vector<std::vector<double>> seconds(pools.size());
    for (int round = 0; round <= options_.rounds; ++round) {
      for (std::size_t i = 0; i < pools.size(); ++i) {
        const double time = measure(pools[i]);
        if (round > 0) seconds[i].push_back(time);  // the first one warms
      }
    }
    print(c, median(seconds[0]), limits);
    if (options_.paged_against_contiguous) print_comparison(seconds);
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void prepare(const Case& c) {
    layout_ = {type_.type, block_size_, shape_.num_layers, shape_.attention.num_kv_heads,
               shape_.attention.head_dim};
    tables_ = number_blocks(c, block_size_, layout_.bytes_per_token());
    steps_ = steps_of(c);
    const std::size_t width =
        static_cast<std::size_t>(shape_.attention.num_heads * shape_.attention.head_dim);
    std::mt19937 random(3);
    q_.resize(steps_[0].positions.size() * width);
    for (float& value : q_) value = static_cast<float>(static_cast<int>(random() & 1023u) - 512) / 256.0f;
    out_.resize(q_.size());
  }

  Pool allocate(const KvLayout& layout, std::int32_t num_blocks) {
    Pool pool{.kv = backend_->allocate_kv_cache(layout, num_blocks).value(), .copies = {}};
    fill_pool(static_cast<const CpuKvCache&>(*pool.kv));
    return pool;
  }

  Pool ordered_pool() {
    Pool pool = allocate(layout_, tables_.num_blocks);
    pool.copies = tables_.copies;
    return pool;
  }

  Pool shuffled_pool() {
    Pool pool = ordered_pool();
    std::vector<std::int32_t> place(static_cast<std::size_t>(tables_.num_blocks));
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), std::mt19937(11));
    for (std::vector<std::int32_t>& table : pool.copies) {
      for (std::int32_t& block : table) block = place[static_cast<std::size_t>(block)];
    }
    return pool;
  }

  Pool contiguous_pool() {
    const KvLayout layout{type_.type, block_size_, 1, 1, shape_.attention.head_dim};
    const std::int32_t num_runs = shape_.num_layers * shape_.attention.num_kv_heads;
    Pool pool = allocate(layout, tables_.num_blocks * num_runs);
    pool.is_contiguous = true;
    for (const std::vector<std::int32_t>& table : tables_.copies) {
      std::vector<std::int32_t>& all = pool.copies.emplace_back();
      for (std::int32_t run = 0; run < num_runs; ++run) {
        for (const std::int32_t block : table) all.push_back(run * tables_.num_blocks + block);
      }
    }
    return pool;
  }

  // Mean of one step sequence over the copies.
  double measure(const Pool& pool) {
    const double total = clock_.seconds_of([&] {
      for (const std::vector<std::int32_t>& table : pool.copies) {
        for (const Step& step : steps_) {
          if (pool.is_contiguous) {
            run_heads(pool, step, table);
          } else {
            run_layers(pool, step, table);
          }
        }
      }
    });
    return total / static_cast<double>(pool.copies.size());
  }

  void run_layers(const Pool& pool, const Step& step, const std::vector<std::int32_t>& table) {
    const PagedBatch batch = batch_of(step, table, tables_.max_blocks);
    const std::int64_t width = std::int64_t{shape_.attention.num_heads} * shape_.attention.head_dim;
    backend_->begin_step(batch, {});
    for (std::int32_t layer = 0; layer < shape_.num_layers; ++layer) {
      backend_->paged_attention(shape_.attention, batch, layer, *pool.kv,
                                {q_.data(), batch.num_tokens, width, width},
                                {out_.data(), batch.num_tokens, width, width});
    }
  }

  void run_heads(const Pool& pool, const Step& step, const std::vector<std::int32_t>& table) {
    AttentionShape shape = shape_.attention;
    shape.num_heads /= shape.num_kv_heads;
    shape.num_kv_heads = 1;
    const std::int64_t width = std::int64_t{shape_.attention.num_heads} * shape.head_dim;
    const std::int64_t columns = std::int64_t{shape.num_heads} * shape.head_dim;
    const std::size_t table_size = step.context_lens.size() * static_cast<std::size_t>(tables_.max_blocks);
    const std::span<const std::int32_t> tables(table);
    for (std::size_t run = 0; run < table.size() / table_size; ++run) {
      const PagedBatch batch =
          batch_of(step, tables.subspan(run * table_size, table_size), tables_.max_blocks);
      const std::int64_t head = static_cast<std::int64_t>(run) % shape_.attention.num_kv_heads;
      backend_->begin_step(batch, {});
      backend_->paged_attention(shape, batch, 0, *pool.kv,
                                {q_.data() + head * columns, batch.num_tokens, columns, width},
                                {out_.data() + head * columns, batch.num_tokens, columns, width});
    }
  }

  void print(const Case& c, double seconds, const Limits& limits) const {
    const AttentionShape& shape = shape_.attention;
    double bytes = 0, multiply_adds = 0;
    for (const Step& step : steps_) {
      double positions = c.shared;
      for (const std::int32_t context : step.context_lens) positions += context - c.shared;
      bytes += positions * static_cast<double>(layout_.bytes_per_token());
      for (const std::int32_t position : step.positions)
        multiply_adds += 2.0 * (position + 1) * shape.num_heads * shape.head_dim * shape_.num_layers;
    }
    std::printf("%-8.*s %-11s %-4.*s %3d %-12.*s %9.3f ms %6.1f GB/s %3.0f %% %7.1f G/s %3.0f %%",
                static_cast<int>(shape_.name.size()), shape_.name.data(), instruction_set_name(isa_).data(),
                static_cast<int>(type_.name.size()), type_.name.data(), block_size_,
                static_cast<int>(c.name.size()), c.name.data(), seconds * 1e3, bytes / seconds * 1e-9,
                100 * bytes / seconds / limits.read_bytes_per_s, multiply_adds / seconds * 1e-9,
                100 * multiply_adds / seconds / limits.multiply_adds_per_s);
  }

  // Ratios of times in the same round, so that what disturbs a round disturbs both.
  static void print_comparison(const std::vector<std::vector<double>>& seconds) {
    const auto ratio = [&](std::size_t pool) {
      std::vector<double> ratios;
      for (std::size_t round = 0; round < seconds[pool].size(); ++round)
        ratios.push_back(seconds[0][round] / seconds[pool][round]);
      return median(ratios);
    };
    std::printf("  shuffled / in order %.3f, shuffled / contiguous %.3f", ratio(1), ratio(2));
  }

  const NamedShape& shape_;
  const NamedType& type_;
  const std::int32_t block_size_;
  const Options& options_;
  const InstructionSet isa_;
  const Clock clock_;
  const std::unique_ptr<Backend> backend_;
  KvLayout layout_;
  Tables tables_;
  std::vector<Step> steps_;
  std::vector<float> q_, out_;
};

void run_all(const Options& options) {
  for (const InstructionSet isa : usable_instruction_sets()) {
    if (!selected(options.isas, instruction_set_name(isa))) continue;
    const Limits limits = measure_limits(isa, options.threads, Clock(options.threads));
    std::printf("%s, %d threads: reads %.1f GB/s, %.1f G multiply-adds/s in single precision\n",
                instruction_set_name(isa).data(), options.threads, limits.read_bytes_per_s * 1e-9,
                limits.multiply_adds_per_s * 1e-9);
    for (const NamedShape& shape : kShapes) {
      if (!selected(options.shapes, shape.name)) continue;
      for (const NamedType& type : kTypes) {
        if (!selected(options.types, type.name)) continue;
        for (const std::int32_t block_size : {1, 4, 8, 16, 32, 64, 128, 256}) {
          if (!selected(options.block_sizes, std::to_string(block_size))) continue;
          Bench bench(isa, shape, type, block_size, options);
          for (const Case& c : kCases) {
            if (selected(options.cases, c.name)) bench.run(c, limits);
          }
        }
      }
    }
  }
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--paged-against-contiguous") {
      options.paged_against_contiguous = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    if (name == "--shapes") {
      options.shapes = value;
    } else if (name == "--types") {
      options.types = value;
    } else if (name == "--isas") {
      options.isas = value;
    } else if (name == "--block-sizes") {
      options.block_sizes = value;
    } else if (name == "--cases") {
      options.cases = value;
    } else if (name == "--threads") {
      if (!parse_number(value, options.threads)) return false;
    } else if (name == "--rounds") {
      if (!parse_number(value, options.rounds)) return false;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace octavo::kernels::cpu

int main(int argc, char** argv) {
  octavo::kernels::cpu::Options options;
  if (!octavo::kernels::cpu::parse_options(argc, argv, options)) {
    std::fprintf(stderr, "usage: see the top of tests/bench/attention_bench.cc\n");
    return 2;
  }
  octavo::kernels::cpu::run_all(options);
  return 0;
}
