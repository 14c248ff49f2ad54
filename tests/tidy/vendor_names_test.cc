// kernels/cuda takes what is the vendor's through two headers, and each name that it uses has one of HIP.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/tidy/tree.h"

namespace octavo::tidy {
namespace {

const std::set<std::string>& headers_of_names() {
  static const std::set<std::string> kFiles = {"kernels/cuda/runtime/device_names.h",
                                               "kernels/cuda/matmul/library_names.h"};
  return kFiles;
}

bool is_vendors_header(const std::string& line) {
  static const std::regex kHeader(
      R"(\s*#\s*include\s*[<"](cuda|cublas|cooperative_groups|curand|cub/|mma|nv|hip|roc|thrust).*)");
  return std::regex_match(line, kHeader);
}

// What a compiler with the names of HIP sees of a file, without comments and strings. Conditions are those
// that ask for OCTAVO_HIP; of others both sides count.
std::string seen_by_hip(const std::string& text) {
  static const std::regex kString(R"("(\\.|[^"\\])*")"), kComment(R"(//.*)");
  static const std::regex kIf(R"(#\s*if.*)"), kElse(R"(#\s*el.*)"), kEnd(R"(#\s*endif.*)");
  std::istringstream lines(text);
  std::string seen;
  std::vector<char> hidden;  // by condition: 'h' on HIP's side, 'o' before it, 'x' behind it, ' ' not asked
  for (std::string line; std::getline(lines, line);) {
    line = std::regex_replace(std::regex_replace(line, kString, "\"\""), kComment, "");
    if (std::regex_match(line, kEnd) && !hidden.empty()) {
      hidden.pop_back();
    } else if (std::regex_match(line, kElse) && !hidden.empty()) {
      if (hidden.back() != ' ') hidden.back() = hidden.back() == 'o' ? 'h' : 'x';
    } else if (std::regex_match(line, kIf)) {
      const bool asks = line.find("OCTAVO_HIP") != std::string::npos,
                 is_not = line.find("ifndef") != std::string::npos;
      hidden.push_back(!asks ? ' ' : is_not ? 'o' : 'h');
    } else if (std::all_of(hidden.begin(), hidden.end(),
                           [](char side) { return side == ' ' || side == 'h'; })) {
      seen += line + "\n";
    }
  }
  return seen;
}

std::set<std::string> words_of(const std::string& text, const std::regex& pattern) {
  return {std::sregex_token_iterator(text.begin(), text.end(), pattern), std::sregex_token_iterator()};
}

// Names of CUDA's own, but not those of its language.
std::set<std::string> vendors_names(const std::string& text) {
  static const std::regex kName(R"(\b(cuda[A-Z]|CUDA_|cublas|CUBLAS)\w*)");
  return words_of(text, kName);
}

// Of the language, and functions that it has built in.
std::set<std::string> built_in_names(const std::string& text) {
  static const std::regex kName(R"(\b__[a-z]\w*)");
  return words_of(text, kName);
}

std::set<std::string> defined_names() {
  static const std::regex kDefine(R"(#define\s+(\w+))");
  std::set<std::string> names;
  for (const std::string& file : headers_of_names()) {
    const std::string text = text_of(root() / file);
    names.insert(std::sregex_token_iterator(text.begin(), text.end(), kDefine, 1),
                 std::sregex_token_iterator());
  }
  return names;
}

// That HIP has by the same name: HIP C++ language extensions, ROCm 6.3.
const std::set<std::string>& built_into_hip() {
  static const std::set<std::string> kNames = {"__attribute__",
                                               "__builtin_mul_overflow",
                                               "__byte_perm",
                                               "__clz",
                                               "__dadd_rn",
                                               "__device__",
                                               "__dmul_rn",
                                               "__double_as_longlong",
                                               "__fadd_rn",
                                               "__ffs",
                                               "__float2half_rn",
                                               "__float_as_uint",
                                               "__global__",
                                               "__half",
                                               "__half2float",
                                               "__half_as_ushort",
                                               "__host__",
                                               "__int_as_float",
                                               "__launch_bounds__",
                                               "__ldg",
                                               "__longlong_as_double",
                                               "__noinline__",
                                               "__popc",
                                               "__restrict__",
                                               "__shared__",
                                               "__syncthreads",
                                               "__threadfence",
                                               "__uint_as_float",
                                               "__ushort_as_half"};
  return kNames;
}

TEST(VendorNames, HeadersOfTheVendorComeThroughTwoOfOurs) {
  for (const std::filesystem::path& file : sources_under("kernels/cuda")) {
    if (headers_of_names().count(relative_name(file)) != 0) continue;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);)
      EXPECT_FALSE(is_vendors_header(line)) << relative_name(file) << ": " << line;
  }
}

TEST(VendorNames, EachNameHasOneOfHip) {
  const std::set<std::string> defined = defined_names();
  std::set<std::string> used;
  for (const std::filesystem::path& file : sources_under("kernels/cuda")) {
    if (headers_of_names().count(relative_name(file)) != 0) continue;
    const std::string text = seen_by_hip(text_of(file));
    for (const std::string& name : vendors_names(text)) {
      used.insert(name);
      EXPECT_EQ(defined.count(name), 1u) << relative_name(file) << " uses " << name;
    }
    for (const std::string& name : built_in_names(text)) {
      used.insert(name);
      EXPECT_EQ(defined.count(name) + built_into_hip().count(name), 1u)
          << relative_name(file) << " uses " << name;
    }
  }
  for (const std::string& name : defined) {
    if (name == "OCTAVO_HIP" || name.starts_with("sharedMemPer")) continue;
    EXPECT_EQ(used.count(name), 1u) << name << " is used nowhere";
  }
}

TEST(VendorNames, TheCheckReadsWhatHipSees) {
  const std::string text =
      "a __ldg(x); // cudaFree\n#ifdef OCTAVO_HIP\nhipFree\n#else\ncudaMalloc\n#endif\n#ifndef "
      "OCTAVO_HIP\ncudaFree\n"
      "#endif\n#if X\ncudaMemcpy(\"cudaThing\")\n#endif\n"
      "#if defined(OCTAVO_HIP)\n__ffs\n#elif X\n__dp4a\n#else\n__vadd4\n#endif\n";
  const std::string seen = seen_by_hip(text);
  EXPECT_EQ(vendors_names(seen), std::set<std::string>{"cudaMemcpy"});
  EXPECT_EQ(built_in_names(seen), (std::set<std::string>{"__ffs", "__ldg"}));
  EXPECT_TRUE(is_vendors_header("#include <cuda_fp16.h>"));
  EXPECT_TRUE(is_vendors_header("#include <hip/hip_runtime.h>"));
  EXPECT_FALSE(is_vendors_header("#include \"kernels/cuda/runtime/device.h\""));
}

}  // namespace
}  // namespace octavo::tidy
