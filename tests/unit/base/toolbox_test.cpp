#include "lib/base/backoff.hpp"
#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>

#include <string>

using namespace holdfast;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("toolbox");

TEST_CASE("runner files are told from the outputs of hooks by their whole name") {
  const std::string cookie = "0123456789abcdef0123456789abcdef";
  for (const char* suffix : {".stdout.log", ".stderr.log", ".pid", ".sh"}) {
    CAPTURE(suffix);
    CHECK(base::is_runner_file("on_Snapshot__35_wget.finite.bg." + cookie + suffix));
    CHECK(base::is_runner_file("x." + cookie + suffix));
    for (const auto& other : {std::string(suffix), "server" + std::string(suffix), "." + cookie + suffix,
                              cookie + suffix, "x" + cookie + suffix, "x." + cookie + suffix + "x",
                              "x." + cookie.substr(1) + suffix, "x.0123456789ABCDEF" + cookie.substr(16) + suffix})
      CHECK_MESSAGE(!base::is_runner_file(other), other);
  }
  for (const auto& other : {"build.log", "index.html", "urls.jsonl", "log", ""})
    CHECK_MESSAGE(!base::is_runner_file(other), other);
  CHECK_FALSE(base::is_runner_file("x." + cookie + ".html"));
}

TEST_CASE("a well-formed character is as long as it says; anything else has no length") {
  CHECK(base::utf8_length("") == 0);
  CHECK(base::utf8_length("a") == 1);
  CHECK(base::utf8_length("\xC3\xBC!") == 2);
  CHECK(base::utf8_length("\xE2\x82\xAC") == 3);
  CHECK(base::utf8_length("\xF0\x9F\x98\x80") == 4);
  for (const char* wrong : {"\x80", "\xC3", "\xC3(", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                            "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"})
    CHECK_MESSAGE(base::utf8_length(wrong) == 0, wrong);
}

TEST_CASE("a character becomes its code and back") {
  for (const char* text : {"a", "\xC3\xBC", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
    const auto [code, length] = base::first_character(text);
    CHECK(length == std::string(text).size());
    CHECK(base::utf8_of(code) == text);
  }
  CHECK(base::first_character("\xFFz").length == 1);
  CHECK(base::utf8_of(0xD800).empty());
  CHECK(base::utf8_of(0x110000).empty());
}

TEST_CASE("SHA-256, at once and in pieces") {
  constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(base::sha256_hex("abc") == kAbc);
  base::Sha256 digest;
  digest.update("a");
  digest.update("bc");
  CHECK(digest.finish() == kAbc);
}

TEST_CASE("waits double up to the longest, each between half and the whole of its step") {
  base::Backoff backoff(100ms, 350ms);
  for (const auto step : {100ms, 200ms, 350ms, 350ms}) {
    const auto wait = backoff.next();
    CHECK(wait >= step / 2);
    CHECK(wait <= step);
  }
  backoff.reset();
  CHECK(backoff.next() <= 100ms);
  for (int i = 0; i < 100; ++i) {
    const auto wait = base::jittered(100ms);
    REQUIRE(wait >= 75ms);
    REQUIRE(wait <= 125ms);
  }
}

TEST_CASE("a word for a shell stays one word") {
  CHECK(base::shell_quoted("a b") == "'a b'");
  CHECK(base::shell_quoted("it's") == "'it'\\''s'");
  CHECK(base::shell_quoted("") == "''");
}

TEST_CASE("everything that is not unreserved is percent-encoded, as signatures of S3 want it") {
  CHECK(base::percent_encode("a/b c+d~é") == "a/b%20c%2Bd~%C3%A9");
  CHECK(base::percent_encode("a/b", "") == "a%2Fb");
  CHECK(base::form_decode("a+b%2Bc%zz%") == "a b+c%zz%");
}

TEST_CASE("blanks, hexadecimal digits and percent signs") {
  CHECK(base::trimmed(" \t\r\n a b \v\f") == "a b");
  CHECK(base::trimmed(" \n").empty());
  CHECK(base::hex(std::string("\0\x7f\xff", 3)) == "007fff");
  std::string text;
  base::append_percent(text, '\xE2');
  CHECK(text == "%E2");
}

TEST_CASE("JSON of bytes that are no text") {
  CHECK(base::json_text(nlohmann::json{{"a", "x\xff"}}) == "{\"a\":\"x\xEF\xBF\xBD\"}");
}

TEST_CASE("a time of the database in ISO 8601") {
  CHECK(base::iso_time("2026-01-31 23:59:59.123+00") == "2026-01-31T23:59:59Z");
  CHECK(base::iso_time("") == "");
}

TEST_CASE("a descriptor is closed once, by its last owner") {
  base::Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(first);
  const int number = first.get();
  base::Fd second(std::move(first));
  CHECK(second.get() == number);
  CHECK(::fcntl(number, F_GETFD) >= 0);
  second.reset();
  CHECK(::fcntl(number, F_GETFD) == -1);
}

TEST_SUITE_END();
