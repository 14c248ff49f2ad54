// Measures kernels/cuda on the device: what it can do at all, products, attention, swaps, whole steps.
//
//   octavo_gpu_bench [--only NAME,...] [--quick] [--emulated-sizes] [--json FILE]
//
// Names: products attention sampling swap steps; the limits of the device are always measured,
// for all else is judged by them.
// --quick takes fewer types and rows. --emulated-sizes: tiny ones, to see that everything runs;
// octavo_gpu_bench_emulated, the same program on tests/emulation, takes no others. The result is one JSON
// object, on standard output without --json; tests/bench/gpu_report makes the table of it. Exit status: 0, 1
// a failure, 2 no device or a wrong argument.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "kernels/cuda/create_cuda_backend.h"
#include "tests/bench/gpu/json_report.h"
#include "tests/bench/gpu/sections.h"

namespace octavo::bench {
namespace {

constexpr int kFailed = 1, kNoDevice = 2;

struct NamedSection {
  const char* name;
  Result<void> (*measure)(Bench&);
};
constexpr NamedSection kSections[] = {{"products", measure_products},
                                      {"attention", measure_attention},
                                      {"sampling", measure_sampling},
                                      {"swap", measure_swap},
                                      {"steps", measure_steps}};

struct Options {
  Sizes sizes;
  std::set<std::string> only;
  std::string json_file;
};

bool is_section(const std::string& name) {
  for (const NamedSection& section : kSections) {
    if (name == section.name) return true;
  }
  return name == "limits";
}

Result<Options> parse(int count, char** arguments) {
  Options options;
  const auto wrong = [](const std::string& text) { return Error{ErrorCode::kInvalidArgument, text}; };
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--quick") {
      options.sizes.is_quick = true;
    } else if (name == "--emulated-sizes") {
      options.sizes.is_emulated = true;
      options.sizes.num_rounds = 1;
    } else if (name == "--only" && i + 1 < count) {
      std::istringstream names(arguments[++i]);
      for (std::string each; std::getline(names, each, ',');) {
        if (!is_section(each)) return wrong("--only: there is no section '" + each + "'");
        options.only.insert(each);
      }
    } else if (name == "--json" && i + 1 < count) {
      options.json_file = arguments[++i];
    } else {
      return wrong("'" + name + "' is no argument of octavo_gpu_bench, or its value is missing");
    }
  }
  return options;
}

Result<void> measure_all(Bench& bench, const Options& options) {
  OCTAVO_TRY_VOID(measure_limits(bench));
  for (const NamedSection& section : kSections) {
    if (!options.only.empty() && !options.only.contains(section.name)) continue;
    OCTAVO_TRY_VOID(section.measure(bench));
  }
  return {};
}

Result<void> write_report(const Bench& bench, const std::string& error, const std::string& file_name) {
  if (file_name.empty()) {
    std::cout << json_report(bench, error) << std::endl;
    return {};
  }
  std::ofstream file(file_name);
  file << json_report(bench, error) << std::endl;
  if (!file) return Error{ErrorCode::kIo, file_name + " could not be written"};
  return {};
}

int fail(const Error& error, int status) {
  std::fprintf(stderr, "octavo_gpu_bench: %s\n", error.message.c_str());
  return status;
}

int run(int count, char** arguments) {
  const Result<Options> options = parse(count, arguments);
  if (!options) return fail(options.error(), kNoDevice);
  const Result<std::unique_ptr<Bench>> bench = Bench::create(options->sizes);
  if (!bench) return fail(bench.error(), bench.error().code == ErrorCode::kUnsupported ? kNoDevice : kFailed);
  if ((*bench)->figures().is_emulated && !options->sizes.is_emulated) {
    return fail({ErrorCode::kInvalidArgument, "the emulated device takes --emulated-sizes only"}, kNoDevice);
  }
  const Result<void> measured = measure_all(**bench, *options);
  const std::string error = measured ? "" : measured.error().message;
  const Result<void> written = write_report(**bench, error, options->json_file);
  if (!measured) return fail(measured.error(), kFailed);
  return written ? 0 : fail(written.error(), kFailed);
}

}  // namespace
}  // namespace octavo::bench

int main(int count, char** arguments) { return octavo::bench::run(count, arguments); }
