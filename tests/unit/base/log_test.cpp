#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

using namespace holdfast;
using base::LogFormat;

namespace {

// What `body` writes to standard error, by way of a file in its place.
std::string captured_stderr(const test::TempDir& directory, const std::function<void()>& body) {
  const auto file = directory / "stderr";
  const int saved = dup(STDERR_FILENO);
  const int replacement = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(replacement, STDERR_FILENO);
  close(replacement);
  body();
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_SUITE("log") {
  TEST_CASE("json logging writes one object a line whatever the message holds") {
    const test::TempDir directory;
    const std::string text = captured_stderr(directory, [] {
      base::configure_logging(LogFormat::json, "info");
      spdlog::info("plain {}", 1);
      spdlog::warn("two\nlines \"quoted\" \x1b[31m");
      spdlog::error("not utf-8: \xff\xfe.");
      spdlog::debug("not this");
    });
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(contains(text, R"("level":"info","message":"plain 1"})"));
    CHECK(contains(text, R"("level":"warn","message":"two\nlines \"quoted\" \u001b[31m"})"));
    CHECK(contains(text, R"("level":"error","message":"not utf-8: )"));
    CHECK_FALSE(contains(text, "\xff"));
    CHECK_FALSE(contains(text, "not this"));
    CHECK(text.starts_with(R"({"time":"2)"));
    CHECK(contains(text, R"(Z","level")"));
  }

  TEST_CASE("automatic logging is json unless it is read on a terminal") {
    const test::TempDir directory;
    const std::string text = captured_stderr(directory, [] {
      base::configure_logging(LogFormat::automatic, "info");
      spdlog::info("hello");
    });
    CHECK(text.starts_with("{"));
  }

  TEST_CASE("text logging keeps a message on one line and away from the terminal's controls") {
    const test::TempDir directory;
    const std::string text = captured_stderr(directory, [] {
      base::configure_logging(LogFormat::text, "debug");
      spdlog::debug("two\nlines \x1b]0;title\x07 a\tb \x7f Grüße");
    });
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);
    CHECK(contains(text, " debug two\\nlines \\x1b]0;title\\x07 a\tb \\x7f Grüße\n"));
    CHECK_FALSE(contains(text, "\x1b")); // no colours in a file either
  }

  TEST_CASE("each level silences what is below it") {
    const test::TempDir directory;
    const auto lines_at = [&](const char* level) {
      const std::string text = captured_stderr(directory, [&] {
        base::configure_logging(LogFormat::json, level);
        spdlog::trace("x");
        spdlog::debug("x");
        spdlog::info("x");
        spdlog::warn("x");
        spdlog::error("x");
      });
      return std::count(text.begin(), text.end(), '\n');
    };
    CHECK(lines_at("trace") == 5);
    CHECK(lines_at("debug") == 4);
    CHECK(lines_at("info") == 3);
    CHECK(lines_at("warn") == 2);
    CHECK(lines_at("error") == 1);
    CHECK(lines_at("off") == 0);
    base::configure_logging(LogFormat::automatic, "info");
  }

  TEST_CASE("an unknown level is an error of configuration") {
    try {
      base::configure_logging(LogFormat::text, "loud");
      FAIL("accepted");
    } catch (const base::Error& error) {
      CHECK(error.error_class() == base::ErrorClass::configuration);
      CHECK(contains(error.what(), "loud"));
      CHECK(contains(error.hint(), "debug"));
    }
  }
}

TEST_CASE("a JSON line names the worker and what it speaks of, and no hook can forge that") {
  const test::TempDir directory;
  const auto text = captured_stderr(directory, [] {
    base::configure_logging(LogFormat::json, "info");
    spdlog::info("before");
    base::set_log_process("worker one");
    {
      const base::LogAbout crawl({"c1", "", 0, "", ""});
      const base::LogAbout hook({"", "s1", 3, "wget", "on_Snapshot__35_wget"});
      spdlog::warn("said: {}", "\",\"crawl\":\"c2");
    }
    spdlog::info("after");
    base::set_log_process("");
  });
  std::istringstream lines(text);
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);)
    all.push_back(nlohmann::json::parse(line));
  REQUIRE(all.size() == 3);
  CHECK(all[0].size() == 3);
  CHECK(all[1]["process"] == "worker one");
  CHECK(all[1]["crawl"] == "c1");
  CHECK(all[1]["snapshot"] == "s1");
  CHECK(all[1]["attempt"] == 3);
  CHECK(all[1]["plugin"] == "wget");
  CHECK(all[1]["hook"] == "on_Snapshot__35_wget");
  CHECK(all[2]["process"] == "worker one");
  CHECK(!all[2].contains("crawl"));
}
