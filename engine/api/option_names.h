// The names that choose an option's value, where the command line and Python both know it: a list of each, so
// that both take the same words.
#pragma once

#include <initializer_list>

#include "engine/api/engine_options.h"

namespace octavo {

template <class Value>
struct NamedValue {
  const char* name;
  Value value;
};

template <class Value>
using NamedValues = std::initializer_list<NamedValue<Value>>;

inline constexpr NamedValues<Device> kDeviceNames = {
    {"cpu", Device::kCpu}, {"cuda", Device::kCuda}, {"auto", Device::kAuto}};

inline constexpr NamedValues<WeightType> kWeightTypeNames = {
    {"auto", WeightType::kAuto},         {"float16", WeightType::kFloat16}, {"half", WeightType::kFloat16},
    {"bfloat16", WeightType::kBfloat16}, {"float32", WeightType::kFloat32}, {"float", WeightType::kFloat32}};

inline constexpr NamedValues<WeightQuantisation> kWeightQuantisationNames = {
    {"none", WeightQuantisation::kNone}, {"Q8_0", WeightQuantisation::kQ8_0},
    {"Q6_K", WeightQuantisation::kQ6_K}, {"Q5_K", WeightQuantisation::kQ5_K},
    {"Q5_1", WeightQuantisation::kQ5_1}, {"Q5_0", WeightQuantisation::kQ5_0},
    {"Q4_K", WeightQuantisation::kQ4_K}, {"Q4_1", WeightQuantisation::kQ4_1},
    {"Q4_0", WeightQuantisation::kQ4_0}};

inline constexpr NamedValues<KvCacheType> kKvCacheTypeNames = {
    {"auto", KvCacheType::kAuto},        {"f32", KvCacheType::kF32},     {"f16", KvCacheType::kF16},
    {"bf16", KvCacheType::kBf16},        {"fp8", KvCacheType::kFp8E4m3}, {"fp8_e4m3", KvCacheType::kFp8E4m3},
    {"fp8_e5m2", KvCacheType::kFp8E5m2}, {"int8", KvCacheType::kInt8}};

inline constexpr NamedValues<PreemptionPolicy> kPreemptionPolicyNames = {
    {"auto", PreemptionPolicy::kAuto},
    {"swap", PreemptionPolicy::kSwap},
    {"recompute", PreemptionPolicy::kRecompute},
    {"cost", PreemptionPolicy::kCost}};

}  // namespace octavo
