#include "lib/store/control.hpp"

#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

namespace {

constexpr int kBatch = 1000; // snapshots closed or judged in one transaction

// Calls a function that returns how many things it has changed.
template <class... Values>
bool changed(pg::Connection& connection, const std::string& sql, const Values&... values) {
  return connection.call(sql, values...).value().template as<std::int64_t>() > 0;
}

std::optional<std::string> not_before(const Command& command) {
  return command.at.empty() ? std::nullopt : std::optional(command.at);
}

} // namespace

bool give(pg::Connection& connection, const std::string& kind, const std::string& action, const std::string& id,
          const Command& command) {
  if (kind == "snapshot")
    return changed(connection, "select holdfast.snapshot_command($1::uuid, $2, $3, $4, $5::timestamptz)", id, action,
                   command.by, command.why, not_before(command));
  const auto function = "select holdfast." + kind + "_" + action;
  if (kind == "collection") return changed(connection, function + "($1, $2)", command.by, command.why);
  if (kind == "crawl" && action == "resume")
    return changed(connection, function + "($1::uuid, $2, $3, $4::timestamptz)", id, command.by, command.why,
                   not_before(command));
  return changed(connection, function + (kind == "host" ? "($1, $2, $3)" : "($1::uuid, $2, $3)"), id, command.by,
                 command.why);
}

bool crawl_cancel(pg::Connection& connection, const std::string& crawl, const Command& command,
                  const std::function<void(std::int64_t)>& progress, int most_batches) {
  const bool open =
      connection
          .call("select status <> 'sealed' and stopping_at is null from holdfast.v_crawl where id = $1::uuid", crawl)
          .value();
  std::int64_t left =
      connection.call("select holdfast.crawl_cancel($1::uuid, $2, $3)", crawl, command.by, command.why).value();
  // What is in work on a worker that has not heard yet is closed by that; the workers also do this without us.
  int batches = 0;
  for (auto before = left + 1; left > 0 && left < before && batches < most_batches; ++batches) {
    if (progress) progress(left);
    before = left;
    left = connection.call("select holdfast.crawl_stop_step($1::uuid, $2::integer)", crawl, kBatch)
               .value()
               .as<std::int64_t>();
  }
  return open;
}

std::vector<std::string> crawls_to_stop(pg::Connection& connection, int limit) {
  return connection
      .call("select id from holdfast.v_crawl where status <> 'sealed' and stopping_at is null limit $1::integer", limit)
      .column("id");
}

std::vector<std::string> workers_running(pg::Connection& connection, const std::vector<std::string>& ids) {
  return connection.call("select id from holdfast.v_worker where id = any($1::uuid[]) and status = 'running'", ids)
      .column("id");
}

Scope crawl_scope_of(pg::Connection& connection, const std::string& crawl) {
  const auto result =
      connection.call("select scope::text, excluded, refused from holdfast.v_crawl where id = $1::uuid", crawl);
  const auto row = result.one();
  return {row["scope"], row["excluded"], row["refused"]};
}

bool crawl_scope(pg::Connection& connection, const std::string& crawl, const ScopeLists& add, const ScopeLists& remove,
                 const std::string& by) {
  if (!changed(connection, "select holdfast.crawl_scope($1::uuid, $2::jsonb, $3::jsonb, $4)", crawl, json_text(add),
               json_text(remove), by))
    return false;
  while (
      !connection.call("select holdfast.crawl_judge_step($1::uuid, $2::integer)", crawl, kBatch).value().as<bool>()) {
  }
  return true;
}

bool crawl_priority(pg::Connection& connection, const std::string& crawl, int priority, const std::string& by) {
  return changed(connection, "select holdfast.crawl_priority($1::uuid, $2::integer, $3)", crawl, priority, by);
}

std::int64_t crawl_retry(pg::Connection& connection, const std::string& id, const std::vector<std::string>& of,
                         bool failed_only, const std::vector<std::string>& plugins, const std::string& by) {
  return connection
      .call("select holdfast.crawl_retry($1::uuid, $2::uuid[], $3::boolean, $4::text[], $5)", id, of, failed_only,
            plugins, by)
      .value();
}

Described crawl_description(pg::Connection& connection, const std::string& crawl) {
  const auto result = connection.call("select label, notes, tags from holdfast.v_crawl where id = $1::uuid", crawl);
  const auto row = result.one();
  return {row["label"], "", row["notes"], row["tags"]};
}

Described snapshot_description(pg::Connection& connection, const std::string& snapshot) {
  const auto result =
      connection.call("select title, notes, tags from holdfast.v_snapshot where id = $1::uuid", snapshot);
  const auto row = result.one();
  return {"", row["title"], row["notes"], row["tags"]};
}

void crawl_describe(pg::Connection& connection, const std::string& crawl, const Description& description,
                    const std::string& by) {
  connection.call("select holdfast.crawl_describe($1::uuid, $2, $3, $4::text[], $5::text[], $6)", crawl,
                  description.label, description.notes, description.add_tags, description.remove_tags, by);
}

bool snapshot_describe(pg::Connection& connection, const std::string& snapshot, const Description& description,
                       const std::string& by) {
  return connection
      .call("select holdfast.snapshot_describe($1::uuid, $2, $3, $4::text[], $5::text[], $6)", snapshot,
            description.title, description.notes, description.add_tags, description.remove_tags, by)
      .value();
}

void crawl_keep(pg::Connection& connection, const std::string& crawl, std::optional<std::chrono::milliseconds> keep) {
  connection.call("select holdfast.crawl_keep($1::uuid, $2::interval)", crawl, keep);
}

std::int64_t crawl_remove(pg::Connection& connection, const std::string& crawl, const std::string& by) {
  return connection.call("select holdfast.crawl_remove($1::uuid, $2)", crawl, by).value();
}

bool snapshot_remove(pg::Connection& connection, const std::string& snapshot, const std::string& by) {
  return changed(connection, "select holdfast.snapshot_remove($1::uuid, $2)", snapshot, by);
}

std::vector<std::string> crawls_expired(pg::Connection& connection, std::int64_t limit) {
  return connection.call("select id from holdfast.crawls_expired($1::bigint) as id", limit).column("id");
}

void purge_fill(pg::Connection& connection) { connection.call("select holdfast.purge_fill()"); }

std::vector<std::string> purge_list(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age) {
  return connection.call("select directory from holdfast.purge_list($1::bigint, $2::interval) as directory", limit, age)
      .column("directory");
}

std::vector<StalePage> crawl_pages_stale(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age,
                                         const std::optional<std::string>& crawl) {
  return connection
      .call("select * from holdfast.crawl_pages_stale($1::bigint, $2::interval, $3::uuid)", limit, age, crawl)
      .map([](const pg::Row& row) {
        return StalePage{row["crawl_id"], row["since"], row["there"]};
      });
}

void crawl_page_made(pg::Connection& connection, const StalePage& page) {
  connection.call("select holdfast.crawl_page_made($1::uuid, $2::timestamptz)", page.crawl_id, page.since);
}

void purge_done(pg::Connection& connection, const std::vector<std::string>& directories) {
  connection.call("select holdfast.purge_done($1::text[])", directories);
}

bool may_act_as(pg::Connection& connection, const std::string& role) {
  return connection
      .call("select case when to_regrole($1::text) is not null then pg_has_role($1::name, case "
            "when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end) "
            "else false end",
            role)
      .value();
}

void log_level_set(pg::Connection& connection, const std::string& process, const std::string& level) {
  connection.call("select holdfast.log_level_set(nullif($1, '')::uuid, nullif($2, ''))", process, level);
}

std::int64_t clock_check(pg::Connection& connection) {
  return connection.call("select holdfast.clock_check()").value();
}

} // namespace holdfast::store
