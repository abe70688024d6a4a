#include "lib/store/worker.hpp"

#include "lib/store/json.hpp"
#include "lib/store/schema.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

namespace {

// Converts to the argument of worker_join() and process_present().
std::string process_json(const ProcessInfo& process) {
  nlohmann::json json = {{"machine",
                          {{"id", process.machine.id},
                           {"hostname", process.machine.hostname},
                           {"os", process.machine.os},
                           {"architecture", process.machine.architecture},
                           {"cpu_count", process.machine.cpu_count},
                           {"memory_bytes", process.machine.memory_bytes}}},
                         {"boot_id", process.boot_id},
                         {"pid_namespace", process.pid_namespace},
                         {"pid", process.pid},
                         {"start_ticks", process.start_ticks},
                         {"process_type", process.process_type},
                         {"worker_type", process.worker_type},
                         {"label", process.label},
                         {"version", process.version},
                         {"revision", migrator().revision()},
                         {"capabilities", nlohmann::json::parse(process.capabilities_json)},
                         {"slots", process.slots},
                         {"standby", process.standby}};
  if (!process.parent_id.empty()) json["parent_id"] = process.parent_id;
  return json_text(std::move(json));
}

} // namespace

std::string worker_join(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease) {
  return connection
      .call("select holdfast.worker_join($1::uuid, $2::jsonb, $3::interval)", process.id, process_json(process), lease)
      .value();
}

HeartbeatAnswer worker_heartbeat(pg::Connection& connection, const std::string& worker, std::chrono::milliseconds lease,
                                 const std::vector<Lease>& held, const std::string& stats_json) {
  std::vector<std::string> snapshots;
  std::vector<std::int64_t> fences;
  for (const Lease& one : held) {
    snapshots.push_back(one.snapshot_id);
    fences.push_back(one.fence);
  }
  const auto rows = connection.call(
      "select * from holdfast.worker_heartbeat($1::uuid, $2::interval, $3::uuid[], $4::bigint[], $5::jsonb)", worker,
      lease, snapshots, fences, stats_json);
  HeartbeatAnswer answer;
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
  connection.call("select holdfast.process_present($1::uuid, $2::jsonb, $3::interval)", process.id,
                  process_json(process), lease);
}

bool worker_gone(pg::Connection& connection, const LocalProcess& process, const std::string& reason) {
  return connection
      .call("select holdfast.worker_gone($1::uuid, $2, $3, $4, $5::integer, $6::bigint, $7)", process.id,
            process.machine_id, process.boot_id, process.pid_namespace, process.pid, process.start_ticks, reason)
      .value();
}

std::vector<std::string> processes_on(pg::Connection& connection, const std::string& hostname) {
  return connection
      .call("select id from holdfast.v_worker where hostname = $1 and status = 'running' "
            "and process_type in ('worker', 'runner')",
            hostname)
      .column("id");
}

} // namespace holdfast::store
