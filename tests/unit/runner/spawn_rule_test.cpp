#include "services/runner/spawner.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace std::chrono_literals;
using Running = store::WorkerCounts;
using runner::SpawnerOptions;
using Kinds = std::vector<std::string>;

namespace {

// Four workers for all, or four for snapshots and one for crawls; four snapshots each.
SpawnerOptions spawner_options(bool split, int max_total = 12) {
  SpawnerOptions options;
  options.split = split;
  options.max_per_type = 4;
  options.max_crawl_workers = 1;
  options.max_total = max_total;
  options.slots = 4;
  return options;
}

struct SpawnCase {
  const char* rule;
  bool split;
  int max_total;
  store::Backlog backlog; // crawls due, snapshots due
  Running running;
  Kinds spawned;
};

const SpawnCase kSpawnCases[] = {
    {"nothing due, nothing started", false, 12, {0, 0}, {}, {}},
    {"the first worker, for one snapshot", false, 12, {0, 1}, {}, {"all"}},
    {"the first worker, for one crawl", false, 12, {1, 0}, {}, {"all"}},
    {"one worker a round, however much is due", false, 12, {100, 100000}, {}, {"all"}},
    {"no other one for what the first can hold", false, 12, {1, 3}, {{"all", {1, 1}}}, {}},
    {"another one for more than that", false, 12, {1, 4}, {{"all", {1, 1}}}, {"all"}},
    {"the limit of a kind", false, 12, {0, 1000}, {{"all", {4, 4}}}, {}},
    {"those that can claim nothing of it hold nothing", false, 12, {1, 3}, {{"all", {1, 0}}}, {"all"}},
    {"but count for the limits", false, 12, {0, 1000}, {{"all", {4, 0}}}, {}},
    {"workers of every kind count for the limit", false, 12, {0, 1000}, {{"snapshot", {4, 4}}}, {}},
    {"the limit in total", false, 2, {0, 1000}, {{"all", {2, 2}}}, {}},
    {"split: one of each kind a round", true, 12, {5, 1000}, {}, {"crawl", "snapshot"}},
    {"split: only the kind that something is due for", true, 12, {0, 1}, {}, {"snapshot"}},
    {"split: the limit of crawl workers", true, 12, {5, 0}, {{"crawl", {1, 1}}}, {}},
    {"split: a full kind does not stop the other", true, 12, {5, 8}, {{"crawl", {1, 1}}}, {"snapshot"}},
    {"split: kinds are counted apart", true, 12, {1, 1000}, {{"snapshot", {4, 4}}}, {"crawl"}},
    {"split: workers for all hold either kind", true, 12, {1, 4}, {{"all", {1, 1}}}, {}},
    {"split: the limit in total counts both kinds", true, 2, {1, 1000}, {{"snapshot", {2, 2}}}, {}},
    {"split: and what was started in this round", true, 3, {1, 1000}, {{"snapshot", {2, 2}}}, {"crawl"}},
};

store::Backlog backlog_of(std::int64_t due, std::int64_t held, bool unfinished) {
  store::Backlog backlog;
  backlog.snapshots_due = due;
  backlog.held = held;
  backlog.unfinished = unfinished;
  return backlog;
}

} // namespace

TEST_CASE("the workers that one round starts") {
  for (const auto& [rule, split, max_total, backlog, running, spawned] : kSpawnCases) {
    CAPTURE(rule);
    CHECK(runner::kinds_to_spawn(backlog, running, spawner_options(split, max_total)) == spawned);
  }
}

TEST_CASE("without a limit per kind, half the processors are the limit, but one worker runs and four are enough") {
  for (const auto& [processors, limit] : {std::pair{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {8, 4}, {64, 4}})
    CHECK(runner::limit_by_processors(4, processors) == limit);
}

TEST_CASE("no worker is started beside a newer run, or beside enough workers that others have started") {
  const auto options = spawner_options(false, 3);
  const store::Neighbours two{{{"all", {2, 2}}}, ""};
  CHECK(runner::why_none({0, 100}, two, {{"all", {3, 3}}}, options) ==
        "3 of 3 workers of this machine run; 2 were started elsewhere");
  CHECK(runner::why_none({0, 100}, {{}, "runner on h pid 7"}, {}, options) ==
        "runner on h pid 7 starts the workers of this machine");
  CHECK(runner::why_none({0, 100}, {}, {{"all", {3, 3}}}, options).empty());
  CHECK(runner::why_none({0, 0}, two, {{"all", {3, 3}}}, options).empty());
}

TEST_CASE("a spawner that ends waits for everything; one that stays waits for what can be done now") {
  auto options = spawner_options(false);
  CHECK(runner::is_busy(backlog_of(0, 0, true), options)); // scheduled for later
  CHECK_FALSE(runner::is_busy(backlog_of(0, 0, false), options));
  options.stay = true;
  CHECK_FALSE(runner::is_busy(backlog_of(0, 0, true), options));
  CHECK(runner::is_busy(backlog_of(1, 0, true), options));
  CHECK(runner::is_busy(backlog_of(0, 1, true), options));
}

TEST_CASE("all is done after idle_timeout rounds without work, unless it is 0 or the spawner stays") {
  auto options = spawner_options(false);
  options.idle_timeout = 3;
  CHECK_FALSE(runner::is_done(2, options));
  CHECK(runner::is_done(3, options));
  options.idle_timeout = 0;
  CHECK_FALSE(runner::is_done(1000, options));
  options.idle_timeout = 3;
  options.stay = true;
  CHECK_FALSE(runner::is_done(3, options));
}

TEST_CASE("a spawner that stays keeps one worker when there is no work, and all of them until then") {
  auto options = spawner_options(false);
  options.idle_timeout = 3;
  CHECK(runner::to_keep(4, 3, options) == 4); // they end when all is done
  options.stay = true;
  CHECK(runner::to_keep(4, 2, options) == 4);
  CHECK(runner::to_keep(4, 3, options) == 1);
  CHECK(runner::to_keep(0, 3, options) == 0);
  options.idle_timeout = 0;
  CHECK(runner::to_keep(4, 0, options) == 4);
  CHECK(runner::to_keep(4, 1, options) == 1);
}

TEST_CASE("failed starts and crashes are tried again, until there are too many within the window") {
  auto options = spawner_options(false);
  options.max_crashes = 3;
  options.crash_window = 60s;
  const auto start = std::chrono::steady_clock::now();
  runner::CrashTimes crashes{start, start + 30s};
  CHECK_FALSE(runner::keeps_crashing(crashes, start + 30s, options));
  crashes.push_back(start + 50s);
  CHECK(runner::keeps_crashing(crashes, start + 60s, options));
  CHECK_FALSE(runner::keeps_crashing(crashes, start + 61s, options));
  CHECK(crashes.size() == 2);
}
