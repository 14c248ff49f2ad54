// What sharing gives: parallel samples, beams, and a prefix that all requests have in common.
#include <algorithm>
#include <array>

#include "engine/experiments/experiment_parts.h"
#include "engine/experiments/real/real_parts.h"

namespace octavo::paper {
namespace {

constexpr std::array kWidths = {2, 4, 6};      // samples or beams of a request
constexpr std::array kPrefixes = {80, 341};    // tokens: one and five examples, section 6.4
constexpr std::int32_t kPrefixModelLen = 512;  // these prompts are short as they are
constexpr std::int32_t kPrefixSlots = 4'096;
// Of beams only the blocks are told, which few requests show.
constexpr double kGroupSeconds = 4.0, kBeamSeconds = 2.0, kPrefixSeconds = 2.0;

enum class Asks { kSamples, kSeparately, kBeams };

struct GroupSystem {
  const char* name;
  Asks asks;
  MemoryManager manager;
};
constexpr std::array kGroupSystems = {
    GroupSystem{"samples, paged", Asks::kSamples, MemoryManager::kPaged},
    GroupSystem{"samples, paged, nothing shared", Asks::kSeparately, MemoryManager::kPaged},
    GroupSystem{"samples, Orca (Oracle)", Asks::kSamples, MemoryManager::kOrcaOracle},
    GroupSystem{"beams, paged", Asks::kBeams, MemoryManager::kPaged}};

struct PrefixSystem {
  const char* name;
  bool has_cache;
  MemoryManager manager;
};
constexpr std::array kPrefixSystems = {PrefixSystem{"paged", true, MemoryManager::kPaged},
                                       PrefixSystem{"paged, nothing shared", false, MemoryManager::kPaged},
                                       PrefixSystem{"Orca (Oracle)", false, MemoryManager::kOrcaOracle}};

MeasuredRun plan_groups(const Desk& desk, const GroupSystem& system, std::int32_t width, std::int32_t round) {
  MeasuredRun run{.engine = desk.engine};
  run.engine.memory_manager = system.manager;
  const double seconds = system.asks == Asks::kBeams ? kBeamSeconds : kGroupSeconds;
  const std::int32_t num_groups = std::max(2, desk.num_requests(seconds) / width);
  RequestWriter writer(desk, round);
  std::uint64_t seed = desk.seed;
  for (const RequestLengths lengths : desk_lengths(desk, num_groups, round)) {
    GenerationRequest request = writer.write(lengths);
    if (system.asks == Asks::kBeams) {
      request.sampling.beam_width = width;
    } else {
      request.sampling.temperature = 1.0;
      request.sampling.seed = ++seed;
    }
    if (system.asks == Asks::kSamples) request.sampling.n = width;
    run.requests.push_back({request});
    if (system.asks != Asks::kSeparately) continue;
    for (std::int32_t i = 1; i < width; ++i) {
      request.sampling.seed = ++seed;
      run.requests.push_back({request});
    }
  }
  return run;
}

MeasuredRun plan_translations(const Desk& desk, const PrefixSystem& system, std::int32_t num_prefix_tokens,
                              std::int32_t round) {
  MeasuredRun run{.engine = desk.engine};
  run.engine.memory_manager = system.manager;
  run.engine.enable_prefix_caching = system.has_cache;
  run.engine.max_model_len = kPrefixModelLen;
  run.engine.num_kv_blocks = kPrefixSlots / kDeskBlockSize;
  RequestWriter writer(desk, round);
  UniformStream uniform(desk.seed * 32'452'843 + static_cast<std::uint64_t>(round + 1));
  const Translations source(num_prefix_tokens);
  for (std::int32_t i = 0; i < desk.num_requests(kPrefixSeconds); ++i) {
    ScriptedRequest drawn = source.draw(uniform);
    const std::int32_t room = kPrefixModelLen - drawn.lengths.num_prompt_tokens;
    drawn.lengths.num_output_tokens = std::clamp(drawn.lengths.num_output_tokens, 1, std::max(1, room - 1));
    run.requests.push_back({writer.write(drawn.lengths, drawn.num_shared_tokens)});
  }
  return run;
}

constexpr std::size_t group_case(std::size_t width, std::size_t system) {
  return width * kGroupSystems.size() + system;
}
constexpr std::size_t prefix_case(std::size_t prefix, std::size_t system) {
  return kWidths.size() * kGroupSystems.size() + prefix * kPrefixSystems.size() + system;
}

double groups_per_s(const RealResults& results, std::size_t width, std::size_t system) {
  const double requests = median_of(results[group_case(width, system)], &RunFigures::requests_per_s);
  return kGroupSystems[system].asks == Asks::kSeparately ? requests / kWidths[width] : requests;
}

// Of samples and beams: the paper's ranges for 2, 4 and 6 of them.
void tell_groups(const RealResults& results, ExperimentReport& report) {
  ExperimentPlot speed{"Samples and beams", "outputs for a request", "requests/s"};
  ExperimentPlot saved{"Blocks saved by sharing", "outputs for a request",
                       "% of the blocks that tables name"};
  for (std::size_t s = 0; s < kGroupSystems.size(); ++s) {
    PlotLine line{kGroupSystems[s].name, {}}, blocks{kGroupSystems[s].name, {}};
    for (std::size_t w = 0; w < kWidths.size(); ++w) {
      const auto& rounds = results[group_case(w, s)];
      if (rounds.empty()) continue;
      line.points.push_back({static_cast<double>(kWidths[w]), groups_per_s(results, w, s)});
      blocks.points.push_back(
          {static_cast<double>(kWidths[w]), median_of(rounds, &RunFigures::saved_blocks)});
    }
    speed.lines.push_back(std::move(line));
    const bool shares =
        kGroupSystems[s].manager == MemoryManager::kPaged && kGroupSystems[s].asks != Asks::kSeparately;
    if (shares) saved.lines.push_back(std::move(blocks));
  }
  report.plots.push_back(std::move(speed));
  report.plots.push_back(std::move(saved));
  for (std::size_t w = 0; w < kWidths.size(); ++w) {
    const auto is_done = [&](std::size_t system) { return !results[group_case(w, system)].empty(); };
    const std::string width = std::to_string(kWidths[w]);
    const auto gain = [&](const std::string& name, std::size_t ours, std::size_t other) {
      if (!is_done(ours) || !is_done(other)) return;
      const double gained = ratio(groups_per_s(results, w, ours), groups_per_s(results, w, other));
      report.figures.push_back(compared(width + " " + name, "x", gained, {}, {}, ""));
    };
    gain("samples: shared over nothing shared", 0, 1);
    gain("samples: paged over Orca (Oracle)", 0, 2);
    const auto saves = [&](const std::string& name, std::size_t system, double least, double most) {
      if (is_done(system))
        report.figures.push_back(
            compared(width + " " + name + ": blocks saved", "%",
                     median_of(results[group_case(w, system)], &RunFigures::saved_blocks), least, most,
                     "section 6.3, ShareGPT, for 2, 4 and 6"));
    };
    saves("samples", 0, 16.2, 30.5);
    saves("beams", 3, 44.3, 66.3);
  }
}

void tell_prefixes(const RealResults& results, ExperimentReport& report) {
  ExperimentPlot plot{"A prefix that all requests share", "tokens of the prefix", "requests/s"};
  const auto per_s = [&](std::size_t prefix, std::size_t system) {
    return median_of(results[prefix_case(prefix, system)], &RunFigures::requests_per_s);
  };
  for (std::size_t s = 0; s < kPrefixSystems.size(); ++s) {
    PlotLine line{kPrefixSystems[s].name, {}};
    for (std::size_t p = 0; p < kPrefixes.size(); ++p) {
      if (!results[prefix_case(p, s)].empty())
        line.points.push_back({static_cast<double>(kPrefixes[p]), per_s(p, s)});
    }
    plot.lines.push_back(std::move(line));
  }
  report.plots.push_back(std::move(plot));
  constexpr std::array kPapers = {1.67, 3.58};
  for (std::size_t p = 0; p < kPrefixes.size(); ++p) {
    const auto is_done = [&](std::size_t system) { return !results[prefix_case(p, system)].empty(); };
    const std::string name = "prefix of " + std::to_string(kPrefixes[p]) + ": ";
    if (is_done(0) && is_done(1))
      report.figures.push_back(
          compared(name + "shared over nothing shared", "x", ratio(per_s(p, 0), per_s(p, 1)), {}, {}, ""));
    if (is_done(0) && is_done(2))
      report.figures.push_back(compared(name + "paged over Orca (Oracle)", "x",
                                        ratio(per_s(p, 0), per_s(p, 2)), kPapers[p], {},
                                        "section 6.4, on an A100"));
  }
}

RealStudy start_real_sharing(const Desk& desk) {
  RealStudy study;
  for (const std::int32_t width : kWidths) {
    for (const GroupSystem& system : kGroupSystems) {
      study.cases.push_back({system.name, [desk, system, width](std::int32_t round) {
                               return plan_groups(desk, system, width, round);
                             }});
    }
  }
  for (const std::int32_t prefix : kPrefixes) {
    for (const PrefixSystem& system : kPrefixSystems) {
      study.cases.push_back({system.name, [desk, system, prefix](std::int32_t round) {
                               return plan_translations(desk, system, prefix, round);
                             }});
    }
  }
  study.report = [](const RealResults& results) {
    ExperimentReport report;
    tell_groups(results, report);
    tell_prefixes(results, report);
    report.notes.push_back(
        "Requests/s are of requests with all their outputs, all there at once. Translations have the "
        "paper's lengths, in a pool of 4,096 slots. Beams of random weights or random prompts part sooner "
        "than those of texts. The engine searches beams in paged memory only, so theirs is the memory "
        "saved, and no rate beside Orca's. With few requests the longest outputs run alone at the end, "
        "which takes from what more samples gain. A prefix that is found is not computed, and a processor "
        "computes more slowly, beside its steps, than an A100: what it gains may be more than there.");
    return report;
  };
  return study;
}

}  // namespace

std::vector<KnownRealExperiment> real_sharing_experiments() {
  std::vector<KnownRealExperiment> all;
  all.push_back({{"real-sharing", "Samples, beams and a shared prefix, on the real engine",
                  "Figures 14, 15 and 16, sections 6.3 and 6.4", "this machine, the whole engine",
                  "ShareGPT's lengths / 8 with 2, 4 and 6 outputs; translations behind 80 and 341 tokens",
                  "paged; paged with nothing shared; Orca (Oracle)", "requests/s; blocks saved"},
                 start_real_sharing});
  return all;
}

}  // namespace octavo::paper
