#include "lib/store/runner.hpp"

#include "lib/base/error.hpp"
#include "lib/store/call.hpp"

namespace holdfast::store {

namespace {

RunnerInWay in_way_of(const pg::Row& row) {
  RunnerInWay other;
  other.id = row.text("process_id");
  other.label = row.text("label");
  other.machine_id = row.text("machine_id");
  other.boot_id = row.text("boot_id");
  other.pid_namespace = row.text("pid_namespace");
  other.pid = row["pid"].as<int>();
  other.start_ticks = row["start_ticks"].as<std::uint64_t>();
  other.standby = row.boolean("standby");
  other.leads = row.boolean("leads");
  return other;
}

} // namespace

Entry runner_enter(pg::Connection& connection, const std::string& runner, std::chrono::milliseconds lease,
                   std::chrono::milliseconds grace) {
  const auto rows = call(connection, "runner_enter", runner, lease, grace);
  Entry entry;
  for (const auto row : rows) {
    const std::string& answer = row.text("answer");
    entry.answer = answer == "lead"    ? Entry::Answer::lead
                   : answer == "yield" ? Entry::Answer::yield
                                       : Entry::Answer::wait;
    entry.epoch = row["epoch"].value_or<std::int64_t>(0);
    if (!row.is_null("process_id")) entry.others.push_back(in_way_of(row));
  }
  return entry;
}

RunnerHeartbeat runner_heartbeat(pg::Connection& connection, const std::string& runner, std::chrono::milliseconds lease,
                                 const std::string& stats_json) {
  const auto result = call(connection, "runner_heartbeat", runner, lease, stats_json);
  const auto row = result.one();
  return {row["leads"], row["request"].value_or(""), row["rival"].value_or(""), row["log_level"].value_or("")};
}

std::optional<MaintenanceRun> runner_maintenance(pg::Connection& connection, const std::string& runner,
                                                 std::int64_t epoch) {
  const auto rows =
      connection.call("select task, count, error, (extract(epoch from duration) * 1000000)::bigint as duration from "
                      "holdfast.runner_maintenance($1::uuid, $2::bigint)",
                      runner, epoch);
  if (rows.empty()) return std::nullopt;
  const auto row = rows[0];
  return MaintenanceRun{row["task"], row["error"].value_or(""), row["count"],
                        std::chrono::microseconds(row.integer("duration"))};
}

std::vector<RunnerInWay> local_processes(pg::Connection& connection, const std::string& machine_id,
                                         const std::string& boot_id, const std::string& pid_namespace) {
  return connection
      .call("select process_id, label, machine_id, boot_id, pid_namespace, pid, start_ticks, standby, leads "
            "from holdfast.local_processes($1, $2, $3)",
            machine_id, boot_id, pid_namespace)
      .map(&in_way_of);
}

Backlog backlog(pg::Connection& connection) {
  const auto result = connection.call("select * from holdfast.v_backlog");
  const auto row = result.one();
  return {row["crawls_due"], row["snapshots_due"], row["held"], row["unfinished"]};
}

Neighbours neighbours(pg::Connection& connection, const std::string& runner) {
  Neighbours neighbours;
  const auto rows = connection.call("select * from holdfast.workers_beside(nullif($1, '')::uuid)", runner);
  for (const auto row : rows)
    neighbours.workers[row.text("kind")] = {static_cast<int>(row.integer("running")),
                                            static_cast<int>(row.integer("able"))};
  const auto newer = connection.call("select holdfast.newer_run(nullif($1, '')::uuid) as label", runner);
  neighbours.newer_run = newer.one()["label"].value_or("");
  return neighbours;
}

std::string next_work(pg::Connection& connection) {
  const auto rows = connection.call("select url || ': ' || reason as text from holdfast.next_work()");
  return rows.empty() ? "" : rows[0].text("text");
}

std::vector<StalePage> crawl_pages_stale(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age,
                                         const std::optional<std::string>& crawl) {
  return call(connection, "crawl_pages_stale", limit, age, crawl).map([](const pg::Row& row) {
    return StalePage{row["crawl_id"], row["since"], row["there"]};
  });
}

bool may_act_as(pg::Connection& connection, const std::string& role) {
  return connection
      .call("select case when to_regrole($1::text) is not null then pg_has_role($1::name, case "
            "when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end) "
            "else false end",
            role)
      .value();
}

} // namespace holdfast::store
