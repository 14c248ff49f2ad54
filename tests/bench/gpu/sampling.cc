#include <algorithm>
#include <random>

#include "kernels/cuda/sampling/logits_summary.h"
#include "kernels/cuda/sampling/sample_tokens.h"
#include "tests/bench/gpu/sections.h"

namespace octavo::bench {
namespace {

using kernels::DrawnToken;
using kernels::TokenDraw;
using kernels::cuda::DeviceMemory;
using kernels::cuda::PinnedMemory;
using kernels::cuda::SampleInput;
using kernels::cuda::TokenSampler;
using kernels::cuda::UploadRing;

constexpr std::int64_t kFloat = sizeof(float);

struct NamedDraw {
  const char* name;
  TokenDraw draw;
};
constexpr NamedDraw kDraws[] = {{"greedy", {.temperature = 0.0}},
                                {"temperature", {}},
                                {"top_k 40", {.top_k = 40}},
                                {"min_p 0.05", {.min_p = 0.05}},
                                {"top_p 0.95", {.top_p = 0.95}},
                                {"top_k 40, top_p 0.95", {.top_k = 40, .top_p = 0.95}},
                                {"top_p 0.95, temperature 3", {.temperature = 3.0, .top_p = 0.95}}};

std::vector<std::int64_t> vocabularies(const Sizes& sizes) {
  if (sizes.is_emulated) return {700};
  return {49152, 128256};  // SmolLM2's and Llama 3's
}

std::vector<std::int32_t> batches(const Sizes& sizes) {
  if (sizes.is_emulated) return {1, 70};
  return {1, 64, 256};
}

// Rows of logits like a language model's, a bell with a few high ones, and what is known of them.
class Rows {
 public:
  static Result<std::unique_ptr<Rows>> create(Bench& bench, std::int64_t vocabulary) {
    constexpr std::int64_t kRows = TokenSampler::kDrawsTogether;
    const std::int64_t pieces = kernels::num_logits_pieces(vocabulary);
    OCTAVO_TRY(TokenSampler sampler, TokenSampler::create(bench.stream(), vocabulary));
    OCTAVO_TRY(UploadRing ring, UploadRing::create(std::int64_t{1} << 16));
    std::unique_ptr<Rows> rows(new Rows(bench, vocabulary, std::move(sampler), std::move(ring)));
    OCTAVO_TRY(rows->logits_, DeviceMemory::allocate(kRows * vocabulary * kFloat, "rows of logits"));
    OCTAVO_TRY(rows->host_, PinnedMemory::allocate(kRows * vocabulary * kFloat, "rows of logits"));
    OCTAVO_TRY(rows->sums_, DeviceMemory::allocate(kRows * kFloat, "their sums"));
    OCTAVO_TRY(rows->maxima_, DeviceMemory::allocate(kRows * pieces * kFloat, "their maxima"));
    OCTAVO_TRY(const DeviceMemory piece_sums, DeviceMemory::allocate(kRows * pieces * kFloat, "their sums"));
    OCTAVO_TRY(rows->drawn_, DeviceMemory::allocate(kRows * std::int64_t{sizeof(DrawnToken)}, "tokens"));
    rows->make_up(kRows);
    bench.stream().copy(rows->logits_.data(), rows->host_.data(), rows->host_.bytes());
    kernels::cuda::summarise_logits(bench.stream(), rows->logits_.as<float>(), kRows, vocabulary, 0.0f,
                                    rows->sums_.as<float>(), rows->maxima_.as<float>(),
                                    piece_sums.as<float>());
    bench.stream().synchronize();
    return rows;
  }

  // As a step does it: as many rows at a time as fit. One call's random numbers differ from another's.
  void draw(std::int32_t num_rows, TokenDraw draw, std::int64_t call) {
    for (std::int32_t first = 0; first < num_rows; first += TokenSampler::kDrawsTogether) {
      draws_.clear();
      const std::int32_t count = std::min(TokenSampler::kDrawsTogether, num_rows - first);
      for (std::int32_t row = 0; row < count; ++row) {
        draw.row = row;
        draw.uniform = static_cast<double>((call * 977 + row * 61) % 1000) / 1000.0;
        draws_.push_back(draw);
      }
      sampler_.draw(bench_.stream(), ring_, input(), 0, draws_, drawn_.as<DrawnToken>());
    }
  }

  void copy(std::int32_t num_rows) {
    for (std::int32_t first = 0; first < num_rows; first += TokenSampler::kDrawsTogether) {
      const std::int32_t count = std::min(TokenSampler::kDrawsTogether, num_rows - first);
      bench_.stream().copy(host_.data(), logits_.data(), count * vocabulary_ * kFloat);
    }
  }

 private:
  Rows(Bench& bench, std::int64_t vocabulary, TokenSampler sampler, UploadRing ring)
      : bench_(bench), vocabulary_(vocabulary), sampler_(std::move(sampler)), ring_(std::move(ring)) {}

  void make_up(std::int64_t num_rows) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> bell(0.0f, 2.5f);
    auto* const values = host_.as<float>();
    for (std::int64_t i = 0; i < num_rows * vocabulary_; ++i) values[i] = bell(random);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      for (int i = 0; i < 8; ++i)
        values[row * vocabulary_ +
               static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(vocabulary_))] += 8.0f;
    }
  }
  SampleInput input() const {
    return {logits_.as<float>(), sums_.as<float>(), maxima_.as<float>(), vocabulary_};
  }

  Bench& bench_;
  std::int64_t vocabulary_;
  TokenSampler sampler_;
  UploadRing ring_;
  DeviceMemory logits_{}, sums_{}, maxima_{}, drawn_{};
  PinnedMemory host_{};
  std::vector<TokenDraw> draws_;
};

Record record_of(const std::string& what, std::int64_t vocabulary, std::int32_t num_rows) {
  Record record;
  record.section = "sampling";
  record.name = what + ", " + std::to_string(num_rows) + " x " + std::to_string(vocabulary);
  record.facts = {{"vocabulary", std::to_string(vocabulary)}, {"rows", std::to_string(num_rows)}};
  record.tokens = num_rows;
  return record;
}

Result<void> measure_vocabulary(Bench& bench, std::int64_t vocabulary) {
  OCTAVO_TRY(const std::unique_ptr<Rows> rows, Rows::create(bench, vocabulary));
  std::vector<Case> cases;
  for (const std::int32_t count : batches(bench.sizes())) {
    const double row_bytes = static_cast<double>(vocabulary * kFloat * count);
    for (const NamedDraw& each : kDraws) {
      Record record = record_of(each.name, vocabulary, count);
      if (each.draw.temperature > 0.0 && each.draw.top_k == 0 && each.draw.min_p == 0.0) {
        record.bytes = row_bytes;  // all logits, once
        record.limit_bytes = bench.limits().copy_bytes;
      }
      cases.push_back({std::move(record), [&rows = *rows, count, draw = each.draw](std::int64_t call) {
                         rows.draw(count, draw, call);
                       }});
    }
    Record copy = record_of("instead: the logits to the host", vocabulary, count);
    copy.bytes = row_bytes;
    copy.limit_bytes = bench.limits().to_host_bytes;
    cases.push_back({std::move(copy), [&rows = *rows, count](std::int64_t) { rows.copy(count); }});
  }
  return bench.measure(std::move(cases), bench.stream_timer());
}

}  // namespace

Result<void> measure_sampling(Bench& bench) {
  for (const std::int64_t vocabulary : vocabularies(bench.sizes()))
    OCTAVO_TRY_VOID(measure_vocabulary(bench, vocabulary));
  return {};
}

}  // namespace octavo::bench
