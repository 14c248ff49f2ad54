// What a model guesses of its next tokens, through chunks, blocks and drafts, against the same predictions of
// one list of tokens computed at once.
#include "engine/runner/next_token_guesser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/gguf_file.h"
#include "tests/model/one_sequence.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo::runner {
namespace {

using Tokens = std::vector<TokenId>;

constexpr std::int32_t kBlockSize = 4, kMostTokens = 64;

TokenId best_of(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

// A model, and one sequence of it whose steps are made by hand.
class Guessing {
 public:
  explicit Guessing(const std::filesystem::path& path)
      : backend_(model::cpu_backend(kernels::Activation::kF32)), file_(*model::GgufFile::open(path)) {
    config_ = *model::read_model_config(file_.header());
    model::ModelTensors tensors = *model::find_model_tensors(file_, config_);
    EXPECT_TRUE(model::add_next_token_layer(file_, config_, tensors));
    model::Weights weights = *model::prepare_weights(std::move(tensors), WeightType::kAuto, *backend_, {});
    transformer_ = std::make_unique<model::Transformer>(
        *model::Transformer::create(config_, std::move(weights), *backend_, kMostTokens));
    const kernels::KvLayout layout{kernels::KvType::kF32, kBlockSize, model::find_kv_uses(config_).places};
    kv_ = *backend_->allocate_kv_cache(layout, kMostTokens / kBlockSize);
    for (std::int32_t block = kMostTokens / kBlockSize - 1; block >= 0; --block)
      block_table_.push_back(BlockId{block});
    kernels::StateLayout states = config_.recurrent.state_layout();
    states.num_draft_rows = 3;
    if (states.empty()) return;
    states_ = *backend_->allocate_state_cache(states, 1);
    backend_->clear_states(*states_, std::vector<std::int32_t>{0});
  }

  // Rows of known tokens from `first` on, and so many guesses behind them; returned are the guesses. Of the
  // tokens that were drawn, these count.
  Tokens step(const Tokens& known, std::int32_t first, std::int32_t num_rows, std::size_t num_guesses,
              const Tokens& drawn) {
    Tokens tokens = known;
    tokens.resize(static_cast<std::size_t>(first + num_rows));
    tokens.resize(tokens.size() + num_guesses);
    scheduler::SchedulerOutput step;
    scheduler::ScheduledSequence& row = step.sequences.emplace_back();
    row.sequence_id = kSequence;
    row.known_token_ids = known;
    row.start_position = first;
    row.token_ids = std::span(tokens).subspan(static_cast<std::size_t>(first));
    row.block_table = block_table_;
    row.num_draft_tokens = static_cast<std::int32_t>(num_guesses);
    row.to_guess = std::span(tokens).last(num_guesses);
    if (states_) row.state = BlockId{0};
    step.num_draft_tokens = row.num_draft_tokens;
    EXPECT_TRUE(guesser_.guess(step, kBlockSize, *transformer_, *kv_, best_tokens()));
    ModelInput input;
    input.assemble(step, kBlockSize);
    transformer_->forward(input.batch(), input.token_ids(), {.kv = kv_.get(), .states = states_.get()});
    const std::vector<std::int32_t> accepted = {
        num_guesses == 0 ? 0 : static_cast<std::int32_t>(drawn.size()) - 1};
    if (states_) transformer_->accept_drafts(input.batch(), accepted, *states_);
    std::vector<scheduler::CommittedToken> committed;
    for (const TokenId token : drawn) committed.push_back({kSequence, token});
    const auto guessable = guesser_.follow(step, committed, kBlockSize, *transformer_, *kv_);
    EXPECT_EQ(guessable, drawn.empty() ? std::vector<SequenceId>() : std::vector<SequenceId>{kSequence});
    return {row.to_guess.begin(), row.to_guess.end()};
  }

 private:
  static constexpr SequenceId kSequence{5};

  NextTokenGuesser::BestTokens best_tokens() {
    return [this](std::span<const std::int32_t> rows, std::span<TokenId> best) -> Result<void> {
      const auto size = static_cast<std::size_t>(config_.vocabulary_size);
      std::vector<float> logits(rows.size() * size), sums(rows.size());
      std::vector<float> maxima(
          rows.size() * static_cast<std::size_t>(kernels::num_logits_pieces(config_.vocabulary_size)));
      transformer_->predicted_logits(rows,
                                     {.data = logits.data(),
                                      .rows = static_cast<std::int64_t>(rows.size()),
                                      .columns = config_.vocabulary_size,
                                      .stride = config_.vocabulary_size},
                                     {.log_sum_exp = sums, .piece_maxima = maxima});
      for (std::size_t i = 0; i < rows.size(); ++i)
        best[i] = best_of(std::span(logits).subspan(i * size, size));
      return {};
    };
  }

  const std::unique_ptr<kernels::Backend> backend_;
  model::GgufFile file_;
  model::ModelConfig config_;
  std::unique_ptr<model::Transformer> transformer_;
  std::unique_ptr<kernels::KvCache> kv_;
  std::unique_ptr<kernels::StateCache> states_;  // null: no layer is recurrent
  std::vector<BlockId> block_table_;
  NextTokenGuesser guesser_;
};

class GuessesOfAModel : public testing::TestWithParam<const char*> {
 protected:
  GuessesOfAModel() {
    const nlohmann::json model = test::tiny_model(GetParam());
    test::make_tiny_model(model).write(folder_ / "model.gguf");
    text_ = model["token_ids"].get<Tokens>();
    text_.resize(20);
  }

  // Of what follows the list, so many, one after the other.
  Tokens expected(const Tokens& known, std::size_t count) const {
    Tokens guesses;
    for (std::size_t i = 0; i < count; ++i) {
      model::OneSequence sequence(folder_ / "model.gguf", model::cpu_backend(kernels::Activation::kF32),
                                  kMostTokens, {.predicts = true});
      const std::vector<float> logits = sequence.predictions_of(known, guesses);
      guesses.push_back(best_of(std::span(logits).last(sequence.vocabulary_size())));
    }
    return guesses;
  }
  static Tokens with(Tokens tokens, const Tokens& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
  }

  const test::TemporaryFolder folder_;
  Tokens text_;
};

INSTANTIATE_TEST_SUITE_P(Models, GuessesOfAModel,
                         testing::Values("glm4moe_predicts", "qwen35_odd_sizes", "qwen35moe"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GuessesOfAModel, AreThoseOfItsTokensComputedAtOnce) {
  Guessing guessing(folder_ / "model.gguf");
  guessing.step(text_, 0, 7, 0, {});
  guessing.step(text_, 7, 13, 0, {40});
  const Tokens known = with(text_, {40});
  EXPECT_EQ(guessing.step(known, 20, 1, 3, {41}), expected(known, 3));
  const Tokens next = with(known, {41});
  EXPECT_EQ(guessing.step(next, 21, 1, 2, {42}), expected(next, 2)) << "after a draft that was wrong";
}

TEST_P(GuessesOfAModel, GoOnBehindWhatCameTrueOfADraft) {
  Guessing guessing(folder_ / "model.gguf");
  guessing.step(text_, 0, 20, 0, {40});
  Tokens known = with(text_, {40});
  const Tokens first = guessing.step(known, 20, 1, 3, {expected(known, 1)[0], 99});
  known = with(known, {first[0], 99});
  const Tokens whole = expected(known, 3);
  EXPECT_EQ(guessing.step(known, 22, 1, 3, with(whole, {98})), whole);
  known = with(with(known, whole), {98});
  EXPECT_EQ(guessing.step(known, 26, 1, 1, {97}), expected(known, 1)) << "after a draft that was right";
}

}  // namespace
}  // namespace octavo::runner
