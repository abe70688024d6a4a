#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace holdfast::base;

namespace {

using Parts = std::vector<std::string>;

TEST_CASE("a list in one text is split at its separators, without blanks and empty parts") {
  CHECK(split("a, b,,c ", ",") == Parts{"a", "b", "c"});
  CHECK(split("one;two|three four", ";|") == Parts{"one", "two", "three four"});
  CHECK(split("a  b\tc", " \t") == Parts{"a", "b", "c"});
  CHECK(split("", ",").empty());
  CHECK(split(" , ,", ",").empty());
}

TEST_CASE("what was split is joined again, empty parts included") {
  CHECK(join({"a", "b"}, ", ") == "a, b");
  CHECK(join({"", "b", ""}, ",") == ",b,");
  CHECK(join({}, ",").empty());
}

TEST_CASE("the tail of a file is its last bytes, all of it if it is short, nothing if there is none") {
  const auto file = std::filesystem::temp_directory_path() / ("holdfast-tail-" + std::to_string(::getpid()));
  std::ofstream(file) << "first\nlast\n";
  CHECK(tail_of(file, 5) == "last\n");
  CHECK(tail_of(file, 100) == "first\nlast\n");
  std::filesystem::remove(file);
  CHECK(tail_of(file, 100).empty());
}

TEST_CASE("the nearest word is the one with the fewest edits, and none if all are far") {
  const std::vector<std::string> verbs = {"status", "list", "show", "remove", "retry", "run"};
  CHECK(nearest("statsu", verbs) == "status");
  CHECK(nearest("remov", verbs) == "remove");
  CHECK(nearest("lst", verbs) == "list");
  CHECK(nearest("frobnicate", verbs).empty());
  CHECK(nearest("x", verbs).empty());
}

TEST_CASE("a timestamp says that it is UTC") {
  const auto now = utc_timestamp();
  REQUIRE(now.size() == 20);
  CHECK(now[10] == 'T');
  CHECK(now.back() == 'Z');
}

} // namespace
