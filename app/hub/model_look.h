// A model on a hub before anything of its weights is downloaded: its header, fetched by ranges, says whether
// it runs here and what it would take.
//
// The header stands in a file with holes where the weights would be, as long as the whole, so that what looks
// into models on the disk (engine/model_preview.h) looks into this one, too. Nothing else may read it: its
// weights are zeros. The folder goes with this object.
//
// Thread: one; blocks as the client does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "app/hub/hub_client.h"
#include "app/hub/model_choice.h"
#include "engine/api/engine_options.h"
#include "engine/base/result.h"
#include "engine/model_preview.h"

namespace octavo::hub {

enum class ModelFit {
  kFits,
  kSlow,   // it fits, and answers slower than people read
  kNever,  // not into this machine's memory
};
const char* fit_name(ModelFit fit);  // for programs: "fits", "slow", "does not fit"

struct ModelNeed {
  std::int64_t needed_bytes = 0;  // weights, working memory, and what one full context keeps
  std::int64_t read_bytes = 0;    // of weights, for each token
  ModelFit fit = ModelFit::kFits;
  std::string sentence = {};  // "Needs 5.1 GiB of memory"
};

// Slower than this, people wait for words.
inline constexpr double kReadingTokensPerS = 4.0;
// What a desktop's memory delivers, where nobody has measured it.
inline constexpr double kUsualReadBytesPerS = 20e9;

// What is known without its header: weights as large as the file, a fifth more for the rest.
ModelNeed estimate_need(std::int64_t file_bytes, std::int64_t read_bytes, std::int64_t available_bytes,
                        double read_bytes_per_s = kUsualReadBytesPerS);

// The same from its header: the engine's own plan. Error: no machine can run it, and why.
Result<ModelNeed> plan_need(const ModelPreview& preview, const EngineOptions& options,
                            std::int64_t available_bytes, double read_bytes_per_s = kUsualReadBytesPerS);

// Checks a file before it is opened here; empty: nobody does.
using CheckHeader = std::function<Result<void>(const std::filesystem::path&)>;

// The most that is fetched of a header.
inline constexpr std::int64_t kMostHeaderBytes = std::int64_t{64} << 20;

// Errors: what speaks against the model, in the words of opening it; or why it could not be fetched.
Result<ModelPreview> look_into(HubClient& client, const HubRepository& repository, const GgufModel& model,
                               const CheckHeader& check = {});

}  // namespace octavo::hub
