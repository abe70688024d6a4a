#include "tests/store/stage.hpp"

#include "lib/base/uuid.hpp"
#include "lib/pg/sqlstate.hpp"
#include "tests/store/migrated.hpp"

#include <doctest/doctest.h>

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

Stage::Stage() : connection(database_.dsn()) {
  run("set holdfast.claim_near = 1"); // else every other claim does not care which crawls a node has open
}

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

std::string Stage::node(const std::string& label, std::chrono::milliseconds lease) {
  store::ProcessInfo process;
  process.id = base::new_uuid();
  process.machine = {"machine", "host.test", "os", "x86_64", 2, 1024};
  process.boot_id = "boot";
  process.pid = 1;
  process.process_type = "worker";
  process.worker_type = "snapshot";
  process.label = label;
  process.slots = 8;
  store::node_join(connection, process, lease);
  return process.id;
}

void Stage::expire(const std::string& node) {
  run("update holdfast.process set lease_until = clock_timestamp() - interval '1 second' where id = $1::uuid",
      pg::Params::of(node));
}

store::Seed Stage::seed(const std::string& name) { return {"https://site.test/" + name, "site.test", "", {}}; }

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
  const std::string expander = node("expander");
  const auto lease = store::crawl_claim(connection, expander, 1min);
  REQUIRE(lease);
  REQUIRE(lease->crawl_id == id);
  store::crawl_expand(connection, expander, *lease, 100000);
  store::node_leave(connection, expander, 0, "expanded");
  return id;
}

store::Claim Stage::claim(const std::string& node) {
  const auto claims = store::snapshot_claim(connection, node, 1, {});
  REQUIRE(claims.size() == 1);
  return claims[0];
}

store::Claim Stage::claim_and_start(const std::string& node) {
  auto one = claim(node);
  store::snapshot_start(connection, node, one.lease);
  return one;
}

store::Sealing Stage::succeeded(std::vector<store::Seed> discovered) {
  store::Sealing sealing;
  sealing.outcome = "succeeded";
  sealing.directory = "2026/01/site.test/id/a1";
  sealing.manifest_sha256 = "digest";
  sealing.bytes = 1000;
  sealing.files = 3;
  sealing.discovered = std::move(discovered);
  return sealing;
}

store::Sealed Stage::seal(const std::string& node, const store::Claim& claim, const store::Sealing& sealing) {
  return store::snapshot_seal(connection, node, claim.lease, sealing);
}

std::string Stage::status(const store::Lease& lease) {
  return value("select status from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(lease.snapshot_id));
}

} // namespace holdfast::test
