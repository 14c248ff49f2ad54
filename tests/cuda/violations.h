// Makes every test of the program fail that leaves a violation of the emulated device behind, and gives the
// next one a device that works. Tests that expect violations take them: emulation::take_violations().
#pragma once

#include <gtest/gtest.h>

#include "tests/emulation/emulation.h"

namespace octavo::emulation {

class ViolationListener : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override {
    take_violations();
    heal();
  }
  void OnTestEnd(const ::testing::TestInfo&) override {
    for (const std::string& violation : take_violations()) ADD_FAILURE() << violation;
  }
};

// Once in the program, at namespace scope.
inline const bool kListens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ViolationListener);
  return true;
}();

}  // namespace octavo::emulation
