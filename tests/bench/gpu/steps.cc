#include <algorithm>
#include <cmath>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/kv_layout.h"
#include "kernels/reference/reference_backend.h"
#include "tests/bench/gpu/random_model.h"
#include "tests/bench/gpu/sections.h"

namespace octavo::bench {
namespace {

using kernels::KvLayout;
using kernels::TensorType;
using kernels::cuda::CudaBackend;
using kernels::cuda::CudaKvCache;

constexpr std::int32_t kBlockSize = 16;

struct NamedModel {
  ModelShape shape;
  const char* type_name;
  TensorType type;
};

std::vector<NamedModel> models(const Sizes& sizes) {
  const std::vector<ModelShape> shapes = model_shapes(sizes);
  return {{shapes[0], "bf16", TensorType::kBF16},
          {shapes[1], "bf16", TensorType::kBF16},
          {shapes[1], "Q4_0", TensorType::kQ4_0}};
}

enum class Part { kWhole, kForward };  // kForward: without the output head and the copies of its results

// As the program's options choose: --cuda-graphs off, --deterministic, --activation-dtype f32 (two 16-bit
// numbers for an activation, not one).
enum class Mode { kUsual, kWithoutGraphs, kDeterministic, kTwoParts };
constexpr Mode kModes[] = {Mode::kUsual, Mode::kWithoutGraphs, Mode::kDeterministic, Mode::kTwoParts};
constexpr const char* kModeNames[] = {"", ", without graphs", ", deterministic", ", two parts"};

struct Step {
  const char* kind;  // "decode", "prefill"
  std::int32_t num_sequences, rows, context_len;
  Part part;
  Mode mode;
  std::int32_t num_rows() const { return num_sequences * rows; }
  // From which a token is drawn: each sequence's last row.
  std::vector<std::int32_t> drawn_rows() const {
    std::vector<std::int32_t> last;
    for (std::int32_t i = 1; i <= num_sequences; ++i) last.push_back(i * rows - 1);
    return last;
  }
};

std::vector<Step> steps(const Sizes& sizes) {
  const std::int32_t context = sizes.is_emulated ? 24 : 512, prompt = sizes.is_emulated ? 20 : 2048;
  const std::vector<std::int32_t> batches =
      sizes.is_emulated ? std::vector<std::int32_t>{1, 3} : std::vector<std::int32_t>{1, 32, 64, 256};
  std::vector<Step> all;
  for (const std::int32_t batch : batches) {
    all.push_back({"decode", batch, 1, context, Part::kWhole, Mode::kUsual});
    all.push_back({"decode", batch, 1, context, Part::kForward, Mode::kUsual});
    if (batch == 1 || batch == 64) {
      all.push_back({"decode", batch, 1, context, Part::kWhole, Mode::kWithoutGraphs});
      all.push_back({"decode", batch, 1, context, Part::kForward, Mode::kWithoutGraphs});
    }
    all.push_back({"decode", batch, 1, context, Part::kWhole, Mode::kDeterministic});
  }
  all.push_back({"prefill", 1, prompt, prompt, Part::kWhole, Mode::kUsual});
  all.push_back({"prefill", 1, prompt, prompt, Part::kWhole, Mode::kDeterministic});
  all.push_back({"prefill", 1, prompt, prompt, Part::kWhole, Mode::kTwoParts});
  return all;
}

std::int32_t most_of(const std::vector<Step>& steps, std::int32_t (*number)(const Step&)) {
  std::int32_t most = 0;
  for (const Step& step : steps) most = std::max(most, number(step));
  return most;
}

BatchShape batch_shape(const Step& step, const ModelShape& shape) {
  return {step.num_sequences, step.rows, step.context_len, kBlockSize, shape.head_dim};
}

Record record_of(Bench& bench, const NamedModel& named, const RandomModel& model, const KvLayout& layout,
                 const Step& step) {
  const double rows = step.num_rows(), sequences = step.num_sequences;
  const bool is_whole = step.part == Part::kWhole;
  const double mean_context = step.context_len - 0.5 * (step.rows - 1);
  const double width = static_cast<double>(named.shape.num_heads) * named.shape.head_dim;
  Record record;
  record.section = "steps";
  record.name = std::string(named.shape.name) + " " + named.type_name + ", " + step.kind + " " +
                std::to_string(step.num_sequences) + " x " +
                std::to_string(step.rows == 1 ? step.context_len : step.rows) +
                (is_whole ? "" : ", without output head") + kModeNames[static_cast<std::size_t>(step.mode)];
  record.facts = {{"model", named.shape.name},
                  {"type", named.type_name},
                  {"kind", step.kind},
                  {"sequences", std::to_string(step.num_sequences)},
                  {"part", is_whole ? "whole" : "forward"},
                  {"graphs", step.mode == Mode::kUsual || step.mode == Mode::kDeterministic ? "yes" : "no"},
                  {"deterministic", step.mode == Mode::kDeterministic ? "yes" : "no"}};
  record.tokens = rows;
  record.bytes = static_cast<double>(model.layer_bytes() + (is_whole ? model.head_bytes() : 0)) +
                 sequences * step.context_len * static_cast<double>(layout.bytes_per_token());
  record.operations = rows * model.layer_operations() + (is_whole ? sequences * model.head_operations() : 0) +
                      4 * rows * mean_context * width * named.shape.num_layers;
  record.limit_bytes = bench.limits().copy_bytes;
  record.limit_operations =
      named.type == TensorType::kBF16 ? bench.limits().bf16_operations : bench.limits().f16_operations;
  return record;
}

class Steps {
 public:
  Steps(Bench& bench, const NamedModel& named)
      : bench_(bench),
        named_(named),
        steps_(steps(bench.sizes())),
        layout_{kernels::KvType::kF16, kBlockSize, named.shape.num_layers, named.shape.num_kv_heads,
                named.shape.head_dim} {
    for (const Step& step : steps_) {
      num_blocks_ = std::max(num_blocks_, batch_shape(step, named.shape).num_blocks());
    }
  }

  Result<void> measure() {
    const std::int64_t bytes =
        RandomModel::bytes(named_.shape, named_.type) + num_blocks_ * layout_.block_bytes();
    const std::string missing = bench_.memory_is_missing(bytes + bytes / 10);
    if (!missing.empty()) {
      Record record;
      record.section = "steps";
      record.name = std::string(named_.shape.name) + " " + named_.type_name;
      bench_.leave_out(std::move(record), missing);
      return {};
    }
    OCTAVO_TRY_VOID(prepare());
    const std::vector<std::int32_t> blocks = shuffled_blocks(num_blocks_);
    std::vector<HostBatch> batches;
    for (const Step& step : steps_) batches.emplace_back(batch_shape(step, named_.shape), blocks, 0);
    std::vector<Case> cases;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      cases.push_back({record_of(bench_, named_, *model_, layout_, steps_[i]),
                       [this, &step = steps_[i], view = batches[i].view(),
                        drawn_rows = steps_[i].drawn_rows()](std::int64_t) {
                         CudaBackend& backend = *backends_[static_cast<std::size_t>(step.mode)];
                         const std::span<const std::int32_t> drawn =
                             step.part == Part::kWhole ? drawn_rows : std::span<const std::int32_t>();
                         model_->forward(backend, view, *kv_, drawn);
                         if (!drawn.empty()) model_->draw(backend, drawn);
                       }});
    }
    OCTAVO_TRY_VOID(bench_.measure(std::move(cases), bench_.host_timer()));
    for (const auto& backend : backends_) OCTAVO_TRY_VOID(backend->status());
    if (!model_->logits_are_finite()) {
      return Error{ErrorCode::kInvalidLogits, std::string(named_.shape.name) + ": logits are not finite"};
    }
    return {};
  }

 private:
  Result<void> prepare() {
    const std::int32_t most_rows = most_of(steps_, [](const Step& step) { return step.num_rows(); });
    OCTAVO_TRY(model_, RandomModel::create(bench_, named_.shape, named_.type, most_rows));
    const std::int32_t most_sequences = most_of(steps_, [](const Step& step) { return step.num_sequences; });
    model_->reserve_draws(most_sequences);
    for (const Mode mode : kModes) {
      OCTAVO_TRY(std::unique_ptr<CudaBackend> created, backend(mode, most_rows, most_sequences));
      backends_.push_back(std::move(created));
    }
    OCTAVO_TRY(kv_, backends_[0]->allocate_kv_cache(layout_, num_blocks_));
    OCTAVO_TRY_VOID(bench_.random().fill_pool(layout_, static_cast<CudaKvCache&>(*kv_).data(), num_blocks_));
    bench_.stream().synchronize();
    OCTAVO_TRY_VOID(bench_.stream().status().result());
    for (const auto& created : backends_) OCTAVO_TRY_VOID(record(*created));
    return {};
  }

  Result<void> record(CudaBackend& backend) {
    for (const kernels::SampleStep& step : backend.steps_to_record()) {
      const kernels::SampleBatch sample(step, 0, kBlockSize, named_.shape.head_dim);
      OCTAVO_TRY_VOID(model_->record(backend, sample.batch(), *kv_));
    }
    return model_->record_draws(backend);
  }

  Result<std::unique_ptr<CudaBackend>> backend(Mode mode, std::int32_t most_rows,
                                               std::int32_t most_sequences) const {
    kernels::cuda::CudaOptions options;
    options.deterministic = mode == Mode::kDeterministic;
    options.graphs = mode == Mode::kUsual || mode == Mode::kDeterministic;
    if (mode == Mode::kTwoParts) options.activation = kernels::Activation::kF32;
    OCTAVO_TRY(std::unique_ptr<CudaBackend> created,
               CudaBackend::create(options,
                                   kernels::reference::create_reference_backend(kernels::Activation::kF32)));
    kernels::StepShape shape;
    shape.num_rows = most_rows;
    shape.num_logits_rows = shape.max_num_sequences = most_sequences;
    shape.max_context_len = most_of(steps_, [](const Step& step) { return step.context_len; });
    shape.block_size = kBlockSize;
    shape.embedding_length = named_.shape.embedding_length;
    shape.feed_forward_length = named_.shape.feed_forward_length;
    shape.num_heads = named_.shape.num_heads;
    shape.num_kv_heads = named_.shape.num_kv_heads;
    shape.head_dim = named_.shape.head_dim;
    shape.vocabulary_size = named_.shape.vocabulary;
    shape.has_quantised_weights = kernels::traits_of(named_.type).quantised;
    shape.has_unquantised_weights = !shape.has_quantised_weights;
    OCTAVO_TRY_VOID(created->reserve_step(shape));
    return created;
  }

  Bench& bench_;
  const NamedModel& named_;
  const std::vector<Step> steps_;
  const KvLayout layout_;
  std::int32_t num_blocks_ = 0;
  std::unique_ptr<RandomModel> model_;
  std::vector<std::unique_ptr<CudaBackend>> backends_;  // one for each of kModes
  std::unique_ptr<kernels::KvCache> kv_;                // ends before the backend that made it
};

}  // namespace

Result<void> measure_steps(Bench& bench) {
  for (const NamedModel& named : models(bench.sizes())) {
    Steps steps(bench, named);
    OCTAVO_TRY_VOID(steps.measure());
  }
  return {};
}

}  // namespace octavo::bench
