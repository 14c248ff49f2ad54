#include "kernels/cuda/sampling/sample_tokens.h"

#include <algorithm>
#include <cmath>

namespace octavo::kernels::cuda {
namespace {

// A little below the limits themselves: what decides is exact. Of top_p: all tokens below together weigh less
// than what it leaves out, because the best one weighs 1.
double reach_of(const DeviceDraw& draw, double temperature, std::int64_t vocabulary) {
  const double least =
      draw.weighs_all() ? 0.5 * (1.0 - draw.top_p) / static_cast<double>(vocabulary) : draw.min_p;
  return least > 0.0 ? temperature * (std::log(least) - 1e-6) - 1e-6 : 0.0;
}

// Where the list of the draw's row is, if it has one.
void note_adjustment(const AdjustedRows& adjusted, DeviceDraw& draw) {
  const auto found = std::ranges::lower_bound(adjusted.rows, draw.row, {}, &RowAdjustment::row);
  if (found == adjusted.rows.end() || found->row != draw.row) return;
  draw.first_adjusted = found->first_token;
  draw.num_adjusted = found->num_tokens;
}

}  // namespace

DeviceDraw device_draw(const TokenDraw& draw, std::int32_t row, std::int64_t vocabulary) {
  DeviceDraw result{
      .row = row,
      .top_k = draw.top_k > 0 && draw.top_k < vocabulary ? draw.top_k : 0,
      .inverse_temperature = draw.temperature < kGreedyTemperature ? 0.0 : 1.0 / draw.temperature,
      .top_p = std::min(draw.top_p, 1.0),
      .min_p = draw.min_p,
      .uniform = draw.uniform,
      .reach = 0.0};
  result.reach = reach_of(result, draw.temperature, vocabulary);
  return result;
}

bool are_best_of_rows(std::span<const TokenDraw> draws, std::int32_t first_row) {
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const bool is_next = draws[i].row == first_row + static_cast<std::int32_t>(i);
    if (!is_next || !(draws[i].temperature < kGreedyTemperature)) return false;
  }
  return true;
}

DrawKinds DrawKinds::of(std::span<const DeviceDraw> draws) {
  DrawKinds kinds{.best = false};
  for (const DeviceDraw& draw : draws) {
    kinds.best |= draw.is_greedy();
    kinds.random |= !draw.is_greedy();
    kinds.cut |= !draw.is_greedy() && draw.has_cut();
  }
  return kinds;
}

Result<TokenSampler> TokenSampler::create(Stream& stream, std::int64_t vocabulary_size) {
  constexpr const char* kPurpose = "working memory";
  TokenSampler sampler;
  const std::int64_t sums_bytes =
      kDrawsTogether * num_logits_pieces(vocabulary_size) * static_cast<std::int64_t>(sizeof(double));
  OCTAVO_TRY(sampler.states_,
             DeviceMemory::allocate(kDrawsTogether * static_cast<std::int64_t>(sizeof(DrawState)), kPurpose));
  OCTAVO_TRY(sampler.bins_, DeviceMemory::allocate(
                                kDrawsTogether * static_cast<std::int64_t>(sizeof(SampleBins)), kPurpose));
  OCTAVO_TRY(sampler.piece_sums_, DeviceMemory::allocate(sums_bytes, kPurpose));
  sampler.draws_.reserve(kDrawsTogether);
  stream.fill(sampler.bins_.data(), 0, sampler.bins_.bytes());
  return Result<TokenSampler>(std::move(sampler));
}

void TokenSampler::draw(Stream& stream, UploadRing& inputs, const SampleInput& input, std::int32_t first_row,
                        std::span<const TokenDraw> draws, DrawnToken* results, const AdjustedRows& adjusted) {
  if (adjusted.rows.empty() && are_best_of_rows(draws, first_row))
    return choose_best(stream, input, nullptr, static_cast<std::int32_t>(draws.size()), results);
  for (std::size_t begin = 0; begin < draws.size(); begin += kDrawsTogether) {
    const auto some = draws.subspan(begin, std::min<std::size_t>(kDrawsTogether, draws.size() - begin));
    draws_.clear();
    for (const TokenDraw& each : some) {
      draws_.push_back(device_draw(each, each.row - first_row, input.vocabulary));
      note_adjustment(adjusted, draws_.back());
    }
    const std::span<const DeviceDraw> round = draws_;
    inputs.begin(stream, UploadRing::padded(static_cast<std::int64_t>(round.size_bytes())));
    const DeviceDraw* const on_device = inputs.put(round);
    inputs.send(stream);
    draw_listed(stream, input, on_device, static_cast<std::int32_t>(round.size()), DrawKinds::of(round),
                results + begin);
    const auto is_adjusted = [](const DeviceDraw& draw) { return draw.num_adjusted > 0; };
    if (std::any_of(draws_.begin(), draws_.end(), is_adjusted)) {
      correct_logprobs(stream, input, on_device, static_cast<std::int32_t>(draws_.size()), adjusted,
                       results + begin);
    }
  }
}

void TokenSampler::draw_listed(Stream& stream, const SampleInput& input, const DeviceDraw* draws,
                               std::int32_t num_draws, const DrawKinds& kinds, DrawnToken* results) {
  if (kinds.best) choose_best(stream, input, draws, num_draws, results);
  if (!kinds.random) return;
  const SampleScratch scratch{states_.as<DrawState>(), bins_.as<SampleBins>(), piece_sums_.as<double>()};
  for (std::int32_t begin = 0; begin < num_draws; begin += kDrawsTogether) {
    const std::int32_t count = std::min(kDrawsTogether, num_draws - begin);
    find_floors(stream, input, draws + begin, count, scratch);
    if (kinds.cut) {
      fill_bins(stream, input, draws + begin, count, scratch);
      find_cuts(stream, input, draws + begin, count, scratch);
    }
    weigh_kept(stream, input, draws + begin, count, scratch);
    draw_kept(stream, input, draws + begin, count, scratch, results + begin);
  }
}

}  // namespace octavo::kernels::cuda
