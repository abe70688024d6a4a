#include "lib/base/uuid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace holdfast::base;

TEST_SUITE("uuid") {
  TEST_CASE("a new uuid is canonical and of version 7") {
    const std::string uuid = new_uuid();
    CHECK(uuid.size() == 36);
    CHECK(is_uuid(uuid));
    CHECK(uuid[14] == '7');
    CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
    CHECK(std::none_of(uuid.begin(), uuid.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
  }

  TEST_CASE("the time of creation leads a uuid") {
    const auto now = [] {
      return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
    };
    const auto before = now();
    const std::string uuid = new_uuid();
    const auto stamp = std::stoll(uuid.substr(0, 8) + uuid.substr(9, 4), nullptr, 16);
    CHECK(stamp >= before);
    // Numbers drawn faster than the clock ticks run ahead of it, by 1/4096 ms each; here there were few.
    CHECK(stamp <= now() + 1000);
  }

  TEST_CASE("uuids of one thread strictly increase") {
    std::string last = new_uuid();
    for (int i = 0; i < 20'000; ++i) {
      std::string next = new_uuid();
      REQUIRE(last < next);
      last = std::move(next);
    }
  }

  TEST_CASE("uuids of many threads are unique and increase in each thread") {
    constexpr int kThreads = 4;
    constexpr int kEach = 5'000;
    std::vector<std::vector<std::string>> drawn(kThreads);
    std::vector<std::thread> threads;
    for (auto& own : drawn) {
      threads.emplace_back([&own] {
        for (int i = 0; i < kEach; ++i)
          own.push_back(new_uuid());
      });
    }
    for (auto& thread : threads)
      thread.join();

    std::set<std::string> all;
    for (const auto& own : drawn) {
      CHECK(std::is_sorted(own.begin(), own.end()));
      all.insert(own.begin(), own.end());
    }
    CHECK(all.size() == kThreads * kEach);
  }

  TEST_CASE("random hexadecimal text has 32 digits and does not repeat") {
    std::set<std::string> seen;
    for (int i = 0; i < 1'000; ++i) {
      const std::string text = random_hex32();
      CHECK(text.size() == 32);
      CHECK(text.find_first_not_of("0123456789abcdef") == std::string::npos);
      CHECK(seen.insert(text).second);
    }
  }

  TEST_CASE("both spellings of a uuid are recognised and nothing else is") {
    for (const char* text : {"01a1fd18-05e7-7ab8-ad45-786f607e4033", "01A1FD18-05E7-7AB8-AD45-786F607E4033",
                             "01a1fd1805e77ab8ad45786f607e4033", "01A1fd1805e77ab8ad45786f607e4033"}) {
      CAPTURE(text);
      CHECK(is_uuid(text));
    }
    for (const char* text :
         {"", "01a1fd18", "01a1fd18-05e7-7ab8-ad45-786f607e403", "01a1fd18-05e7-7ab8-ad45-786f607e40333",
          "01a1fd1805e7-7ab8-ad45-786f-607e4033", "g1a1fd18-05e7-7ab8-ad45-786f607e4033",
          "01a1fd18-05e7-7ab8-ad45-786f607e403-", "{01a1fd1805e77ab8ad45786f607e4033}",
          " 1a1fd1805e77ab8ad45786f607e4033", "01a1fd18_05e7_7ab8_ad45_786f607e4033"}) {
      CAPTURE(text);
      CHECK_FALSE(is_uuid(text));
    }
  }
}
