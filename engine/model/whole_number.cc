#include "engine/model/whole_number.h"

namespace octavo::model {

Result<std::int32_t> read_whole(const Metadata& header, const std::string& key, const WholeRange& range) {
  OCTAVO_TRY(const auto value, header.find<std::uint64_t>(key));
  const std::uint64_t number = value.value_or(0);
  if (number >= static_cast<std::uint64_t>(range.least) && number <= static_cast<std::uint64_t>(range.most))
    return static_cast<std::int32_t>(number);
  return header.error_about(key, ErrorCode::kDamagedFile,
                            (value ? "is " + std::to_string(number) : "is missing") + "; " +
                                std::to_string(range.least) + " to " + std::to_string(range.most) +
                                " is allowed; convert the model again");
}

}  // namespace octavo::model
