// Drives the queue through lib/store, as a worker does: bench-queue WHAT DSN [NAME=VALUE...]. Prints the names of the
// phases (see begin_phase) and one JSON object.
//
//   migrate                                   brings an empty database to the schema
//   fill     items= crawls= hosts=            adds crawls with no-op URLs and expands them, as `add` and a worker do
//   drain    claimers= batch= hooks= seconds= worker_turn in a loop until nothing is left: each call finishes what the
//                                             one before has claimed, and claims up to `batch`
//   claims   samples= batch=                  claims and releases, so that the queue stays as it is; times the claims
//   listen   samples=                         the floor of a pickup: NOTIFY, then one update, on two sessions
//   simulate workers= slots= page_ms= hooks= warm_ms= seconds=
//                                             workers whose pages only take time; see simulation.hpp
//
// One thread and one session for each claimer or worker. All times are this process' own.

#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/schema.hpp"
#include "tests/bench/measure.hpp"
#include "tests/bench/simulation.hpp"

#include <poll.h>

#include <atomic>
#include <fstream>
#include <iostream>
#include <mutex>
#include <thread>

using namespace holdfast;
using namespace holdfast::bench;
using namespace std::chrono_literals;

namespace {

nlohmann::json fill(const std::string& dsn, const Settings& settings) {
  const int items = number(settings, "items", 1000), crawls = number(settings, "crawls", 20),
            hosts = number(settings, "hosts", 200);
  pg::Connection connection = connect(dsn);
  const std::string worker = join(connection);
  std::vector<std::vector<store::Seed>> seeds(static_cast<std::size_t>(crawls));
  for (int n = 0; n < items; ++n)
    seeds[static_cast<std::size_t>(n % crawls)].push_back(
        {"https://site" + std::to_string(n / crawls % hosts) + ".example/page/" + std::to_string(n), "", {}});
  begin_phase("add");
  auto from = Clock::now();
  for (const auto& of_crawl : seeds) {
    store::NewCrawl crawl;
    crawl.id = base::new_uuid();
    store::crawl_add(connection, crawl, of_crawl);
  }
  nlohmann::json answer{{"items", items}, {"add_seconds", seconds_since(from)}};
  begin_phase("expand");
  from = Clock::now();
  while (const auto lease = store::crawl_claim(connection, worker, kLease))
    while (store::crawl_expand(connection, worker, *lease, 5000).seeds_left > 0) {
    }
  answer["expand_seconds"] = seconds_since(from);
  begin_phase("rest");
  store::call(connection, "process_leave", worker, 0, "filled");
  connection.call("analyze");
  return answer;
}

// What the claimers of a drain share.
struct Drain {
  std::string dsn;
  int claimers, batch, hooks;
  double limit;
  std::atomic<int> ready{0}, idle{0}, pages{0}, turns{0};
  std::atomic<bool> go{false}, broken{false};
  Clock::time_point from{};
  std::mutex mutex{}; // for what follows
  Times times{};
  double last_end{0};
  std::string trouble{};
};

// One turn. Returns how many pages it finished; then `request` holds those that it claimed.
std::size_t turn(pg::Connection& connection, const std::string& worker, store::TurnRequest& request, int hooks) {
  store::TurnAnswer answer;
  repeat_temporary([&] { answer = store::worker_turn(connection, worker, request); });
  for (const auto& page : answer.pages)
    if (page.what != store::PageAnswer::What::sealed)
      throw std::runtime_error("a page was " + std::string(to_string(page.what)) + " instead of sealed");
  request.pages.clear();
  for (const auto& claim : answer.claims)
    request.pages.push_back(sealed_page(claim, hooks));
  return answer.pages.size();
}

void claimer(Drain& drain) {
  pg::Connection connection = connect(drain.dsn);
  const std::string worker = join(connection);
  store::TurnRequest request;
  request.claim.room = 1;
  for (int i = 0; i < 3; ++i) // the first turns plan their statements
    turn(connection, worker, request, drain.hooks);
  request.claim.room = drain.batch;
  ++drain.ready;
  while (!drain.go)
    std::this_thread::sleep_for(1ms);
  Times times;
  double last_end = 0;
  bool counted_idle = false;
  while (seconds_since(drain.from) < drain.limit && drain.idle < drain.claimers && !drain.broken) {
    const auto asked = Clock::now();
    const auto finished = turn(connection, worker, request, drain.hooks);
    times.add(asked);
    ++drain.turns;
    drain.pages += static_cast<int>(finished);
    if (finished > 0) last_end = seconds_since(drain.from);
    const bool is_idle = request.pages.empty();
    if (is_idle != counted_idle) drain.idle += is_idle ? 1 : -1;
    counted_idle = is_idle;
    if (is_idle) std::this_thread::sleep_for(5ms); // others still hold pages, which they may release
  }
  if (!counted_idle) ++drain.idle;
  const std::lock_guard lock(drain.mutex);
  drain.times.add(times);
  drain.last_end = std::max(drain.last_end, last_end);
}

nlohmann::json drain(const std::string& dsn, const Settings& settings) {
  Drain drain{.dsn = dsn,
              .claimers = number(settings, "claimers", 1),
              .batch = number(settings, "batch", 1),
              .hooks = number(settings, "hooks", 1),
              .limit = static_cast<double>(number(settings, "seconds", 60))};
  std::vector<std::thread> threads;
  for (int i = 0; i < drain.claimers; ++i)
    threads.emplace_back([&drain] {
      try {
        claimer(drain);
      } catch (const std::exception& error) {
        const std::lock_guard lock(drain.mutex);
        drain.trouble = error.what();
        ++drain.ready;
        drain.broken = true;
      }
    });
  while (drain.ready < drain.claimers)
    std::this_thread::sleep_for(1ms);
  begin_phase("drain");
  const double cpu = cpu_seconds();
  drain.from = Clock::now();
  drain.go = true;
  for (auto& thread : threads)
    thread.join();
  if (!drain.trouble.empty()) throw std::runtime_error(drain.trouble);
  nlohmann::json answer{{"items", drain.pages.load()},
                        {"turns", drain.turns.load()},
                        {"seconds", drain.last_end},
                        {"client_cpu_seconds", cpu_seconds() - cpu}};
  drain.times.report(answer, "turn");
  return answer;
}

// Milliseconds of CPU time that a backend on this machine has used; 0 if the kernel does not say.
double backend_cpu_ms(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  double nanoseconds = 0;
  file >> nanoseconds;
  return nanoseconds / 1e6;
}

nlohmann::json claims(const std::string& dsn, const Settings& settings) {
  const int samples = number(settings, "samples", 100), batch = number(settings, "batch", 8);
  pg::Connection connection = connect(dsn);
  const std::string worker = join(connection);
  store::ClaimRequest request;
  request.room = batch;
  Times times, cpu;
  std::size_t taken = 0;
  const auto end = Clock::now() + std::chrono::seconds(number(settings, "seconds", 30));
  for (int i = 0; i < samples + 10 && (i <= 10 || Clock::now() < end); ++i) {
    const double before = backend_cpu_ms(connection.backend_pid());
    const auto from = Clock::now();
    const auto claimed = store::worker_turn(connection, worker, {.claim = request}).claims;
    if (i >= 10) { // the first ones plan their statements
      times.add(from);
      cpu.all.push_back(backend_cpu_ms(connection.backend_pid()) - before);
      taken += claimed.size();
    }
    std::vector<store::Page> pages;
    for (const auto& claim : claimed) {
      store::Page page;
      page.lease = claim.lease;
      page.ending = "released";
      page.delay = 0ms;
      page.reason = "measured";
      pages.push_back(page);
    }
    store::worker_turn(connection, worker, {.pages = pages});
  }
  nlohmann::json answer{
      {"samples", times.all.size()},
      {"rows_per_claim", static_cast<double>(taken) / std::max<double>(1, static_cast<double>(times.all.size()))}};
  times.report(answer, "claim");
  cpu.report(answer, "claim_cpu");
  store::call(connection, "process_leave", worker, 0, "done");
  return answer;
}

nlohmann::json listen(const std::string& dsn, const Settings& settings) {
  const int samples = number(settings, "samples", 100);
  pg::Connection worker(dsn), client(dsn);
  client.script("create table if not exists floor (id bigint primary key, owner int); truncate floor");
  worker.listen("floor");
  worker.call("update floor set owner = 1 where id = $1::bigint", pg::Params::of(0));
  Times times;
  for (int i = 1; i <= samples; ++i) {
    std::this_thread::sleep_for(20ms);
    Clock::time_point claimed;
    std::thread idle([&] {
      pollfd wait{worker.descriptor(), POLLIN, 0};
      while (worker.notifications().empty())
        if (poll(&wait, 1, 5000) <= 0) break;
      worker.call("update floor set owner = 1 where id = $1::bigint", pg::Params::of(i));
      claimed = Clock::now();
    });
    std::this_thread::sleep_for(2ms);
    const auto from = Clock::now();
    client.call("with one as (insert into floor values ($1::bigint)) select pg_notify('floor', '')", pg::Params::of(i));
    idle.join();
    times.all.push_back(std::chrono::duration<double, std::milli>(claimed - from).count());
  }
  nlohmann::json answer{{"samples", samples}};
  times.report(answer, "pickup");
  return answer;
}

nlohmann::json migrate(const std::string& dsn, const Settings&) {
  pg::Connection connection = connect(dsn);
  store::migrator().migrate(connection);
  return nlohmann::json::object();
}

using Measurement = nlohmann::json (*)(const std::string& dsn, const Settings& settings);
const std::map<std::string, Measurement> kMeasurements = {{"migrate", migrate}, {"fill", fill},
                                                          {"drain", drain},     {"claims", claims},
                                                          {"listen", listen},   {"simulate", simulate}};

} // namespace

int main(int count, char** arguments) {
  try {
    if (count < 3) throw std::runtime_error("bench-queue WHAT DSN [NAME=VALUE...]");
    const auto what = kMeasurements.find(arguments[1]);
    if (what == kMeasurements.end()) throw std::runtime_error("no such measurement: " + std::string(arguments[1]));
    Settings settings;
    for (int i = 3; i < count; ++i) {
      const std::string pair = arguments[i];
      settings[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    }
    std::cout << what->second(arguments[2], settings).dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench-queue: " << error.what() << '\n';
    return 1;
  }
}
