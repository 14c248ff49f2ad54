// The forward pass: which operations, in which order, over which weights. All arithmetic is the backend's
// (kernels/backend.h); what differs among architectures is in the arguments, which are filled in from the
// configuration (architecture.h).
//
// All are Touvron et al. 2023, arXiv:2302.13971, in outline: pre-normalised attention (or a recurrent layer
// in its place) and a feed-forward layer, each added to the residual stream.
//
// Ownership: owns weights and activation buffers; the backend outlives it. Engine thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/kv_use.h"
#include "engine/model/model_config.h"
#include "engine/model/weights.h"
#include "kernels/backend.h"

namespace octavo::model {

// Where layers keep what they know of the tokens before: as their kinds need them, else null.
struct LayerCaches {
  kernels::KvCache* kv = nullptr;         // of attention
  kernels::KvCache* window_kv = nullptr;  // of attention with a window, where that is set apart
  kernels::StateCache* states = nullptr;  // of recurrent layers
};

class Transformer {
 public:
  // Allocates activations for steps of at most `max_num_tokens` rows. `sets_windows_apart`: layers with a
  // window keep their keys and values in a pool of their own (kv_use.h).
  static Result<Transformer> create(const ModelConfig& config, Weights weights, kernels::Backend& backend,
                                    std::int32_t max_num_tokens, bool sets_windows_apart = false);

  // What create() allocates beside the weights.
  static std::int64_t activation_bytes(const ModelConfig& config, std::int32_t max_num_tokens);
  std::int64_t activation_bytes() const;

  // Computes the rows of `batch` through all layers, writes their keys and values, and replaces the states of
  // their sequences. The rows' last activations stay until the next call.
  //   token_ids  [batch.num_tokens], below vocabulary_size; batch.rotations is filled in here
  //   caches     batch says where in each of them
  //   chosen     [layers with experts, num_tokens, experts that a token uses]: which these are; empty: nobody
  //   asks
  //   draws      the next draw_tokens()'s, as Backend::run_step() takes them
  void forward(kernels::PagedBatch batch, std::span<const std::int32_t> token_ids, const LayerCaches& caches,
               std::span<std::int32_t> chosen = {}, const kernels::StepDraws& draws = {});

  // The states take up what counts of the drafts of the last forward(), whose batch this is.
  //   num_accepted  [batch.num_sequences]
  void accept_drafts(const kernels::PagedBatch& batch, std::span<const std::int32_t> num_accepted,
                     kernels::StateCache& states);

  // What a backend wants to have done before the first step (first_steps.cc): it gets the angles that it
  // keeps, and steps are rehearsed and recorded, so that forward() can start a whole step as one. After
  // Backend::reserve_step(), for this pool, which from then on is the only one and of which nothing is known
  // yet. Errors: kCancelled; the backend's.
  Result<void> prepare_steps(kernels::KvCache& kv, const LoadProgress& progress);

  // Of rows of the last forward().
  //   rows  indices below its num_tokens   out  [rows.size(), vocabulary_size]
  void logits(std::span<const std::int32_t> rows, kernels::MatrixView out, kernels::LogitsSummary summary);
  // What the head reads of them: after the output norm.   out  [rows.size(), embedding_length]
  void hidden_states(std::span<const std::int32_t> rows, kernels::MatrixView out);
  // As Backend::draw_tokens, of rows of the last forward().
  void draw_tokens(std::span<const std::int32_t> rows, std::span<const kernels::TokenDraw> draws,
                   std::span<kernels::DrawnToken> out, const kernels::LogitAdjustments& adjustments);
  // As Backend::start_draws, of rows of the last forward(), which was told them.
  void start_draws(const kernels::StepDraws& draws);

  // Multi-token prediction. REQUIRES, of all: config.guesses_next_tokens.
  //
  // For each row of `batch` what may come two tokens behind the one of row rows[i] of the last forward(), of
  // which next_token_ids[i] is known to be the next. Keys and values of a layer of its own are written where
  // the batch says: a row stands at the place and position of the token that it begins with.
  void predict(kernels::PagedBatch batch, std::span<const std::int32_t> rows,
               std::span<const std::int32_t> next_token_ids, kernels::KvCache& kv);
  // The same one token further, behind rows of the last predict() or predict_further(), whose own guesses are
  // next_token_ids.
  void predict_further(kernels::PagedBatch batch, std::span<const std::int32_t> rows,
                       std::span<const std::int32_t> next_token_ids, kernels::KvCache& kv);
  // As logits(), of rows of the last of these.
  void predicted_logits(std::span<const std::int32_t> rows, kernels::MatrixView out,
                        kernels::LogitsSummary summary);

  const Weights& weights() const { return weights_; }
  // Of layers with experts, ascending.
  std::vector<std::int32_t> expert_layers() const;

 private:
  Transformer(const ModelConfig& config, Weights weights, kernels::Backend& backend, bool sets_windows_apart);

  void find_angles(kernels::PagedBatch& batch);
  Result<void> keep_rotations();
  Result<void> rehearse(const kernels::SampleStep& step, kernels::KvCache& kv);
  void rehearse_draws(std::int32_t num_rows);
  Result<void> record(const kernels::SampleStep& sample, kernels::KvCache& kv);
  // From rows of `hidden`, which `output_norm` makes what the model gives to its head.
  void run_next_token_layer(kernels::PagedBatch batch, kernels::ConstMatrixView hidden,
                            const PreparedNorm& output_norm, std::span<const std::int32_t> rows,
                            std::span<const std::int32_t> next_token_ids, kernels::KvCache& kv);
  const PreparedNorm& next_token_output_norm() const;
  kernels::MatrixView predicted_rows() const;
  // The layer that guesses next tokens is behind the others.
  const LayerWeights& layer_at(std::int32_t index) const;
  void compute(const kernels::PagedBatch& batch, std::span<const std::int32_t> token_ids,
               const LayerCaches& caches, std::span<std::int32_t> chosen);
  // Attention, recurrence or both of layer `index`, up to their last projections, which mix() adds.
  kernels::MatrixView attend(const kernels::PagedBatch& batch, std::int32_t index, const LayerCaches& caches,
                             kernels::MatrixView residual);
  kernels::MatrixView attend(const kernels::PagedBatch& batch, std::int32_t index, kernels::KvCache* kv,
                             kernels::MatrixView residual);
  kernels::MatrixView run_recurrent(const kernels::PagedBatch& batch, std::int32_t index,
                                    kernels::StateCache* states, kernels::MatrixView residual);
  void mix(const kernels::PagedBatch& batch, std::int32_t index, const LayerCaches& caches,
           kernels::MatrixView residual);
  // A layer whose branches stand side by side.
  void attend_beside_feed_forward(const kernels::PagedBatch& batch, std::int32_t index,
                                  const LayerCaches& caches, kernels::MatrixView residual);
  // Of a layer without experts, up to its last projection.
  kernels::MatrixView feed_forward_hidden(std::int32_t index, kernels::MatrixView residual);
  void feed_forward(std::int32_t index, kernels::MatrixView residual, std::span<std::int32_t> chosen);
  void add_layer_embedding(std::int32_t index, kernels::MatrixView residual);
  kernels::OutputHead output_head() const;
  kernels::MatrixView residual_rows() const;
  kernels::NormWeights norm_of(const PreparedNorm& norm) const;
  kernels::NormWeights post_norm_of(const PreparedNorm& norm) const;  // of what a branch adds
  kernels::AttentionInputWeights attention_input(const LayerWeights& layer) const;
  kernels::LatentInputWeights latent_input(const LayerWeights& layer) const;
  kernels::AttentionGateWeights attention_gate(const LayerWeights& layer) const;
  kernels::ProjectionWeights attention_output(const LayerWeights& layer) const;
  kernels::DeltaNetWeights delta_net(const LayerWeights& layer) const;
  kernels::StateSpaceWeights state_space(const LayerWeights& layer) const;
  kernels::ShortConvolutionWeights short_convolution(const LayerWeights& layer) const;
  kernels::FeedForwardInputWeights feed_forward_input(const LayerWeights& layer) const;
  kernels::LayerEmbeddingWeights layer_embedding() const;
  kernels::ExpertWeights experts_of(const LayerWeights& layer) const;
  kernels::ProjectionWeights feed_forward_output(const LayerWeights& layer) const;

  // Set once.
  ModelConfig config_;
  std::vector<kernels::AttentionShape> shapes_;  // of each layer, and of the one that guesses next tokens
  std::vector<KvUse> kv_uses_;                   // likewise
  Weights weights_;
  kernels::Backend* backend_;
  // Rows of one step. [max_num_tokens, width], widths as in activation_widths().
  std::unique_ptr<kernels::Buffer> residual_, query_, mixed_, hidden_, layer_embeddings_;
  // Of the layer that guesses next tokens; null where there is none. predicted_[0] is the newest.
  std::unique_ptr<kernels::Buffer> next_embeddings_;
  std::array<std::unique_ptr<kernels::Buffer>, 2> predicted_;
  bool rotations_are_kept_ = false;  // by the backend
  std::vector<float> rotations_, local_rotations_, query_scales_;
};

}  // namespace octavo::model
