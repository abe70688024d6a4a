#include "lib/store/worker.hpp"

#include "lib/store/json.hpp"
#include "lib/store/schema.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

namespace {

std::string interval(std::chrono::milliseconds duration) { return std::to_string(duration.count()) + " milliseconds"; }

} // namespace

std::string machine_json(const ProcessInfo& process) {
  const nlohmann::json machine = {
      {"id", process.machine.id},
      {"hostname", process.machine.hostname},
      {"os", process.machine.os},
      {"architecture", process.machine.architecture},
      {"cpu_count", process.machine.cpu_count},
      {"memory_bytes", process.machine.memory_bytes},
      {"pid_namespace", process.pid_namespace},
      {"program",
       {{"revision", migrator().revision()}, {"capabilities", nlohmann::json::parse(process.capabilities_json)}}}};
  return json_text(machine);
}

std::string worker_join(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease) {
  const auto result = connection.call(
      "select holdfast.worker_join($1::uuid, $2::jsonb, $3, $4::integer, $5::bigint, $12::uuid, $6, $7, $8, $9, "
      "$10::integer, $11::interval) as collection",
      pg::Params::of(process.id, machine_json(process), process.boot_id, process.pid, process.start_ticks,
                     process.process_type, process.worker_type, process.label, process.version, process.slots,
                     interval(lease),
                     process.parent_id.empty() ? std::nullopt : std::optional<std::string>(process.parent_id)));
  return result.one().text("collection");
}

bool archive_begun(pg::Connection& connection) {
  return connection.call("select holdfast.archive_begun() as begun").one().boolean("begun");
}

BeatAnswer worker_beat(pg::Connection& connection, const std::string& worker, std::chrono::milliseconds lease,
                       const std::vector<Lease>& held, const std::string& stats_json) {
  std::vector<std::string> snapshots;
  std::vector<std::int64_t> fences;
  for (const Lease& one : held) {
    snapshots.push_back(one.snapshot_id);
    fences.push_back(one.fence);
  }
  const auto rows =
      connection.call("select * from holdfast.worker_beat($1::uuid, $2::interval, $3::uuid[], $4::bigint[], $5::jsonb)",
                      pg::Params::of(worker, interval(lease), snapshots, fences, stats_json));
  BeatAnswer answer;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const std::string& kind = row.text("kind");
    if (kind == "lost")
      answer.lost.push_back({row.text("snapshot_id"), "", row.integer("fence")});
    else if (kind == "extra")
      answer.extra.push_back({row.text("snapshot_id"), row.text("crawl_id"), row.integer("fence")});
    else if (kind == "request")
      answer.request = row.text("detail");
    else if (kind == "log_level")
      answer.log_level = row.text("detail");
  }
  return answer;
}

void worker_leave(pg::Connection& connection, const std::string& worker, int exit_code, const std::string& reason) {
  connection.call("select holdfast.worker_leave($1::uuid, $2::integer, $3)", pg::Params::of(worker, exit_code, reason));
}

bool worker_gone(pg::Connection& connection, const LocalProcess& process, const std::string& reason) {
  return connection
      .call("select holdfast.worker_gone($1::uuid, $2, $3, $4, $5::integer, $6::bigint, $7) as gone",
            pg::Params::of(process.id, process.machine_id, process.boot_id, process.pid_namespace, process.pid,
                           process.start_ticks, reason))
      .one()
      .boolean("gone");
}

int lapse_workers(pg::Connection& connection) {
  return static_cast<int>(connection.call("select holdfast.lapse_workers() as count").one().integer("count"));
}

} // namespace holdfast::store
