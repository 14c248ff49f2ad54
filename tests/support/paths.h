// Where this build lies. paths.cc alone knows it: every other object of the tests is the same in all
// checkouts, and a compiler's cache serves them all.
#pragma once

#include <filesystem>
#include <string>

namespace octavo::test {

std::filesystem::path source_folder();  // the root of the tree
std::string program();                  // the octavo of this build

}  // namespace octavo::test
