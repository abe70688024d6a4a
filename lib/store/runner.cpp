#include "lib/store/runner.hpp"

#include "lib/base/error.hpp"

namespace holdfast::store {

namespace {

std::string interval(std::chrono::milliseconds duration) { return std::to_string(duration.count()) + " milliseconds"; }

RunnerInWay process_of(const pg::Row& row) {
  RunnerInWay other;
  other.id = row.text("process_id");
  other.label = row.text("label");
  other.machine_id = row.text("machine_id");
  other.boot_id = row.text("boot_id");
  other.pid_namespace = row.text("pid_namespace");
  other.pid = static_cast<int>(row.integer("pid"));
  other.start_ticks = static_cast<std::uint64_t>(row.integer("start_ticks"));
  other.standby = row.boolean("standby");
  other.leads = row.boolean("leads");
  other.lease_left = std::chrono::milliseconds(row.integer("lease_left"));
  return other;
}

} // namespace

std::string runner_join(pg::Connection& connection, const ProcessInfo& process, bool standby,
                        std::chrono::milliseconds lease) {
  return connection
      .call("select holdfast.runner_join($1::uuid, $2::jsonb, $3, $4::integer, $5::bigint, $6, $7, $8, $9::boolean, "
            "$10::interval) as collection",
            pg::Params::of(process.id, machine_json(process), process.boot_id, process.pid, process.start_ticks,
                           process.pid_namespace, process.label, process.version, standby, interval(lease)))
      .one()
      .text("collection");
}

Entry runner_enter(pg::Connection& connection, const std::string& runner, std::chrono::milliseconds lease) {
  const auto rows = connection.call(
      "select answer, epoch, process_id, label, machine_id, boot_id, pid_namespace, pid, start_ticks, standby, leads, "
      "(extract(epoch from lease_left) * 1000)::bigint as lease_left from holdfast.runner_enter($1::uuid, "
      "$2::interval)",
      pg::Params::of(runner, interval(lease)));
  Entry entry;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const std::string& answer = row.text("answer");
    entry.answer = answer == "lead"    ? Entry::Answer::lead
                   : answer == "yield" ? Entry::Answer::yield
                                       : Entry::Answer::wait;
    entry.epoch = row.integer_or("epoch", 0);
    if (!row.is_null("process_id")) entry.others.push_back(process_of(row));
  }
  return entry;
}

RunnerBeat runner_beat(pg::Connection& connection, const std::string& runner, std::chrono::milliseconds lease,
                       const std::string& stats_json) {
  const auto result = connection.call("select * from holdfast.runner_beat($1::uuid, $2::interval, $3::jsonb)",
                                      pg::Params::of(runner, interval(lease), stats_json));
  const auto row = result.one();
  const auto level = connection.call("select holdfast.log_level_of($1::uuid) as level", pg::Params::of(runner));
  return {row.boolean("leads"), row.text_or("request", ""), row.text_or("rival", ""), level.one().text_or("level", "")};
}

void runner_leave(pg::Connection& connection, const std::string& runner, int exit_code, const std::string& reason) {
  connection.call("select holdfast.runner_leave($1::uuid, $2::integer, $3)", pg::Params::of(runner, exit_code, reason));
}

std::optional<DutyRun> runner_duty(pg::Connection& connection, const std::string& runner, std::int64_t epoch) {
  const auto rows =
      connection.call("select duty, count, error, (extract(epoch from duration) * 1000000)::bigint as duration from "
                      "holdfast.runner_duty($1::uuid, $2::bigint)",
                      pg::Params::of(runner, epoch));
  if (rows.empty()) return std::nullopt;
  const auto row = rows[0];
  return DutyRun{row.text("duty"), row.text_or("error", ""), row.integer("count"),
                 std::chrono::microseconds(row.integer("duration"))};
}

std::vector<RunnerInWay> local_processes(pg::Connection& connection, const std::string& machine_id,
                                         const std::string& boot_id, const std::string& pid_namespace) {
  const auto rows =
      connection.call("select process_id, label, machine_id, boot_id, pid_namespace, pid, start_ticks, standby, leads, "
                      "0 as lease_left from holdfast.local_processes($1, $2, $3)",
                      pg::Params::of(machine_id, boot_id, pid_namespace));
  std::vector<RunnerInWay> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back(process_of(rows[i]));
  return all;
}

pg::Result runners(pg::Connection& connection) {
  return connection.call("select label, state, epoch::text, healthy, date_trunc('second', lease_left)::text as "
                         "lease_left, coalesce(request, '') as request, row_to_json(v)::text as json from "
                         "holdfast.v_runner v");
}

pg::Result duties(pg::Connection& connection) {
  return connection.call(
      "select name, every::text, coalesce(keep::text, '') as keep, case when not enabled then 'off' "
      "else coalesce(to_char(last_run_at, 'YYYY-MM-DD HH24:MI:SS'), 'never') end as last_run, "
      "coalesce(round(extract(epoch from last_duration) * 1000, 1) || ' ms', '') as took, last_count, "
      "total_count, coalesce(error, '') as error, row_to_json(v)::text as json from holdfast.v_duty "
      "v");
}

Backlog backlog(pg::Connection& connection) {
  const auto result = connection.call("select * from holdfast.v_backlog");
  const auto row = result.one();
  return {row.integer("crawls_due"), row.integer("snapshots_due"), row.integer("held"), row.integer("workers"),
          row.boolean("unfinished")};
}

std::string next_work(pg::Connection& connection) {
  const auto rows = connection.call("select url || ': ' || reason as text from holdfast.next_work()");
  return rows.size() == 0 ? "" : rows[0].text("text");
}

} // namespace holdfast::store
