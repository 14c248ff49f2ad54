// Router, then the grouped products: the rows are sorted by expert, and the panels of all experts that any
// row uses (and of the shared one) are one list of pieces, taken by whoever is free. Each expert's weights
// are read once. A row's sums are its own: products by multiply_panels, and the experts' outputs are added in
// the order in which the row chose them.
#include <algorithm>

#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/step_experts.h"

namespace octavo::kernels::cpu {
namespace {

const PackedMatrix* packed(const Matrix* matrix) { return static_cast<const PackedMatrix*>(matrix); }
const PackedMatrix& packed(const Matrix& matrix) { return static_cast<const PackedMatrix&>(matrix); }

MatrixView rows_in(Scratch& scratch, std::int64_t rows, std::int64_t width) {
  return {scratch.reserve(rows * width), rows, width, width};
}

// Rows `rows` of a view as if they were those from `first` on.
MatrixView moved(MatrixView view, std::int64_t by) {
  view.data += by * view.stride;
  view.rows -= by;
  return view;
}

// The panels of all used experts, and before them, because every row uses it, those of the shared one, in
// pieces of one size.
class Pieces {
 public:
  struct Piece {
    std::int64_t expert;  // of ExpertRows::used(); kShared
    std::int64_t first_panel, last_panel;
  };
  static constexpr std::int64_t kShared = -1;

  Pieces(std::int64_t num_experts, std::int64_t panels, std::int64_t shared_panels, std::int64_t size)
      : panels_(panels),
        shared_panels_(shared_panels),
        size_(size),
        per_expert_((panels + size - 1) / size),
        num_shared_((shared_panels + size - 1) / size),
        count_(num_shared_ + num_experts * per_expert_) {}

  std::int64_t count() const { return count_; }
  Piece at(std::int64_t index) const {
    if (index < num_shared_) return piece(kShared, index, shared_panels_);
    index -= num_shared_;
    return piece(index / per_expert_, index % per_expert_, panels_);
  }

 private:
  Piece piece(std::int64_t expert, std::int64_t index, std::int64_t panels) const {
    return {expert, index * size_, std::min((index + 1) * size_, panels)};
  }

  std::int64_t panels_, shared_panels_, size_, per_expert_, num_shared_, count_;
};

// What gate, which may be missing, and up read.
ActivationForms forms_of(const Matrix* gate, const Matrix& up) {
  const ActivationForms form = packed(up).activation_forms();
  return gate == nullptr ? form : packed(gate)->activation_forms() | form;
}

ActivationForms routed_forms(const ExpertWeights& weights) {
  return forms_of(weights.gate.empty() ? nullptr : weights.gate[0], *weights.up[0]);
}

// Of models without a shared expert the routed ones'.
ActivationForms shared_forms(const ExpertWeights& weights) {
  if (weights.shared_up == nullptr) return routed_forms(weights);
  return forms_of(weights.shared_gate, *weights.shared_up);
}

// Of what reads the normalised rows besides the router.
ActivationForms row_forms(const ExpertWeights& weights) {
  const ActivationForms routed = weights.latent_down == nullptr
                                     ? routed_forms(weights)
                                     : packed(weights.latent_down)->activation_forms();
  return weights.shared_up == nullptr ? routed : routed | shared_forms(weights);
}

// Outputs that a piece computes.
struct Columns {
  std::int64_t first, count;
};

Columns columns_of(const Pieces::Piece& piece, std::int64_t width) {
  const std::int64_t first = piece.first_panel * kPanelRows;
  return {first, std::min(piece.last_panel * kPanelRows, width) - first};
}

// Of an expert: a part of what stands one behind the other. No bias: none.
std::span<const float> bias_of(std::span<const float> biases, std::int32_t expert, std::int64_t width) {
  if (biases.empty()) return {};
  return biases.subspan(static_cast<std::size_t>(expert * width), static_cast<std::size_t>(width));
}

}  // namespace

void CpuBackend::feed_forward_experts(const ExpertWeights& weights, MatrixView residual,
                                      std::span<std::int32_t> chosen) {
  const std::int64_t num_rows = residual.rows;
  choose_experts(weights, residual);
  set_expert_rows(weights, residual);
  set_expert_slots(weights, residual);
  if (!chosen.empty()) {
    const std::int32_t* const experts = step_experts_->rows.experts_of(0);
    std::copy_n(experts, num_rows * weights.routing.num_used, chosen.data());
  }
  multiply_hidden(weights, num_rows);
  multiply_outputs(weights, num_rows);
  add_experts(weights, residual);
}

// activations_ = what the router reads; where norms are common, also in the forms that the experts read.
void CpuBackend::choose_experts(const ExpertWeights& weights, ConstMatrixView x) {
  const PackedMatrix& router = packed(*weights.router);
  OCTAVO_CHECK(router.activation_form() == ActivationForm::kFloat, "a router with rounded activations");
  if (weights.router_norm.weight.empty()) {
    set_normalised(weights.norm, x, {}, router.activation_forms() | row_forms(weights));
  } else {
    set_normalised(weights.router_norm, x, {}, router.activation_forms());
  }

  StepExperts& step = *step_experts_;
  const MatrixView scores = rows_in(step.scores, x.rows, router.rows());
  const PackedMatrix* const shared_router = packed(weights.shared_router);
  Product products[2] = {{&router, scores}};
  if (shared_router != nullptr) products[1] = {shared_router, rows_in(step.shared_scores, x.rows, 1)};
  multiply({products, shared_router == nullptr ? std::size_t{1} : std::size_t{2}});

  const auto num_experts = static_cast<std::int32_t>(router.rows());
  step.rows.begin(x.rows, num_experts, weights.routing.num_used);
  for_each_row(x.rows, [&](std::int64_t row, std::int32_t worker) {
    add_bias(weights.router_bias, scores.row(row), 0, num_experts);
    cpu::choose_experts(kernels_, weights.routing, {scores.row(row), static_cast<std::size_t>(num_experts)},
                        step.rooms[static_cast<std::size_t>(worker)], step.rows.experts_of(row),
                        step.rows.weights_of(row));
  });
  step.rows.sort();
}

// activations_ = what the experts read; the shared expert's rows beside them, where its norm is another.
void CpuBackend::set_expert_rows(const ExpertWeights& weights, ConstMatrixView x) {
  const bool shared_has_norm = !weights.shared_norm.weight.empty();
  if (shared_has_norm)
    set_normalised(weights.shared_norm, x, {}, shared_forms(weights), step_experts_->shared_inputs);
  if (weights.router_norm.weight.empty()) return;  // they are there
  const ActivationForms forms = routed_forms(weights);
  set_normalised(weights.norm, x, {}, shared_has_norm ? forms : forms | shared_forms(weights));
}

// What experts read where it is not the normalised rows: other rows made of these, or each times the expert's
// weight. Else these, sorted; a single row stands in all slots and is read where it is.
void CpuBackend::set_expert_slots(const ExpertWeights& weights, ConstMatrixView x) {
  StepExperts& step = *step_experts_;
  ExpertRows& rows = step.rows;
  if (weights.latent_down != nullptr) {
    const MatrixView latent = rows_in(step.latent, x.rows, weights.latent_down->rows());
    const Product products[] = {{packed(weights.latent_down), latent}};
    multiply(products);
    step.inputs.reserve(rows.num_slots(), latent.columns, routed_forms(weights));
    for_each_row(rows.num_slots(), [&](std::int64_t slot, std::int32_t) {
      step.inputs.set_row(slot, latent.row(rows.row_of(slot)));
    });
  } else if (weights.weighs_inputs) {
    step.inputs.reserve(rows.num_slots(), x.columns, routed_forms(weights));
    for_each_row(x.rows, [&](std::int64_t row, std::int32_t worker) {
      float* const weighed = worker_scratch_[static_cast<std::size_t>(worker)].reserve(x.columns);
      for (std::int32_t i = 0; i < weights.routing.num_used; ++i) {
        normalise(weights.norm, x.row(row), weighed);
        kernels_.scale_row(weighed, rows.weights_of(row)[i], x.columns);
        step.inputs.set_row(rows.slot_of(row, i), weighed);
      }
    });
  } else if (x.rows > 1) {
    step.inputs.reserve(rows.num_slots(), activations_.columns(), routed_forms(weights));
    for_each_row(rows.num_slots(), [&](std::int64_t slot, std::int32_t) {
      step.inputs.copy_row(slot, activations_, rows.row_of(slot));
    });
  }
}

// Gate and up, activated, and rounded as the products of `down` want them.
void CpuBackend::multiply_hidden(const ExpertWeights& weights, std::int64_t num_rows) {
  StepExperts& step = *step_experts_;
  const ExpertRows& rows = step.rows;
  const PackedMatrix& first_up = packed(*weights.up[0]);
  const std::int64_t width = first_up.rows();
  const bool has_gate = !weights.gate.empty(), is_shared = weights.shared_up != nullptr;
  const std::int64_t shared_width = is_shared ? weights.shared_up->rows() : 0;
  const auto combine = gated_activation(weights.activation);
  const auto activate = activation_of(weights.activation);
  const ActivationRows& shared_rows = weights.shared_norm.weight.empty() ? activations_ : step.shared_inputs;

  // As set_expert_slots() left them.
  const bool is_sorted = num_rows > 1 || weights.weighs_inputs || weights.latent_down != nullptr;
  // Without a gate the products of `up` stand where the gate's would, and are activated there.
  const MatrixView hidden_rows = rows_in(step.gate, rows.num_slots(), width),
                   up_rows = has_gate ? rows_in(step.up, rows.num_slots(), width) : hidden_rows,
                   shared_hidden_rows = rows_in(step.shared_gate, num_rows, shared_width),
                   shared_up_rows =
                       has_gate ? rows_in(step.shared_up, num_rows, shared_width) : shared_hidden_rows;
  const std::int64_t shared_panels = is_shared ? packed(weights.shared_up)->num_panels() : 0;
  const auto num_used = static_cast<std::int64_t>(rows.used().size());
  const Pieces pieces(num_used, first_up.num_panels(), shared_panels,
                      panels_per_item(num_used * first_up.num_panels() + shared_panels));
  for_each_piece(num_rows, pieces.count(), [&](std::int64_t index) {
    const Pieces::Piece piece = pieces.at(index);
    if (piece.expert == Pieces::kShared) {
      const auto [first, count] = columns_of(piece, shared_width);
      if (has_gate) {
        multiply_panels(*packed(weights.shared_gate), shared_rows, piece.first_panel, piece.last_panel,
                        shared_hidden_rows);
      }
      multiply_panels(*packed(weights.shared_up), shared_rows, piece.first_panel, piece.last_panel,
                      shared_up_rows);
      for (std::int64_t row = 0; row < num_rows; ++row) {
        float* const hidden = shared_hidden_rows.row(row) + first;
        if (has_gate) {
          combine(hidden, shared_up_rows.row(row) + first, count);
        } else {
          activate(hidden, count);
        }
      }
      return;
    }
    const ExpertRows::Expert& expert = rows.used()[static_cast<std::size_t>(piece.expert)];
    const auto number = static_cast<std::size_t>(expert.index);
    const ActivationRows& inputs = is_sorted ? step.inputs : activations_;
    const RowRange range = is_sorted ? RowRange{expert.first_slot, expert.end_slot} : RowRange{0, num_rows};
    const std::int64_t by = expert.first_slot - range.first;
    if (has_gate) {
      multiply_panels(packed(*weights.gate[number]), inputs, range, piece.first_panel, piece.last_panel,
                      moved(hidden_rows, by));
    }
    multiply_panels(packed(*weights.up[number]), inputs, range, piece.first_panel, piece.last_panel,
                    moved(up_rows, by));
    const auto [first, count] = columns_of(piece, width);
    for (std::int64_t slot = expert.first_slot; slot < expert.end_slot; ++slot) {
      add_bias(bias_of(weights.up_bias, expert.index, width), up_rows.row(slot), first, count);
      if (!has_gate) {
        activate(hidden_rows.row(slot) + first, count);
        continue;
      }
      add_bias(bias_of(weights.gate_bias, expert.index, width), hidden_rows.row(slot), first, count);
      combine(hidden_rows.row(slot) + first, up_rows.row(slot) + first, count);
    }
  });

  step.hidden.reserve(rows.num_slots(), width, packed(*weights.down[0]).activation_forms());
  if (is_shared) {
    step.shared_hidden.reserve(num_rows, shared_width, packed(weights.shared_down)->activation_forms());
  }
  for_each_row(rows.num_slots() + (is_shared ? num_rows : 0), [&](std::int64_t i, std::int32_t) {
    const std::int64_t row = i - rows.num_slots();
    if (row < 0) {
      step.hidden.set_row(i, hidden_rows.row(i));
    } else {
      step.shared_hidden.set_row(row, shared_hidden_rows.row(row));
    }
  });
}

void CpuBackend::multiply_outputs(const ExpertWeights& weights, std::int64_t num_rows) {
  StepExperts& step = *step_experts_;
  const ExpertRows& rows = step.rows;
  const PackedMatrix& first_down = packed(*weights.down[0]);
  const bool is_shared = weights.shared_down != nullptr;
  const std::int64_t width = first_down.rows(), panels = first_down.num_panels();
  const std::int64_t shared_width = is_shared ? weights.shared_down->rows() : 0;
  const std::int64_t shared_panels = is_shared ? packed(weights.shared_down)->num_panels() : 0;
  const MatrixView outputs = rows_in(step.outputs, rows.num_slots(), width),
                   shared_outputs = rows_in(step.shared_outputs, is_shared ? num_rows : 0, shared_width);
  const auto num_used = static_cast<std::int64_t>(rows.used().size());
  const Pieces pieces(num_used, panels, shared_panels, panels_per_item(num_used * panels + shared_panels));
  for_each_piece(num_rows, pieces.count(), [&](std::int64_t index) {
    const Pieces::Piece piece = pieces.at(index);
    if (piece.expert == Pieces::kShared) {
      multiply_panels(*packed(weights.shared_down), step.shared_hidden, piece.first_panel, piece.last_panel,
                      shared_outputs);
      return;
    }
    const ExpertRows::Expert& expert = rows.used()[static_cast<std::size_t>(piece.expert)];
    const auto number = static_cast<std::size_t>(expert.index);
    multiply_panels(packed(*weights.down[number]), step.hidden, {expert.first_slot, expert.end_slot},
                    piece.first_panel, piece.last_panel, outputs);
    const auto [first, count] = columns_of(piece, width);
    for (std::int64_t slot = expert.first_slot; slot < expert.end_slot; ++slot) {
      add_bias(bias_of(weights.down_bias, expert.index, width), outputs.row(slot), first, count);
      if (!weights.output_scale.empty())
        kernels_.scale_row(outputs.row(slot) + first, weights.output_scale[number], count);
    }
  });
}

// What the row's experts give, in the order in which it chose them.
void CpuBackend::add_outputs(const ExpertWeights& weights, std::int64_t row, std::int64_t width, float* sum) {
  ExpertRows& rows = step_experts_->rows;
  const float* const outputs = step_experts_->outputs.reserve(0);
  std::fill_n(sum, width, 0.0f);
  for (std::int32_t i = 0; i < weights.routing.num_used; ++i) {
    const float weight = weights.weighs_inputs ? 1.0f : rows.weights_of(row)[i];
    kernels_.add_scaled_row(sum, outputs + rows.slot_of(row, i) * width, weight, width);
  }
}

// Brings the sums of latent rows back to the residual's width, in product_rows_.
void CpuBackend::sum_latent_outputs(const ExpertWeights& weights, std::int64_t num_rows) {
  const PackedMatrix& up = packed(*weights.latent_up);
  const MatrixView sums = rows_in(step_experts_->latent, num_rows, up.columns());
  for_each_row(num_rows, [&](std::int64_t row, std::int32_t) {
    add_outputs(weights, row, sums.columns, sums.row(row));
  });
  set_activations(sums, up.activation_forms());
  const Product products[] = {{&up, rows_in(product_rows_, num_rows, up.rows())}};
  multiply(products);
}

void CpuBackend::add_experts(const ExpertWeights& weights, MatrixView residual) {
  StepExperts& step = *step_experts_;
  const std::int64_t width = residual.columns;
  const bool is_latent = weights.latent_up != nullptr;
  if (is_latent) sum_latent_outputs(weights, residual.rows);
  float* const latent_outputs = product_rows_.reserve(0);
  float* const shared_outputs = step.shared_outputs.reserve(0);
  for_each_row(residual.rows, [&](std::int64_t row, std::int32_t worker) {
    float* sum = latent_outputs + row * width;
    if (!is_latent) {
      sum = worker_scratch_[static_cast<std::size_t>(worker)].reserve(width);
      add_outputs(weights, row, width, sum);
    }
    normalise_if_any(weights.routed_post_norm, sum);
    if (weights.shared_down != nullptr)
      normalise_if_any(weights.shared_post_norm, shared_outputs + row * width);
    if (weights.shared_router != nullptr) {
      const auto share = static_cast<float>(sigmoid(kernels_, step.shared_scores.reserve(0)[row]));
      kernels_.add_scaled_row(sum, shared_outputs + row * width, share, width);
    } else if (weights.shared_down != nullptr) {
      kernels_.add_row(sum, shared_outputs + row * width, width);
    }
    normalise_if_any(weights.post_norm, sum);
    kernels_.add_row(residual.row(row), sum, width);
    scale_residual(weights.residual_scale, residual.row(row), width);
  });
}

}  // namespace octavo::kernels::cpu
