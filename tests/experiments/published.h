// What others say, as data: the paper (Kwon et al. 2023, arXiv:2309.06180; values of its figures from the
// text and the authors' artifact), and an independent simulation (simulate_paper.py, seed 1), which shares no
// code with ours. Caveats of each figure: README.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/api/engine_options.h"

namespace octavo::paper {

// Figure 2 (percent of KV memory) and figure 13a (batched requests): ShareGPT, OPT-13B.
struct ManagerFigures {
  double tokens, reserved, internal, unreserved;  // percent of all slots
  double batched_requests;
};

struct ManagerRow {
  MemoryManager manager;
  std::string_view name;
  ManagerFigures paper, simulation;
};

inline constexpr std::array kManagers = {
    ManagerRow{
        MemoryManager::kOrcaMax, "Orca (Max)", {20.4, 13.3, 57.3, 8.9, 7.00}, {20.8, 13.5, 56.8, 8.9, 7.0}},
    ManagerRow{MemoryManager::kOrcaPow2,
               "Orca (Pow2)",
               {26.8, 17.9, 13.6, 41.6, 9.81},
               {28.5, 18.5, 14.3, 38.6, 9.6}},
    ManagerRow{MemoryManager::kOrcaOracle,
               "Orca (Oracle)",
               {38.2, 25.2, 0.0, 36.6, 13.62},
               {38.6, 25.0, 0.0, 36.4, 13.0}},
};

inline constexpr double kPaperPagedTokens = 96.3;  // block size 16
inline constexpr double kPaperPagedBatched = 30.42;

// Tokens held and batched requests by block size.
struct BlockSizeRow {
  std::int32_t block_size;
  double tokens, batched_requests;
};

inline constexpr std::array kBlockSizes = {
    BlockSizeRow{1, 97.9, 33.0},   BlockSizeRow{8, 97.2, 32.8},  BlockSizeRow{16, 96.4, 32.5},
    BlockSizeRow{32, 94.8, 32.0},  BlockSizeRow{64, 91.8, 30.8}, BlockSizeRow{128, 86.1, 28.8},
    BlockSizeRow{256, 76.4, 25.6},
};

// Figure 15: percent of blocks saved by sharing. The paper gives Alpaca's values one by one and ShareGPT's as
// a range.
struct SavingRow {
  std::int32_t num_outputs;
  double paper_alpaca, simulation_alpaca, simulation_sharegpt;
};
struct SavingRange {
  double least, most;
};

inline constexpr std::array kParallelSampling = {
    SavingRow{2, 6.09, 6.7, 16.7},
    SavingRow{4, 8.53, 10.2, 24.9},
    SavingRow{6, 9.79, 11.3, 27.4},
};
inline constexpr SavingRange kPaperSamplingShareGpt = {16.2, 30.5};

inline constexpr std::array kBeamSearch = {
    SavingRow{2, 37.56, 38.6, 46.5},
    SavingRow{4, 53.13, 53.2, 65.5},
    SavingRow{6, 55.16, 54.9, 67.5},
};
inline constexpr SavingRange kPaperBeamShareGpt = {44.3, 66.3};

}  // namespace octavo::paper
