// Reading costs in proportion to what is read. Inputs are made from the corpora: a run of tokens of a file is repeated
// in its place, with and without what follows, so that elements are nested, lists are long and delimiters never come.
// Each is made in two sizes; four times the input may cost ten times the CPU time, not sixteen.
#include "lib/base/file.hpp"
#include "tests/fuzz/targets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

using namespace holdfast;

namespace {

constexpr std::size_t kSmall = 16 << 10;
constexpr double kCheap = 0.05; // seconds for four times kSmall: too little to measure, and to do harm
constexpr double kMostRatio = 10;
constexpr std::size_t kMostRuns = 40; // of each length, of a file

double cpu_seconds(const fuzz::Target& target, const std::string& input) {
  timespec before{}, after{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  target.run(input);
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return static_cast<double>(after.tv_sec - before.tv_sec) + static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9;
}

// Where a token begins: at a mark, and at a word.
std::vector<std::size_t> token_starts(const std::string& text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i == 0 || !is_word(text[i]) || !is_word(text[i - 1])) starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

struct Pumped {
  std::string head, run, tail;
  std::string of_size(std::size_t size) const {
    auto text = head;
    while (text.size() < size)
      text += run;
    return text + tail;
  }
};

std::vector<Pumped> pumped(const std::string& text) {
  std::vector<Pumped> made{{"", text, ""}};
  const auto starts = token_starts(text);
  for (const std::size_t length : {1, 2, 4, 8, 16, 32}) {
    const auto count = starts.size() - std::min(starts.size(), length);
    const auto step = std::max<std::size_t>(1, count / kMostRuns);
    for (std::size_t i = 0; i < count; i += step) {
      const auto begin = starts[i], end = starts[i + length];
      made.push_back({text.substr(0, begin), text.substr(begin, end - begin), text.substr(end)});
      made.push_back({text.substr(0, begin), text.substr(begin, end - begin), ""});
    }
  }
  return made;
}

// Whether the cost grows faster than the size, in each of two steps and each time that it is measured: a reader with a
// bound may look so below its bound, and a busy machine once.
bool grows_too_fast(const fuzz::Target& target, const Pumped& input) {
  for (std::size_t size = kSmall; size <= 4 * kSmall; size *= 4) {
    const auto small = input.of_size(size), large = input.of_size(4 * size);
    if (cpu_seconds(target, large) < kCheap) return false;
    double least_small = 1e9, least_large = 1e9;
    for (int times = 0; times < 3; ++times) {
      least_small = std::min(least_small, cpu_seconds(target, small));
      least_large = std::min(least_large, cpu_seconds(target, large));
    }
    if (least_large < kMostRatio * least_small) return false;
  }
  return true;
}

} // namespace

TEST_CASE("every reader of untrusted input takes time in proportion to its size") {
  for (const auto& target : fuzz::targets()) {
    const auto directory = std::filesystem::path(HOLDFAST_FUZZ_CORPUS) / target.name;
    std::size_t inputs = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      const auto text = base::read_file(file.path(), 4096);
      for (const auto& input : pumped(text)) {
        ++inputs;
        if (!grows_too_fast(target, input)) continue;
        FAIL_CHECK(std::string(target.name), ": ", file.path().filename().string(), ": after \"",
                   input.head.substr(input.head.size() - std::min<std::size_t>(input.head.size(), 40)),
                   "\" again and again \"", input.run.substr(0, 200), "\", then ",
                   input.tail.empty() ? "nothing" : "the rest");
        break;
      }
    }
    CHECK(inputs > 100);
  }
}
