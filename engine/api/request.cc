#include "engine/api/request.h"

#include <array>
#include <cstddef>

namespace octavo {
namespace {

constexpr std::array<std::string_view, 4> kRoleNames = {"system", "user", "assistant", "tool"};
constexpr std::array<std::string_view, 2> kPoolingNames = {"last", "mean"};
constexpr std::array<std::string_view, 4> kFinishReasonNames = {"stop", "length", "abort", "error"};

}  // namespace

std::string_view role_name(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

std::optional<Role> parse_role(std::string_view name) {
  for (std::size_t index = 0; index < kRoleNames.size(); ++index) {
    if (name == kRoleNames[index]) return static_cast<Role>(index);
  }
  return std::nullopt;
}

std::string_view pooling_name(Pooling pooling) { return kPoolingNames[static_cast<std::size_t>(pooling)]; }

std::string_view finish_reason_name(FinishReason reason) {
  return kFinishReasonNames[static_cast<std::size_t>(reason)];
}

}  // namespace octavo
