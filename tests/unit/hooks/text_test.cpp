#include "lib/base/text/text.hpp"
#include "lib/hooks/text.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace holdfast::hooks;

TEST_SUITE("hostile text") {
  TEST_CASE("well-formed and ill-formed UTF-8 are told apart") {
    CHECK(holdfast::base::is_utf8(""));
    CHECK(holdfast::base::is_utf8("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"));
    CHECK_FALSE(holdfast::base::is_utf8("\xC3"));             // cut short
    CHECK_FALSE(holdfast::base::is_utf8("\xC0\xAF"));         // overlong
    CHECK_FALSE(holdfast::base::is_utf8("\xE0\x80\xAF"));     // overlong
    CHECK_FALSE(holdfast::base::is_utf8("\xED\xA0\x80"));     // surrogate
    CHECK_FALSE(holdfast::base::is_utf8("\xF4\x90\x80\x80")); // above U+10FFFF
    CHECK_FALSE(holdfast::base::is_utf8("\x80"));
  }

  TEST_CASE("ill-formed bytes become replacement characters") {
    CHECK(holdfast::base::repair_utf8("caf\xE9 ok") == "caf\xEF\xBF\xBD ok");
    CHECK(holdfast::base::repair_utf8("plain") == "plain");
  }

  TEST_CASE("colours, titles and control characters are removed") {
    CHECK(clean_text("\x1b[1;31mError:\x1b[0m no\x07 page", 100, Lines::one) == "Error: no page");
    CHECK(clean_text("\x1b]0;window title\x07text", 100, Lines::one) == "text");
    CHECK(clean_text("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", 100, Lines::one) == "link");
    CHECK(clean_text(std::string_view("a\0b\x7f", 4), 100, Lines::one) == "ab");
    CHECK(clean_text("a\xC2\x9B"
                     "31mb",
                     100, Lines::one) == "a31mb"); // C1 introducer
    CHECK(clean_text("\x1b", 100, Lines::one).empty());
    CHECK(clean_text("\x1b[", 100, Lines::one).empty());
  }

  TEST_CASE("lines are joined or kept") {
    CHECK(clean_text("  a\r\n\tb  \n", 100, Lines::one) == "a b");
    CHECK(clean_text("\n\na\n b\n\n\n\nc\n", 100, Lines::many) == "a\n b\n\nc");
  }

  TEST_CASE("a cut falls between characters and is visible") {
    const std::string text = clean_text("\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4", 8, Lines::one);
    CHECK(text == "\xC3\xA4\xC3\xA4\xE2\x80\xA6");
    CHECK(clean_text("12345678", 8, Lines::one) == "12345678");
    CHECK(clean_text("123456789", 8, Lines::one) == "12345\xE2\x80\xA6");
    CHECK(clean_text("123456789", 2, Lines::one).size() <= 2);
  }

  TEST_CASE("random bytes always come out as bounded, valid, printable text") {
    std::mt19937 random(20240117);
    for (int round = 0; round < 20000; ++round) {
      std::string bytes(random() % 60, '\0');
      for (char& byte : bytes)
        byte = static_cast<char>(random() % 3 == 0 ? "\x1b[]m;\n\xC2\xE2\xF0\x80"[random() % 10] : random());
      const std::size_t limit = 3 + random() % 50;
      const std::string text = clean_text(bytes, limit, random() % 2 == 0 ? Lines::one : Lines::many);
      REQUIRE(text.size() <= limit);
      REQUIRE(holdfast::base::is_utf8(text));
      REQUIRE(text.find('\x1b') == std::string::npos);
      REQUIRE(text.find('\0') == std::string::npos);
      REQUIRE(holdfast::base::is_utf8(holdfast::base::repair_utf8(bytes)));
    }
  }
}
