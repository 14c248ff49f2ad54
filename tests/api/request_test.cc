#include "engine/api/request.h"

#include <gtest/gtest.h>

#include "engine/api/event.h"

namespace octavo {
namespace {

TEST(Role, ComesBackFromItsName) {
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool}) {
    EXPECT_EQ(parse_role(role_name(role)), role);
  }
  EXPECT_EQ(role_name(Role::kAssistant), "assistant");
  for (const std::string_view name : {"", "User", "user ", "developer"})
    EXPECT_EQ(parse_role(name), std::nullopt);
}

TEST(FinishReason, HasTheNamesThatProgramsSee) {
  EXPECT_EQ(finish_reason_name(FinishReason::kStop), "stop");
  EXPECT_EQ(finish_reason_name(FinishReason::kLength), "length");
  EXPECT_EQ(finish_reason_name(FinishReason::kAbort), "abort");
  EXPECT_EQ(finish_reason_name(FinishReason::kError), "error");
}

TEST(EngineEvent, KnowsItsRequest) {
  EngineEvent event = RequestAdmitted{.request_id = {7}};
  EXPECT_EQ(request_id_of(event), RequestId{7});
  event = OutputFinished{.request_id = {9}};
  EXPECT_EQ(request_id_of(event), RequestId{9});
}

}  // namespace
}  // namespace octavo
