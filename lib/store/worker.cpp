#include "lib/store/worker.hpp"

#include "lib/store/call.hpp"
#include "lib/store/schema.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

// Members that are columns of the same name.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineInfo, id, hostname, os, architecture, cpu_count, memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessInfo, machine, boot_id, pid_namespace, pid, start_ticks, process_type,
                                   worker_type, label, version, slots, standby)

namespace {

// Converts to the argument of process_join() and process_present().
std::string process_json(const ProcessInfo& process) {
  nlohmann::json json = process;
  json["revision"] = migrator().revision();
  json["capabilities"] = nlohmann::json::parse(process.capabilities_json);
  if (!process.parent_id.empty()) json["parent_id"] = process.parent_id;
  return json_text(std::move(json));
}

} // namespace

std::string process_join(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease) {
  return call(connection, "process_join", process.id, process_json(process), lease).value();
}

HeartbeatAnswer worker_heartbeat(pg::Connection& connection, const std::string& worker, std::chrono::milliseconds lease,
                                 const std::vector<Lease>& held, const std::string& stats_json) {
  std::vector<std::string> snapshots;
  std::vector<std::int64_t> fences;
  for (const Lease& one : held) {
    snapshots.push_back(one.snapshot_id);
    fences.push_back(one.fence);
  }
  const auto since_1970 = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  };
  const auto before = since_1970();
  const auto rows = connection.call(
      "select coalesce(h.kind, '') as kind, h.snapshot_id, h.crawl_id, h.fence, h.detail, "
      "(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms from (values (1)) v "
      "left join holdfast.worker_heartbeat($1::uuid, $2::interval, $3::uuid[], $4::bigint[], $5::jsonb) h on true",
      worker, lease, snapshots, fences, stats_json);
  const auto after = since_1970();
  HeartbeatAnswer answer;
  const std::chrono::milliseconds database(static_cast<std::int64_t>(rows[0]["now_ms"]));
  if (before > database) answer.clock_ahead = before - database;
  if (after < database) answer.clock_ahead = after - database;
  for (const auto row : rows) {
    const std::string& kind = row.text("kind");
    if (kind == "lost")
      answer.lost.push_back({row["snapshot_id"], "", row["fence"]});
    else if (kind == "extra")
      answer.extra.push_back({row["snapshot_id"], row["crawl_id"], row["fence"]});
    else if (kind == "request")
      answer.request = row.text("detail");
    else if (kind == "log_level")
      answer.log_level = row.text("detail");
  }
  return answer;
}

void process_present(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease) {
  call(connection, "process_present", process.id, process_json(process), lease);
}

bool process_gone(pg::Connection& connection, const LocalProcess& process, const std::string& reason) {
  return call(connection, "process_gone", process.id, process.machine_id, process.boot_id, process.pid_namespace,
              process.pid, process.start_ticks, reason)
      .value();
}

std::vector<BinaryClaim> binary_claim(pg::Connection& connection, const std::string& worker, int limit) {
  return call(connection, "binary_claim", worker, limit).map([](const pg::Row& row) {
    return BinaryClaim{row["name"],
                       row["id"],
                       row["fence"],
                       row["providers"],
                       row["overrides"],
                       row["path"].value_or(""),
                       row["version"].value_or(""),
                       row["sha256"].value_or(""),
                       row["fingerprint"].value_or("")};
  });
}

void binary_set(pg::Connection& connection, const std::string& worker, const BinaryClaim& claim,
                const BinaryFound& found) {
  nlohmann::json json;
  if (found.path.empty()) {
    json["error"] = found.error;
  } else {
    json = {{"path", found.path},
            {"sha256", found.sha256},
            {"fingerprint", found.fingerprint},
            {"provider", found.provider}};
    if (!found.version.empty()) json["version"] = found.version;
  }
  call(connection, "binary_set", worker, claim.name, claim.fence, json_text(json));
}

std::vector<KnownBinary> binary_known(pg::Connection& connection, const std::string& worker) {
  return call(connection, "binary_known", worker).map([](const pg::Row& row) {
    return KnownBinary{row["name"], row["path"].value_or(""), row["error"].value_or("")};
  });
}

std::map<std::string, std::string> machine_options(pg::Connection& connection, const std::string& worker) {
  return texts_of(nlohmann::json::parse(call(connection, "machine_options", worker).value().value_or("{}")));
}

CrawlOptions crawl_options(pg::Connection& connection, const std::string& crawl) {
  const auto rows = call(connection, "crawl_options", crawl);
  const auto row = rows.one();
  return {row["plugins"], texts_of(nlohmann::json::parse(row.text("options"))), row["persona"]};
}

std::chrono::milliseconds host_rate_limited(pg::Connection& connection, const std::string& host, int status,
                                            std::optional<std::chrono::milliseconds> retry_after,
                                            const std::string& by) {
  const std::int64_t wait =
      connection
          .call("select greatest(0, ceil(extract(epoch from holdfast.host_rate_limited($1, $2::integer, $3::interval, "
                "$4) - clock_timestamp()) * 1000))::bigint",
                host, status, retry_after, by)
          .value();
  return std::chrono::milliseconds(wait);
}

Robots robots_get(pg::Connection& connection, const std::string& worker, const Lease& lease,
                  const std::string& origin) {
  const auto result = call(connection, "robots_get", worker, lease.snapshot_id, lease.crawl_id, origin);
  const auto row = result.one();
  return {row["state"], row["rules"], row["error"].value_or(""), row["to_fetch"], row["too_early"]};
}

bool robots_put(pg::Connection& connection, const std::string& worker, const std::string& origin,
                const std::string& host, const RobotsAnswer& answer) {
  return connection
      .call("select holdfast.robots_put($1::uuid, $2, $3, nullif($4::integer, 0), $5, nullif($6, ''), $7::interval, "
            "$8::interval)",
            worker, origin, host, answer.status, answer.rules, answer.error, answer.delay, answer.keep)
      .value();
}

} // namespace holdfast::store
