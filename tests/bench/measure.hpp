#pragma once
// What the measurements of bench-queue share: settings of the command line, times, a no-op page.

#include "lib/store/snapshot.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace holdfast::bench {

using Clock = std::chrono::steady_clock;
using Settings = std::map<std::string, std::string>;

double seconds_since(Clock::time_point from);
double cpu_seconds(); // of this process

int number(const Settings& settings, const std::string& name, int otherwise);

// Begins a phase: prints its name, and waits for a line on standard input, so that the caller can read the server's
// CPU time first. The phase ends with the next one, or when the answer is printed.
void begin_phase(const std::string& name);

// Milliseconds of one kind of call.
struct Times {
  std::vector<double> all;
  void add(Clock::time_point from) { all.push_back(seconds_since(from) * 1000); }
  void add(const Times& others) { all.insert(all.end(), others.all.begin(), others.all.end()); }
  void report(nlohmann::json& answer, const std::string& name); // <name>_p50_ms and <name>_p99_ms
};

// A machine that stands still (a frozen control group, a suspended laptop) lets all deadlines pass. A measurement lives
// through an hour of that: with this lease, in sessions with such deadlines, and with calls that are tried again 30
// times, whatever the clock says, because claims wait only 50 ms for a lock.
constexpr std::chrono::hours kLease{1};
pg::Connection connect(const std::string& dsn);
void repeat_temporary(const std::function<void()>& work); // while its error is temporary; pauses as a worker does

// A worker with this lease. Returns its id.
std::string join(pg::Connection& connection);

// A hook's name, by its place on the page, and what it leaves.
store::HookResult result_of_hook(int number);
// A claimed snapshot, archived by so many hooks that did nothing.
store::Page sealed_page(const store::Claim& claim, int hooks);

} // namespace holdfast::bench
