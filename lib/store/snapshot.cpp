#include "lib/store/snapshot.hpp"

#include "lib/base/error.hpp"
#include "lib/pg/sqlstate.hpp"

#include <nlohmann/json.hpp>

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

} // namespace

std::vector<Claim> snapshot_claim(pg::Connection& connection, const std::string& node, int room,
                                  const std::vector<std::string>& near) {
  return claims_of(connection.call("select * from holdfast.snapshot_claim($1::uuid, $2::integer, $3::uuid[])",
                                   pg::Params::of(node, room, near)));
}

std::vector<Claim> snapshot_claim_open(pg::Connection& connection, const std::string& node, int room,
                                       const std::vector<std::string>& open) {
  return claims_of(connection.call("select * from holdfast.snapshot_claim_open($1::uuid, $2::integer, $3::uuid[])",
                                   pg::Params::of(node, room, open)));
}

void snapshot_start(pg::Connection& connection, const std::string& node, const Lease& lease) {
  connection.call("select holdfast.snapshot_start($1::uuid, $2::uuid, $3::uuid, $4::bigint)",
                  pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence));
}

Terms snapshot_enter(pg::Connection& connection, const std::string& node, const Lease& lease) {
  const auto result = connection.call("select * from holdfast.snapshot_enter($1::uuid, $2::uuid, $3::uuid, $4::bigint)",
                                      pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence));
  const auto row = result.one();
  return {row.boolean("robots"), static_cast<std::uint64_t>(row.integer("max_snapshot_bytes")),
          row.text_array("archived")};
}

void snapshot_release(pg::Connection& connection, const std::string& node, const Lease& lease,
                      const std::string& ending, std::chrono::milliseconds delay, const std::string& reason,
                      bool spend) {
  connection.call(
      "select holdfast.snapshot_release($1::uuid, $2::uuid, $3::uuid, $4::bigint, $5, $6::interval, $7, $8::boolean)",
      pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence, ending,
                     std::to_string(delay.count()) + " milliseconds", reason, spend));
}

Sealed snapshot_seal(pg::Connection& connection, const std::string& node, const Lease& lease, const Sealing& sealing) {
  std::vector<std::string> urls, hosts, titles;
  for (const Seed& seed : sealing.discovered) {
    urls.push_back(seed.url);
    hosts.push_back(seed.host);
    titles.push_back(seed.title);
  }
  const auto optional = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  };
  const auto result = connection.call(
      "select * from holdfast.snapshot_seal($1::uuid, $2::uuid, $3::uuid, $4::bigint, $5, $6, $7, $8, $9::bigint, "
      "$10::bigint, $11, $12::text[], $13::text[], $14::text[], $15::text[])",
      pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence, sealing.outcome, optional(sealing.reason),
                     optional(sealing.directory), optional(sealing.manifest_sha256), sealing.bytes, sealing.files,
                     sealing.title, sealing.tags, urls, hosts, titles));
  const auto row = result.one();
  // Sealed as cancelled: for the owner that is as if somebody else had, and what it has published must go.
  if (row.integer("children") < 0)
    throw pg::DatabaseError(base::ErrorClass::lease_lost, "HF003",
                            "its crawl has been stopped, and keeps nothing more");
  return Sealed{row.integer("children"), row.boolean("crawl_sealed")};
}

void result_start(pg::Connection& connection, const std::string& node, const Lease& lease, const HookStart& hook) {
  connection.call(
      "select holdfast.result_start($1::uuid, $2::uuid, $3::uuid, $4::bigint, $5, $6, $7::integer, $8::bigint, "
      "$9::bigint, $10::boolean)",
      pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence, hook.plugin, hook.hook_name, hook.pid,
                     hook.start_ticks, hook.timeout.count(), hook.background));
}

void result_finish(pg::Connection& connection, const std::string& node, const Lease& lease, const std::string& plugin,
                   const std::string& hook_name, const std::string& status, const std::string& result_json) {
  connection.call(
      "select holdfast.result_finish($1::uuid, $2::uuid, $3::uuid, $4::bigint, $5, $6, $7, $8::jsonb)",
      pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence, plugin, hook_name, status, result_json));
}

void result_amend(pg::Connection& connection, const std::string& node, const Lease& lease, const std::string& plugin,
                  const std::string& hook_name, const std::string& result_json) {
  connection.call("select holdfast.result_amend($1::uuid, $2::uuid, $3::uuid, $4::bigint, $5, $6, $7::jsonb)",
                  pg::Params::of(node, lease.snapshot_id, lease.crawl_id, lease.fence, plugin, hook_name, result_json));
}

} // namespace holdfast::store
