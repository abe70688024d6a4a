// Each target reads its corpus: seeds by hand, what a fuzzer has kept, and what once was a finding.
#include "tests/fuzz/targets.hpp"
#include "tests/support/text.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

using namespace holdfast;

TEST_CASE("each target reads its corpus") {
  for (const auto& target : fuzz::targets()) {
    const auto directory = std::filesystem::path(HOLDFAST_FUZZ_CORPUS) / target.name;
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      CAPTURE(entry.path());
      const auto input = test::text_of(entry.path());
      target.run(input);
      for (const auto length : {input.size() / 2, input.size() / 3}) // broken off
        target.run(std::string_view(input).substr(0, length));
      ++count;
    }
    CHECK_MESSAGE(count >= 5, "a corpus for ", std::string(target.name));
  }
}
