#include "engine/output_collector.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr RequestId kRequest{7}, kOther{8};

TokensGenerated token_of(RequestId request_id, std::int32_t output_index, TokenId token_id) {
  TokensGenerated tokens;
  tokens.request_id = request_id;
  tokens.output_index = output_index;
  tokens.token_ids = {token_id};
  tokens.logprobs = {-0.5f};
  tokens.text = std::string(1, static_cast<char>('a' + token_id));
  return tokens;
}

TEST(OutputCollector, FoldsTheEventsOfItsRequests) {
  OutputCollector collector;
  collector.expect(kRequest, 2);
  collector.add(RequestAccepted{kRequest, {1, 2}, 42});
  for (const RequestId request_id : {kRequest, kOther}) {
    for (const std::int32_t index : {0, 1}) {
      collector.add(token_of(request_id, index, index));
      collector.add(OutputFinished{request_id, index, FinishReason::kLength, {}, "", 0.0});
    }
  }
  EXPECT_FALSE(collector.done());
  collector.add(RequestFinished{kRequest, {}, {}});
  ASSERT_TRUE(collector.done());
  const std::vector<RequestOutput> answers = collector.take();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].seed, 42u);
  ASSERT_EQ(answers[0].outputs.size(), 2u);
  EXPECT_EQ(answers[0].outputs[0].text, "a");
  EXPECT_EQ(answers[0].outputs[1].token_ids, std::vector<TokenId>{1});
  EXPECT_EQ(answers[0].outputs[1].finish_reason, FinishReason::kLength);
}

// Somebody expects one output and asked for three.
TEST(OutputCollector, PassesOverOutputsThatWereNotExpected) {
  OutputCollector collector;
  collector.expect(kRequest, 1);
  collector.add(token_of(kRequest, 0, 3));  // of a request that was not accepted yet: there is none
  collector.add(RequestAccepted{kRequest, {1}, 42});
  for (const std::int32_t index : {-1, 0, 1, 2, 1'000'000}) {
    collector.add(token_of(kRequest, index, 5));
    collector.add(OutputFinished{kRequest, index, FinishReason::kStop, {}, "", 0.0});
  }
  collector.add(RequestFinished{kRequest, {}, {}});
  EXPECT_TRUE(collector.done());
  const std::vector<RequestOutput> answers = collector.take();
  ASSERT_EQ(answers[0].outputs.size(), 1u);
  EXPECT_EQ(answers[0].outputs[0].text, "f");
}

}  // namespace
}  // namespace octavo
