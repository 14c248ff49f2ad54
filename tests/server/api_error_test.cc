#include "app/server/api_error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace octavo::app {
namespace {

TEST(ApiError, WhatDoesNotGetBetterIsNeverAStatusThatClientsTryAgain) {
  for (const ErrorCode code : {ErrorCode::kTooLong, ErrorCode::kNotFound, ErrorCode::kInvalidArgument,
                               ErrorCode::kUnsupported, ErrorCode::kOutOfMemory, ErrorCode::kInvalidLogits}) {
    const ApiError told = api_error_of({.code = code, .message = "no"});
    EXPECT_TRUE(told.status == 400 || told.status == 404) << told.status;
  }
  EXPECT_EQ(api_error_of({.code = ErrorCode::kDevice, .message = "no"}).status, 500);
}

TEST(ApiError, NamesTheFieldAndTheCode) {
  const Error error{.code = ErrorCode::kTooLong, .message = "9 tokens > 8", .subject = "prompt"};
  EXPECT_EQ(dump(openai_error(api_error_of(error))),
            R"({"error":{"message":"9 tokens > 8","type":"invalid_request_error","param":"prompt",)"
            R"("code":"context_length_exceeded"}})");
  EXPECT_EQ(dump(openai_error({.status = 401, .type = "authentication_error", .message = "no key"})),
            R"({"error":{"message":"no key","type":"authentication_error","param":null,"code":null}})");
}

}  // namespace
}  // namespace octavo::app
