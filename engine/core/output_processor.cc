#include "engine/core/output_processor.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/base/check.h"

namespace octavo {
namespace {

// Length of the longest end of `text` that begins `stop` without being all of it.
std::size_t overlap(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

// Whether a token that brought this end is text of the output.
bool is_text(const std::optional<OutputEnd>& end, bool includes_stop) {
  if (!end || end->finish_reason != FinishReason::kStop) return true;
  const bool is_end_of_sequence = std::holds_alternative<std::monostate>(end->stop_reason);
  return includes_stop && !is_end_of_sequence;
}

}  // namespace

OutputProcessor::OutputProcessor(const tokenizer::Tokenizer& tokenizer, const SamplingParams& sampling,
                                 std::int32_t token_limit)
    : tokenizer_(&tokenizer),
      sampling_(&sampling),
      token_limit_(token_limit),
      detokenizer_(tokenizer, sampling.skip_special_tokens) {}

OutputProcessor::Step OutputProcessor::append(TokenId token) {
  OCTAVO_CHECK(!ended_, "token %d for an output that has ended", token);
  ++num_tokens_;
  Step step;
  step.end = end_by_token(token);
  const std::size_t num_old_bytes = held_text_.size();
  const bool includes_stop = sampling_->include_stop_str_in_output;
  if (is_text(step.end, includes_stop)) held_text_ += detokenizer_.push(token);
  if (step.end) held_text_ += detokenizer_.flush();

  if (const auto match = find_stop(num_old_bytes)) {
    step.text = release(match->position + (includes_stop ? match->stop->size() : 0));
    step.end = OutputEnd{FinishReason::kStop, *match->stop};
  } else {
    step.text = release(held_text_.size() - (step.end ? 0 : num_bytes_to_hold()));
  }
  ended_ = step.end.has_value();
  return step;
}

std::string OutputProcessor::end_now() {
  OCTAVO_CHECK(!ended_, "an output ends once");
  ended_ = true;
  held_text_ += detokenizer_.flush();
  return release(held_text_.size());
}

std::optional<OutputEnd> OutputProcessor::end_by_token(TokenId token) const {
  const bool may_end = num_tokens_ > sampling_->min_tokens;
  // Within a grammar an end is drawn before min_tokens only where nothing else can follow.
  const bool ends_here = sampling_->structured_output || (may_end && !sampling_->ignore_eos);
  if (ends_here && tokenizer_->is_end_of_sequence(token)) return OutputEnd{FinishReason::kStop, {}};
  if (may_end) {
    const auto& stop_ids = sampling_->stop_token_ids;
    if (std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end()) {
      return OutputEnd{FinishReason::kStop, token};
    }
  }
  if (num_tokens_ >= token_limit_) return OutputEnd{FinishReason::kLength, {}};
  return std::nullopt;
}

// The earliest stop string that the newest token completed; of several at one place, the one named first.
// What lies wholly in the first `num_old_bytes` was completed when min_tokens did not yet allow it to count.
std::optional<OutputProcessor::StopMatch> OutputProcessor::find_stop(std::size_t num_old_bytes) const {
  if (num_tokens_ <= sampling_->min_tokens) return std::nullopt;
  std::optional<StopMatch> first;
  for (const std::string& stop : sampling_->stop) {
    const std::size_t from = num_old_bytes >= stop.size() ? num_old_bytes - stop.size() + 1 : 0;
    const std::size_t position = held_text_.find(stop, from);
    if (position != std::string::npos && (!first || position < first->position))
      first = StopMatch{position, &stop};
  }
  return first;
}

std::size_t OutputProcessor::num_bytes_to_hold() const {
  std::size_t num_bytes = 0;
  for (const std::string& stop : sampling_->stop) {
    num_bytes = std::max(num_bytes, overlap(held_text_, stop));
  }
  return num_bytes;
}

std::string OutputProcessor::release(std::size_t num_bytes) {
  std::string text = held_text_.substr(0, num_bytes);
  held_text_.erase(0, num_bytes);
  return text;
}

}  // namespace octavo
