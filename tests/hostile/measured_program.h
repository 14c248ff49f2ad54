// Runs `octavo` and measures what it took: peak resident memory and time, beside what it printed.
#pragma once

#include <string>
#include <vector>

namespace octavo::test {

struct Measured {
  int status = -1;  // exit status; 128 + signal when it was killed
  std::string out, err;
  long peak_kibibytes = 0;
  double seconds = 0.0;
};

// Standard output and error go to files in `folder`, so that nothing can stall. Killed after a minute.
Measured run_measured(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace octavo::test
