#pragma once
// Any number of lines in the order of their bytes, in bounded memory: sorted runs go to files without a name in the
// temporary directory and are merged. Used from one thread.

#include "lib/base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::wacz {

class SortedLines {
public:
  // `memory`: bytes of lines that are held at a time.
  explicit SortedLines(std::size_t memory = std::size_t{64} << 20) : memory_(memory) {}
  void add(std::string line); // without a line end
  // All lines, in order. Once.
  void each(const std::function<void(const std::string&)>& take);

private:
  void write_run();

  const std::size_t memory_;
  std::size_t held_{0};
  std::vector<std::string> lines_;
  std::vector<base::Fd> runs_;
};

// An open file without a name in the temporary directory.
base::Fd temporary_file();
void write_all(int file, std::string_view bytes);

} // namespace holdfast::wacz
