// Every cap that a model file meets before anything is allocated for it. Each has a test that crosses it by
// one.
#pragma once

#include <cstdint>

namespace octavo::model {

// ---- the container
inline constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{512}
                                                   << 20;  // everything before the tensors' data
inline constexpr std::uint64_t kMaxMetadataKeys = 65'536;
inline constexpr std::uint64_t kMaxTensors = 65'536;
inline constexpr std::uint64_t kMaxKeyBytes = 65'535;
inline constexpr std::uint64_t kMaxTensorNameBytes = 64;
inline constexpr std::uint64_t kMaxStringBytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMaxChatTemplateBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxArrayStrings = std::uint64_t{1}
                                                  << 22;  // booleans, and numbers that are asked for
// What is kept in memory: values up to kMaxShortValueBytes, all of them and the keys in kMaxShortBytes, and
// larger ones of the vocabulary in kMaxVocabularyBytes. Everything else is stepped over.
inline constexpr std::uint64_t kMaxShortValueBytes = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kMaxShortBytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMaxVocabularyBytes = std::uint64_t{128} << 20;
inline constexpr std::uint32_t kMaxTensorDimensions = 4;
inline constexpr std::uint64_t kMaxTensorDimension = std::uint64_t{1} << 40;
inline constexpr std::uint32_t kMinAlignment = 8;
inline constexpr std::uint32_t kMaxAlignment = 65'536;
inline constexpr std::uint32_t kMaxShards = 1'000;
// Of a folder with safetensors, where each expert may be a tensor of its own. The format's own reader has the
// same cap for a header.
inline constexpr std::uint64_t kMaxStoredTensors = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::uint64_t kMaxSafetensorsNameBytes = 1'024;
inline constexpr std::uint32_t kMaxSafetensorsDimensions = 8;
inline constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{4} << 20;  // config.json and its like

// ---- the hyperparameters
inline constexpr std::int32_t kMaxLayers = 1'024;
inline constexpr std::int32_t kMaxHeads = 1'024;
inline constexpr std::int32_t kMaxHeadDim = 4'096;
inline constexpr std::int32_t kMaxEmbeddingLength = 65'536;
inline constexpr std::int32_t kMaxFeedForwardLength = 1 << 20;
inline constexpr std::int32_t kMaxExperts = 4'096;
inline constexpr std::int32_t kMaxStateDim = 1'024;  // of a head of a recurrent layer
inline constexpr std::int32_t kMaxConvolution = 64;  // tokens
inline constexpr std::int32_t kMaxContextLength = 1 << 24;
inline constexpr std::int32_t kMaxVocabularySize = 1 << 22;
inline constexpr double kMinNormEpsilon = 1e-12f;  // as a float: files hold floats
inline constexpr double kMaxNormEpsilon = 1.0;
inline constexpr double kMinRopeFrequencyBase = 1.0;
inline constexpr double kMaxRopeFrequencyBase = 1e12;  // Falcon-H1 has 1e11
// Of every factor that stretches positions or scales an angle or a score, in either direction.
inline constexpr double kMinFactor = 1e-3;
inline constexpr double kMaxFactor = 1e6;

}  // namespace octavo::model
