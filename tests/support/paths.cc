#include "tests/support/paths.h"

namespace octavo::test {

std::filesystem::path source_folder() { return OCTAVO_SOURCE_DIR; }
std::string program() { return OCTAVO_PROGRAM; }

}  // namespace octavo::test
