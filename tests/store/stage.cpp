#include "tests/store/stage.hpp"

#include "lib/base/uuid.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/store/call.hpp"
#include "tests/store/migrated.hpp"
#include "tests/support/pass.hpp"

#include <doctest/doctest.h>

#include <utility>

namespace holdfast::test {

std::string refusal(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const pg::DatabaseError& error) {
    return error.sqlstate();
  } catch (const base::Error& error) {
    return std::string(base::to_string(error.error_class()));
  }
}

Stage::Stage() : connection(database_.dsn()) {}

Stage::~Stage() {
  if (!broken_on_purpose) expect_invariants(connection);
}

std::string Stage::value(const std::string& sql, const pg::Params& params) {
  const auto result = connection.call(sql, params);
  REQUIRE_MESSAGE(result.size() == 1, sql);
  return result.cell(0, 0).value_or("");
}

pg::Row Stage::row(const std::string& sql, const pg::Params& params) {
  return kept_.emplace_back(connection.call(sql, params)).one();
}

void Stage::force(const std::string& sql) { connection.script("set local session_replication_role = replica; " + sql); }

bool Stage::command(std::string_view operation, const std::string& id, const nlohmann::json& body) {
  return catalog::command(connection, operation, id, "ann", body);
}

std::string Stage::worker(const std::string& label, std::chrono::milliseconds lease) {
  store::ProcessInfo process;
  process.id = base::new_uuid();
  process.machine = {"machine", "host.test", "os", "x86_64", 2, 1024};
  process.boot_id = "boot";
  process.pid = 1;
  process.process_type = "worker";
  process.worker_type = "snapshot";
  process.label = label;
  process.slots = 8;
  store::process_join(connection, process, lease);
  return process.id;
}

void Stage::pass(const std::string& time) { connection.script(passes(time)); }

void Stage::expire(const std::string& worker) {
  run("update holdfast.process set lease_until = clock_timestamp() - interval '1 second' where id = $1::uuid",
      pg::Params::of(worker));
}

store::Seed Stage::seed(const std::string& name) { return {"https://site.test/" + name, "", {}}; }

std::vector<store::Seed> Stage::seeds(int from, int to) {
  std::vector<store::Seed> all;
  for (int i = from; i <= to; ++i)
    all.push_back(seed(std::to_string(i)));
  return all;
}

std::string Stage::add(const std::vector<store::Seed>& seeds, store::NewCrawl crawl) {
  if (crawl.id.empty()) crawl.id = base::new_uuid();
  REQUIRE(store::crawl_add(connection, crawl, seeds));
  return crawl.id;
}

std::string Stage::start(const std::vector<store::Seed>& seeds, store::NewCrawl crawl) {
  const std::string id = add(seeds, std::move(crawl));
  const std::string expander = worker("expander");
  const auto lease = store::crawl_claim(connection, expander, 1min);
  REQUIRE(lease);
  REQUIRE(lease->crawl_id == id);
  store::crawl_expand(connection, expander, *lease, 100000);
  store::call(connection, "process_leave", expander, 0, "expanded");
  return id;
}

store::Claim Stage::claim(const std::string& worker) {
  auto claims = claim_many(worker, 1);
  REQUIRE(claims.size() == 1);
  return std::move(claims[0]);
}

std::vector<store::Claim> Stage::claim_as(const std::string& worker, const store::ClaimRequest& request) {
  return store::worker_turn(connection, worker, {.claim = request}).claims;
}

std::vector<store::Claim> Stage::claim_many(const std::string& worker, int room, const std::vector<std::string>& open) {
  return claim_as(worker, {.room = room, .open = open});
}

void Stage::expand(const std::string& worker) {
  while (const auto lease = store::crawl_claim(connection, worker, 1min))
    while (store::crawl_expand(connection, worker, *lease, 1000).seeds_left > 0) {
    }
}

std::vector<store::Claim> Stage::claim_only(const std::string& worker, int room, const std::vector<std::string>& open) {
  return claim_as(worker, {.room = room, .open = open, .open_only = true});
}

store::Page Stage::sealed(const store::Claim& claim, const std::string& outcome) {
  store::Page page;
  page.lease = claim.lease;
  page.outcome = outcome;
  if (outcome != "succeeded" && outcome != "partial") page.reason = "a sentence";
  page.directory = "2026/01/" + claim.host + "/" + claim.lease.snapshot_id + "/a" + std::to_string(claim.lease.fence);
  page.manifest = "digest";
  page.bytes = 1000;
  page.files = 3;
  return page;
}

store::Page Stage::released(const store::Claim& claim, std::optional<std::chrono::milliseconds> delay,
                            const std::string& reason) {
  store::Page page;
  page.lease = claim.lease;
  page.ending = "released";
  page.reason = reason;
  page.delay = delay;
  page.spend = true;
  return page;
}

store::HookResult Stage::result(const std::string& plugin, const std::string& hook, const std::string& status) {
  store::HookResult result;
  result.plugin = plugin;
  result.hook = hook;
  result.status = status;
  result.pid = 1;
  result.started = std::chrono::steady_clock::now();
  if (status == "failed" || status == "skipped") result.error = "a sentence";
  return result;
}

store::ActiveHook Stage::running(const store::Claim& claim, const std::string& plugin, const std::string& hook) {
  store::ActiveHook active;
  active.lease = claim.lease;
  active.plugin = plugin;
  active.hook = hook;
  active.pid = 1;
  active.started = std::chrono::steady_clock::now();
  active.timeout = 60s;
  return active;
}

store::PageAnswer Stage::finish(const std::string& worker, const store::Page& page) {
  return finish_all(worker, {page}).at(0);
}

std::vector<store::PageAnswer> Stage::finish_all(const std::string& worker, const std::vector<store::Page>& pages) {
  return store::worker_turn(connection, worker, {.pages = pages}).pages;
}

store::PageAnswer Stage::seal(const std::string& worker, const store::Claim& claim, std::vector<store::Seed> links) {
  auto page = sealed(claim);
  page.links = std::move(links);
  return finish(worker, page);
}

store::PageAnswer Stage::release(const std::string& worker, const store::Claim& claim,
                                 std::optional<std::chrono::milliseconds> delay, const std::string& reason) {
  return finish(worker, released(claim, delay, reason));
}

std::string Stage::status(const store::Lease& lease) {
  return value("select status from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(lease.snapshot_id));
}

} // namespace holdfast::test
