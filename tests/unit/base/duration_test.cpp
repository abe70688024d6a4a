#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace holdfast::base;
using std::chrono::milliseconds;

namespace {

template <typename Parse>
void check_rejected(Parse parse, std::string_view text) {
  CAPTURE(text);
  try {
    parse(text);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.error_class() == ErrorClass::configuration);
    CHECK(std::string(error.what()).find("\"" + std::string(text) + "\"") != std::string::npos);
    CHECK_FALSE(error.hint().empty());
  }
}

} // namespace

TEST_SUITE("duration") {
  TEST_CASE("durations are read with any unit") {
    const std::pair<const char*, std::int64_t> cases[] = {
        {"90", 90'000},      {"90s", 90'000},     {"1.5m", 90'000}, {"250ms", 250},     {"2h", 7'200'000},
        {"3d", 259'200'000}, {"1w", 604'800'000}, {"0", 0},         {"0s", 0},          {" 5 s ", 5'000},
        {"5S", 5'000},       {"2.5", 2'500},      {".5s", 500},     {"1.s", 1'000},     {"0.1s", 100},
        {"1.2344s", 1'234},  {"0007s", 7'000},    {"250MS", 250},   {"2 min", 120'000},
    };
    for (const auto& [text, expected] : cases) {
      CAPTURE(text);
      CHECK(parse_duration(text).count() == expected);
    }
  }

  TEST_CASE("what is no duration is refused by name") {
    for (const char* text : {"", " ", "s", ".", "-1s", "+1s", "1e3", "1x", "1 2", "1s2", "1,5s", "0x10", "inf", "nan",
                             "1.2.3s", "99999999999999999999w", "1sec", "5 m s", "1\ns"}) {
      check_rejected(parse_duration, text);
    }
  }

  TEST_CASE("durations are shown in the unit people would choose") {
    const std::pair<std::int64_t, std::string_view> cases[] = {
        {0, "0 ms"},         {999, "999 ms"},          {1'000, "1 s"},
        {1'250, "1.3 s"},    {1'249, "1.2 s"},         {59'949, "59.9 s"},
        {59'950, "1 min"},   {65'000, "1 min 5 s"},    {3'599'499, "59 min 59 s"},
        {3'599'500, "1 h"},  {7'200'000, "2 h"},       {86'369'999, "23 h 59 min"},
        {86'370'000, "1 d"}, {180'000'000, "2 d 2 h"}, {-65'000, "-1 min 5 s"},
    };
    for (const auto& [duration, expected] : cases) {
      CAPTURE(duration);
      CHECK(format_duration(milliseconds(duration)) == expected);
    }
    CHECK_NOTHROW(format_duration(milliseconds::min()));
    CHECK_NOTHROW(format_duration(milliseconds::max()));
  }

  TEST_CASE("sizes are read with any unit") {
    const std::pair<const char*, std::uint64_t> cases[] = {
        {"512", 512},
        {"0", 0},
        {"10k", 10'240},
        {"10kb", 10'240},
        {"10KiB", 10'240},
        {"1b", 1},
        {"1.5MiB", 1'572'864},
        {"2g", 2'147'483'648},
        {"1t", 1'099'511'627'776},
        {" 64 M ", 67'108'864},
        {"0.5k", 512},
        {"2gb", 2'147'483'648},
    };
    for (const auto& [text, expected] : cases) {
      CAPTURE(text);
      CHECK(parse_size(text) == expected);
    }
  }

  TEST_CASE("what is no size is refused by name") {
    for (const char* text : {"", "k", "-1", "1p", "1kk", "1 k b", "1bk", "999999999t", "1e9", "ten", "1i"}) {
      check_rejected(parse_size, text);
    }
  }

  TEST_CASE("sizes are shown with one decimal") {
    const std::pair<std::uint64_t, std::string_view> cases[] = {
        {0, "0 B"},
        {1'023, "1023 B"},
        {1'024, "1.0 KiB"},
        {1'536, "1.5 KiB"},
        {1'048'575, "1.0 MiB"},
        {67'108'864, "64.0 MiB"},
        {1'099'511'627'776, "1.0 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (const auto& [bytes, expected] : cases) {
      CAPTURE(bytes);
      CHECK(format_size(bytes) == expected);
    }
  }
}
