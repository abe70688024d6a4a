#include "lib/store/snapshot.hpp"

#include "lib/base/error.hpp"
#include "lib/pg/sqlstate.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace holdfast::store {

namespace {

std::vector<Claim> claims_of(const pg::Result& rows) {
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    Claim claim;
    claim.lease = {row.text("snapshot_id"), row.text("crawl_id"), row.integer("fence")};
    claim.url = row.text("url");
    claim.host = row.text("host");
    claim.title = row.text("title");
    claim.created_at = row.text("created_at");
    claim.depth = static_cast<int>(row.integer("depth"));
    claim.max_depth = static_cast<int>(row.integer("max_depth"));
    claim.attempts = static_cast<int>(row.integer("attempts"));
    claim.owners_lost = static_cast<int>(row.integer("owners_lost"));
    claim.tags = row.text_array("tags");
    claim.plugins = row.text_array("plugins");
    claim.persona = row.text("persona");
    const auto options = nlohmann::json::parse(row.text("options"));
    for (const auto& [key, value] : options.items())
      claim.options[key] = value.is_string() ? value.get<std::string>() : value.dump();
    claims.push_back(std::move(claim));
  }
  return claims;
}

pg::DatabaseError lost(const Lease& lease) {
  return {base::ErrorClass::lease_lost, "HF003",
          "snapshot " + lease.snapshot_id + " is no longer held with fence " + std::to_string(lease.fence)};
}

// The leases of several requests, by columns.
struct Leases {
  template <class Request>
  explicit Leases(const std::vector<Request>& requests) {
    for (const Request& request : requests) {
      snapshots.push_back(request.lease.snapshot_id);
      crawls.push_back(request.lease.crawl_id);
      fences.push_back(request.lease.fence);
    }
  }
  std::vector<std::string> snapshots, crawls;
  std::vector<std::int64_t> fences;
};

// `numbers`: a bigint[] of places, from 1 on.
void mark(std::vector<Written>& answers, const std::vector<std::string>& numbers, Written what) {
  for (const auto& number : numbers)
    answers.at(std::stoull(number) - 1) = what;
}

// With what their crawls demand.
std::vector<Claim> taken(const pg::Result& rows) {
  auto claims = claims_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    claims[i].robots = rows[i].boolean("robots");
    claims[i].max_snapshot_bytes = static_cast<std::uint64_t>(rows[i].integer("max_snapshot_bytes"));
    claims[i].archived = rows[i].text_array("archived");
  }
  return claims;
}

} // namespace

std::vector<Claim> snapshot_claim(pg::Connection& connection, const std::string& node, int room,
                                  const std::vector<std::string>& near) {
  return claims_of(connection.call("select * from holdfast.snapshot_claim($1::uuid, $2::integer, $3::uuid[])",
                                   pg::Params::of(node, room, near)));
}

std::vector<Claim> snapshot_take(pg::Connection& connection, const std::string& node, int room,
                                 const std::vector<std::string>& near, bool near_only, const ClaimOrder& order) {
  return taken(connection.call(
      "select * from holdfast.snapshot_take($1::uuid, $2::integer, $3::uuid[], $4::boolean, $5, $6::integer)",
      pg::Params::of(node, room, near, near_only, order.first, order.from_top_n)));
}

std::vector<Claim> work_take(pg::Connection& connection, const std::string& node, int room,
                             const std::vector<std::string>& near, bool near_only, const ClaimOrder& order, int seeds) {
  return taken(connection.call(
      "select * from holdfast.work_take($1::uuid, $2::integer, $3::uuid[], $4::boolean, $5, $6::integer, $7::integer)",
      pg::Params::of(node, room, near, near_only, order.first, order.from_top_n, seeds)));
}

void snapshot_start(pg::Connection& connection, const std::string& node, const Lease& lease) {
  connection.call("select holdfast.snapshot_start($1::uuid, $2::uuid, $3::uuid, $4::bigint)",
                  pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence));
}

void snapshot_release(pg::Connection& connection, const std::string& node, const Lease& lease,
                      const std::string& ending, std::chrono::milliseconds delay, const std::string& reason,
                      bool spend) {
  connection.call(
      "select holdfast.snapshot_release($1::uuid, $2::uuid, $3::uuid, $4::bigint, $5, $6::interval, $7, $8::boolean)",
      pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence, ending,
                     std::to_string(delay.count()) + " milliseconds", reason, spend));
}

std::vector<SealAnswer> snapshot_seal_many(pg::Connection& connection, const std::string& node,
                                           const std::vector<SealRequest>& requests) {
  const Leases leases(requests);
  std::vector<std::string> outcomes, reasons, directories, manifests, titles;
  std::vector<std::int64_t> bytes, files;
  auto more = nlohmann::json::array(); // of those that have tags or links
  for (const auto& [lease, sealing] : requests) {
    outcomes.push_back(sealing.outcome);
    reasons.push_back(sealing.reason);
    directories.push_back(sealing.directory);
    manifests.push_back(sealing.manifest_sha256);
    titles.push_back(sealing.title);
    bytes.push_back(static_cast<std::int64_t>(sealing.bytes));
    files.push_back(static_cast<std::int64_t>(sealing.files));
    if (sealing.tags.empty() && sealing.discovered.empty()) continue;
    nlohmann::json item{{"number", outcomes.size()}};
    for (const auto& tag : sealing.tags)
      item["tags"].push_back(pg::sanitize_utf8(tag));
    for (const Seed& seed : sealing.discovered) {
      item["urls"].push_back(pg::sanitize_utf8(seed.url));
      item["hosts"].push_back(pg::sanitize_utf8(seed.host));
      item["titles"].push_back(pg::sanitize_utf8(seed.title));
    }
    more.push_back(std::move(item));
  }
  const auto rows = connection.call(
      "select * from holdfast.snapshot_seal_many($1::uuid, $2::uuid[], $3::uuid[], $4::bigint[], $5::text[], "
      "$6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::jsonb)",
      pg::Params::of(node, leases.snapshots, leases.crawls, leases.fences, outcomes, reasons, directories, manifests,
                     bytes, files, titles, more.dump()));
  std::vector<SealAnswer> answers(requests.size());
  if (rows.size() != answers.size()) throw std::logic_error("snapshot_seal_many left an item without an answer");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const std::string what = row.text("answer");
    SealAnswer& answer = answers.at(static_cast<std::size_t>(row.integer("number")) - 1);
    answer.what = what == "sealed"      ? SealAnswer::What::sealed
                  : what == "cancelled" ? SealAnswer::What::cancelled
                  : what == "running"   ? SealAnswer::What::running
                                        : SealAnswer::What::lost;
    answer.sealed = {row.integer("children"), row.boolean("crawl_sealed")};
  }
  return answers;
}

Sealed sealed_or_throw(const Lease& lease, const SealAnswer& answer) {
  switch (answer.what) {
  case SealAnswer::What::sealed:
    return answer.sealed;
  case SealAnswer::What::cancelled:
    // For the owner that is as if somebody else had sealed it, and what it has published must go.
    throw pg::DatabaseError(base::ErrorClass::lease_lost, "HF003",
                            "its crawl has been stopped, and keeps nothing more");
  case SealAnswer::What::running:
    throw pg::DatabaseError(base::ErrorClass::bug, "HF001",
                            "snapshot " + lease.snapshot_id + " cannot be sealed: a hook is still running");
  case SealAnswer::What::lost:
    break;
  }
  throw lost(lease);
}

Sealed snapshot_seal(pg::Connection& connection, const std::string& node, const Lease& lease, const Sealing& sealing) {
  return sealed_or_throw(lease, snapshot_seal_many(connection, node, {{lease, sealing}}).front());
}

std::vector<Written> result_start_many(pg::Connection& connection, const std::string& node,
                                       const std::vector<StartRequest>& requests) {
  const Leases leases(requests);
  std::vector<std::string> plugins, hooks, background;
  std::vector<std::int64_t> pids, start_ticks, timeouts;
  for (const auto& [lease, hook] : requests) {
    plugins.push_back(hook.plugin);
    hooks.push_back(hook.hook_name);
    pids.push_back(hook.pid);
    start_ticks.push_back(static_cast<std::int64_t>(hook.start_ticks));
    timeouts.push_back(hook.timeout.count());
    background.emplace_back(hook.background ? "t" : "f");
  }
  const auto rows = connection.call(
      "select holdfast.result_start_many($1::uuid, $2::uuid[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], "
      "$7::integer[], $8::bigint[], $9::bigint[], $10::boolean[]) as lost",
      pg::Params::of(node, leases.snapshots, leases.crawls, leases.fences, plugins, hooks, pids, start_ticks, timeouts,
                     background));
  std::vector<Written> answers(requests.size(), Written::written);
  mark(answers, rows.one().text_array("lost"), Written::lost);
  return answers;
}

std::vector<Written> result_finish_many(pg::Connection& connection, const std::string& node,
                                        const std::vector<FinishRequest>& requests) {
  const Leases leases(requests);
  std::vector<std::string> plugins, hooks, statuses;
  std::string results;
  for (const auto& request : requests) {
    plugins.push_back(request.plugin);
    hooks.push_back(request.hook_name);
    statuses.push_back(request.status);
    results += (results.empty() ? "[" : ",") + request.result_json;
  }
  const auto rows = connection.call(
      "select * from holdfast.result_finish_many($1::uuid, $2::uuid[], $3::uuid[], $4::bigint[], $5::text[], "
      "$6::text[], $7::text[], $8::jsonb)",
      pg::Params::of(node, leases.snapshots, leases.crawls, leases.fences, plugins, hooks, statuses, results + "]"));
  std::vector<Written> answers(requests.size(), Written::written);
  mark(answers, rows.one().text_array("lost"), Written::lost);
  mark(answers, rows.one().text_array("unknown"), Written::unknown);
  return answers;
}

void require_written(const Lease& lease, Written answer) {
  if (answer == Written::lost) throw lost(lease);
  if (answer == Written::unknown)
    throw pg::DatabaseError(base::ErrorClass::bug, "HF001",
                            "a hook of snapshot " + lease.snapshot_id + " has ended that was never started");
}

void result_start(pg::Connection& connection, const std::string& node, const Lease& lease, const HookStart& hook) {
  require_written(lease, result_start_many(connection, node, {{lease, hook}}).front());
}

void result_finish(pg::Connection& connection, const std::string& node, const Lease& lease, const std::string& plugin,
                   const std::string& hook_name, const std::string& status, const std::string& result_json) {
  require_written(lease,
                  result_finish_many(connection, node, {{lease, plugin, hook_name, status, result_json}}).front());
}

void result_amend(pg::Connection& connection, const std::string& node, const Lease& lease, const std::string& plugin,
                  const std::string& hook_name, const std::string& result_json) {
  connection.call("select holdfast.result_amend($1::uuid, $2::uuid, $3::uuid, $4::bigint, $5, $6, $7::jsonb)",
                  pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence, plugin, hook_name, result_json));
}

} // namespace holdfast::store
