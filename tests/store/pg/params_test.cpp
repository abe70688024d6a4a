// Parameters as text, without a server. That the server reads them as meant is values_on_the_wire_test.cpp.
#include "lib/pg/result.hpp"

#include <doctest/doctest.h>

#include <limits>

using holdfast::pg::Params;
using holdfast::pg::wire_text;
using namespace std::string_literals;

namespace {

constexpr const char* kMark = "\xEF\xBF\xBD"; // U+FFFD

std::string only(const Params& params) {
  REQUIRE(params.values().size() == 1);
  REQUIRE(params.values()[0].has_value());
  return *params.values()[0];
}

} // namespace

TEST_CASE("well-formed UTF-8 passes through unchanged") {
  for (const std::string text :
       {"", "plain", "Grüße", "日本語", "\U0001F600", "\x7F", "\t\n", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    CHECK(wire_text(text) == text);
  }
}

TEST_CASE("a NUL byte becomes the replacement character, because the wire would cut the text there") {
  CHECK(wire_text("a\0b"s) == "a"s + kMark + "b");
  CHECK(wire_text("\0"s) == kMark);
}

TEST_CASE("every byte that is not part of a well-formed sequence is replaced by itself") {
  CHECK(wire_text("\xFF") == kMark);
  CHECK(wire_text("a\x80z") == "a"s + kMark + "z");
  CHECK(wire_text("\xC3") == kMark);                   // cut off
  CHECK(wire_text("\xC3(") == kMark + "("s);           // the good byte after it stays
  CHECK(wire_text("\xC0\xAF") == kMark + ""s + kMark); // overlong '/'
  CHECK(wire_text("\xE0\x80\xAF") == kMark + ""s + kMark + kMark);
  CHECK(wire_text("\xED\xA0\x80") == kMark + ""s + kMark + kMark);             // a surrogate
  CHECK(wire_text("\xF4\x90\x80\x80") == kMark + ""s + kMark + kMark + kMark); // past U+10FFFF
  CHECK(wire_text("\xE2\x82") == kMark + ""s + kMark);
}

TEST_CASE("scalars become the text that PostgreSQL reads") {
  CHECK(only(Params::of(true)) == "t");
  CHECK(only(Params::of(false)) == "f");
  CHECK(only(Params::of(std::numeric_limits<std::int64_t>::min())) == "-9223372036854775808");
  CHECK(only(Params::of(std::numeric_limits<std::uint64_t>::max())) == "18446744073709551615");
  CHECK(only(Params::of("it's")) == "it's");
}

TEST_CASE("an empty optional is NULL and a full one is its value") {
  const auto params =
      Params::of(std::optional<int>{}, std::optional<int>{7}, std::nullopt, std::optional<std::string>{"x"});
  REQUIRE(params.values().size() == 4);
  CHECK_FALSE(params.values()[0].has_value());
  CHECK(params.values()[1] == "7");
  CHECK_FALSE(params.values()[2].has_value());
  CHECK(params.values()[3] == "x");
}

TEST_CASE("vectors become array literals with every element quoted") {
  CHECK(only(Params::of(std::vector<std::string>{})) == "{}");
  CHECK(only(Params::of(std::vector<std::string>{""})) == R"({""})");
  CHECK(only(Params::of(std::vector<std::string>{"a,b", R"(q"\)", "NULL"})) == R"({"a,b","q\"\\","NULL"})");
  CHECK(only(Params::of(std::vector<std::optional<std::string>>{std::nullopt, "x"})) == R"({NULL,"x"})");
  CHECK(only(Params::of(std::vector<std::int64_t>{-1, 0, 5})) == "{-1,0,5}");
  CHECK(only(Params::of(std::vector<std::string>{"a\0b"s})) == "{\"a"s + kMark + "b\"}");
}
