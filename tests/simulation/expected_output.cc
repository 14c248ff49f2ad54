#include "tests/simulation/expected_output.h"

#include "tests/simulation/toy_grammar.h"

namespace octavo::simulation {

ExpectedOutput::ExpectedOutput(const ToyModel& model, const RequestAlone& alone, std::uint32_t output_index)
    : model_(model), alone_(alone), output_index_(output_index), text_(alone) {}

void ExpectedOutput::extend_to(std::size_t num_tokens) {
  while (!text_.has_ended() && !fails_ && token_ids().size() < num_tokens) {
    const ToyModel::Draw draw = model_.draw(text_.folded(), text_.last_token(), alone_.asked.greedy,
                                            alone_.seed, output_index_, token_ids().size());
    fails_ = draw.invalid_logits;
    if (fails_) return;
    top_logprobs_.push_back(ToyModel::alternatives(text_.folded(), alone_.asked.logprobs));
    const auto may_come = [&](TokenId token) { return toy_allows(token_ids(), token); };
    text_.append(alone_.asked.structured ? allowed_from(draw.token, may_come) : draw.token);
    logprobs_.push_back(draw.logprob);
  }
}

std::vector<std::optional<float>> expected_prompt_logprobs(const RequestAlone& alone) {
  std::vector<std::optional<float>> logprobs;
  if (!alone.asked.prompt_logprobs) return logprobs;
  std::uint64_t prefix_hash = ToyModel::root_of(alone.asked.salt);
  for (const TokenId token : alone.asked.prompt) {
    logprobs.push_back(logprobs.empty() ? std::nullopt
                                        : std::optional(ToyModel::prompt_logprob(prefix_hash, token)));
    prefix_hash = ToyModel::extend(prefix_hash, token);
  }
  return logprobs;
}

}  // namespace octavo::simulation
