// The normalizers of a tokenizer.json (text_pipeline.h), one after the other. Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/text_pipeline.h"
#include "engine/tokenizer/text_regex.h"

namespace octavo::tokenizer {

class PipelineNormalizer {
 public:
  // A text may become longer; more than this is refused.
  static constexpr std::size_t kMaxNormalizedBytes = std::size_t{256} << 20;

  static Result<PipelineNormalizer> create(const std::vector<NormalizerStep>& steps);

  struct Normalized {
    std::string text;
    bool keeps_start = true;  // nothing was left out in front of what is there
  };

  // REQUIRES: valid UTF-8; so is what it gives.
  Result<Normalized> normalize(std::string_view text) const;

 private:
  struct ReplaceMatches {
    TextRegex expression;
    std::string text;
  };
  using Step = std::variant<UnicodeForm, Lowercase, StripAccents, StripSpaces, Prepend, Replace,
                            ReplaceMatches, Charsmap>;

  static Result<void> apply(const Step& step, Normalized& normalized);

  std::vector<Step> steps_;
};

}  // namespace octavo::tokenizer
