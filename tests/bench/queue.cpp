// Drives the queue through lib/store, as a node does: bench-queue WHAT DSN [NAME=VALUE...]. Prints one JSON object.
//
//   migrate                                   brings an empty database to the schema
//   fill     items= crawls= hosts=            adds crawls with no-op URLs and expands them, as `add` and a node do
//   drain    claimers= batch= settle= seconds= rate=
//                                             claims and seals until nothing is left; settle=one: each snapshot by
//                                             itself; settle=many: each call for a whole batch
//   claims   samples= batch=                  claims and puts back, so that the queue stays as it is; times the claims
//   listen   samples=                         the floor of a pickup: NOTIFY, then one update, on two sessions
//
// One thread and one session for each claimer. All times are this process' own.

#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/node.hpp"
#include "lib/store/schema.hpp"
#include "lib/store/snapshot.hpp"

#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

using namespace holdfast;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

using Settings = std::map<std::string, std::string>;

double seconds_since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

int number(const Settings& settings, const std::string& name, int otherwise) {
  const auto found = settings.find(name);
  return found == settings.end() ? otherwise : std::stoi(found->second);
}

// Milliseconds of one kind of call.
struct Times {
  std::vector<double> all;
  void add(Clock::time_point from) { all.push_back(seconds_since(from) * 1000); }
  void report(nlohmann::json& answer, const std::string& name) {
    if (all.empty()) return;
    std::sort(all.begin(), all.end());
    answer[name + "_p50_ms"] = all[all.size() / 2];
    answer[name + "_p99_ms"] = all[all.size() * 99 / 100];
  }
};

std::string join(pg::Connection& connection) {
  store::ProcessInfo process;
  process.id = base::new_uuid();
  process.machine = {"bench", "bench", "", "", 1, 0};
  process.boot_id = "bench";
  process.process_type = "worker";
  process.worker_type = "snapshot";
  process.label = "bench";
  process.slots = 1000;
  store::node_join(connection, process, 24h);
  return process.id;
}

nlohmann::json fill(const std::string& dsn, const Settings& settings) {
  const int items = number(settings, "items", 1000), crawls = number(settings, "crawls", 20),
            hosts = number(settings, "hosts", 200);
  pg::Connection connection(dsn);
  const std::string node = join(connection);
  auto from = Clock::now();
  for (int i = 0; i < crawls; ++i) {
    std::vector<store::Seed> seeds;
    for (int n = i; n < items; n += crawls) {
      const std::string host = "site" + std::to_string(n / crawls % hosts) + ".example";
      seeds.push_back({"https://" + host + "/page/" + std::to_string(n), host, "", {}});
    }
    store::NewCrawl crawl;
    crawl.id = base::new_uuid();
    store::crawl_add(connection, crawl, seeds);
  }
  nlohmann::json answer{{"items", items}, {"add_seconds", seconds_since(from)}};
  from = Clock::now();
  while (const auto lease = store::crawl_claim(connection, node, 1h))
    while (store::crawl_expand(connection, node, *lease, 5000).seeds_left > 0) {
    }
  answer["expand_seconds"] = seconds_since(from);
  store::node_leave(connection, node, 0, "filled");
  connection.call("analyze");
  return answer;
}

store::Sealing no_op() {
  store::Sealing sealing;
  sealing.outcome = "succeeded";
  sealing.directory = "2026/01/site.example/id/a1";
  sealing.manifest_sha256 = std::string(64, 'd');
  sealing.bytes = 1000;
  sealing.files = 3;
  return sealing;
}

const std::string kResult = R"({"output":"page.html","output_bytes":1000,"exit_code":0,"wall_ms":10,"user_ms":1})";

const store::HookStart kHook{"none", "on_Snapshot__10_none", 0, 0, 0ms, false};

// What a node calls for a snapshot with one hook.
void settle_one(pg::Connection& connection, const std::string& node, const store::Claim& claim) {
  store::result_start(connection, node, claim.lease, kHook);
  store::result_finish(connection, node, claim.lease, kHook.plugin, kHook.hook_name, "succeeded", kResult);
  store::snapshot_seal(connection, node, claim.lease, no_op());
}

// What a node calls when so many jobs of it write at once; in the order of their crawls, as locks are taken.
void settle_many(pg::Connection& connection, const std::string& node, std::vector<store::Claim> claims) {
  std::sort(claims.begin(), claims.end(), [](const auto& a, const auto& b) {
    return std::tie(a.lease.crawl_id, a.lease.snapshot_id) < std::tie(b.lease.crawl_id, b.lease.snapshot_id);
  });
  const store::Sealing sealing = no_op();
  const std::string status = "succeeded";
  std::vector<store::StartRequest> starts;
  std::vector<store::FinishRequest> finishes;
  std::vector<store::SealRequest> seals;
  for (const auto& claim : claims) {
    starts.push_back({claim.lease, kHook});
    finishes.push_back({claim.lease, kHook.plugin, kHook.hook_name, status, kResult});
    seals.push_back({claim.lease, sealing});
  }
  store::result_start_many(connection, node, starts);
  store::result_finish_many(connection, node, finishes);
  store::snapshot_seal_many(connection, node, seals);
}

nlohmann::json drain(const std::string& dsn, const Settings& settings) {
  const int claimers = number(settings, "claimers", 1), batch = number(settings, "batch", 1);
  const bool many = settings.contains("settle") && settings.at("settle") == "many";
  const double limit = number(settings, "seconds", 60);
  const int rate = number(settings, "rate", 0); // claims a second of all together; 0: as fast as it goes
  std::atomic<int> done{0}, ready{0}, idle{0};
  std::atomic<bool> go{false};
  std::mutex mutex;
  Times claim_times;
  std::string trouble;
  Clock::time_point from;
  std::vector<std::thread> threads;
  for (int i = 0; i < claimers; ++i)
    threads.emplace_back([&] {
      try {
        pg::Connection connection(dsn);
        const std::string node = join(connection);
        Times mine;
        ++ready;
        while (!go)
          std::this_thread::sleep_for(1ms);
        auto next = Clock::now();
        bool counted_idle = false;
        while (seconds_since(from) < limit && idle < claimers) {
          const auto asked = Clock::now();
          const auto claims = store::snapshot_take(connection, node, batch, {}, false);
          mine.add(asked);
          if (claims.empty()) { // what others hold may not be ours, but the end is when nobody finds anything
            if (!counted_idle) ++idle;
            counted_idle = true;
            std::this_thread::sleep_for(5ms);
            continue;
          }
          if (counted_idle) --idle;
          counted_idle = false;
          if (many) {
            settle_many(connection, node, claims);
          } else {
            for (const auto& claim : claims)
              settle_one(connection, node, claim);
          }
          done += static_cast<int>(claims.size());
          if (rate > 0) {
            next += std::chrono::microseconds(1'000'000L * claimers / rate);
            std::this_thread::sleep_until(next);
          }
        }
        store::node_leave(connection, node, 0, "done");
        const std::lock_guard lock(mutex);
        claim_times.all.insert(claim_times.all.end(), mine.all.begin(), mine.all.end());
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        trouble = error.what();
        ++ready;
        ++idle;
      }
    });
  while (ready < claimers)
    std::this_thread::sleep_for(1ms);
  from = Clock::now();
  go = true;
  for (auto& thread : threads)
    thread.join();
  if (!trouble.empty()) throw std::runtime_error(trouble);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  nlohmann::json answer{{"items", done.load()}, {"seconds", seconds_since(from)}, {"client_cpu_seconds", cpu}};
  claim_times.report(answer, "claim");
  return answer;
}

nlohmann::json claims(const std::string& dsn, const Settings& settings) {
  const int samples = number(settings, "samples", 100), batch = number(settings, "batch", 8);
  pg::Connection connection(dsn);
  const std::string node = join(connection);
  Times times;
  std::size_t taken = 0;
  const auto end = Clock::now() + std::chrono::seconds(number(settings, "seconds", 30));
  for (int i = 0; i < samples + 10 && Clock::now() < end; ++i) {
    const auto from = Clock::now();
    const auto claimed = store::snapshot_take(connection, node, batch, {}, false);
    if (i >= 10) times.add(from); // the first ones plan their statements
    if (i >= 10) taken += claimed.size();
    std::vector<std::string> snapshots, crawls;
    std::vector<std::int64_t> fences;
    for (const auto& claim : claimed) {
      snapshots.push_back(claim.lease.snapshot_id);
      crawls.push_back(claim.lease.crawl_id);
      fences.push_back(claim.lease.fence);
    }
    connection.call("select holdfast.snapshot_release($1::uuid, s, c, f, 'released', '0', 'measured', false) from "
                    "(select * from unnest($2::uuid[], $3::uuid[], $4::bigint[]) u(s, c, f) order by c, s) w",
                    pg::Params::of(node, snapshots, crawls, fences));
  }
  nlohmann::json answer{
      {"samples", times.all.size()},
      {"rows_per_claim", static_cast<double>(taken) / std::max<double>(1, static_cast<double>(times.all.size()))}};
  times.report(answer, "claim");
  store::node_leave(connection, node, 0, "done");
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

} // namespace

int main(int count, char** arguments) {
  try {
    if (count < 3) throw std::runtime_error("bench-queue WHAT DSN [NAME=VALUE...]");
    const std::string what = arguments[1], dsn = arguments[2];
    Settings settings;
    for (int i = 3; i < count; ++i) {
      const std::string pair = arguments[i];
      settings[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    }
    nlohmann::json answer;
    if (what == "migrate") {
      pg::Connection connection(dsn);
      store::migrator().migrate(connection);
    } else if (what == "fill") {
      answer = fill(dsn, settings);
    } else if (what == "drain") {
      answer = drain(dsn, settings);
    } else if (what == "claims") {
      answer = claims(dsn, settings);
    } else if (what == "listen") {
      answer = listen(dsn, settings);
    } else {
      throw std::runtime_error("no such measurement: " + what);
    }
    std::cout << answer.dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench-queue: " << error.what() << '\n';
    return 1;
  }
}
