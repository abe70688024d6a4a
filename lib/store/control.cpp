#include "lib/store/control.hpp"

#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

namespace {

constexpr int kBatch = 1000; // snapshots closed or judged in one transaction

bool changed(pg::Connection& connection, const std::string& sql, const pg::Params& params) {
  return connection.call(sql, params).one().integer("changed") > 0;
}

std::vector<std::string> column(const pg::Result& rows, const char* name) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < rows.size(); ++i)
    values.push_back(rows[i].text(name));
  return values;
}

} // namespace

bool crawl_pause(pg::Connection& connection, const std::string& crawl, const Command& command) {
  return changed(connection, "select holdfast.crawl_pause($1::uuid, $2, $3) as changed",
                 pg::Params::of(crawl, command.by, command.why));
}

bool crawl_resume(pg::Connection& connection, const std::string& crawl, const Command& command) {
  return changed(connection, "select holdfast.crawl_resume($1::uuid, $2, $3) as changed",
                 pg::Params::of(crawl, command.by, command.why));
}

bool crawl_cancel(pg::Connection& connection, const std::string& crawl, const Command& command,
                  const std::function<void(std::int64_t)>& progress) {
  const bool open = connection
                        .call("select status <> 'sealed' and stopping_at is null as open from holdfast.v_crawl "
                              "where id = $1::uuid",
                              pg::Params::of(crawl))
                        .one()
                        .boolean("open");
  auto left = connection
                  .call("select holdfast.crawl_cancel($1::uuid, $2, $3) as remaining",
                        pg::Params::of(crawl, command.by, command.why))
                  .one()
                  .integer("remaining");
  // What is in work on a worker that has not heard yet is closed by that; the workers also do this without us.
  for (auto before = left + 1; left > 0 && left < before;) {
    if (progress) progress(left);
    before = left;
    left =
        connection
            .call("select holdfast.crawl_stop_step($1::uuid, $2::integer) as remaining", pg::Params::of(crawl, kBatch))
            .one()
            .integer("remaining");
  }
  return open;
}

bool snapshot_command(pg::Connection& connection, const std::string& snapshot, const std::string& action,
                      const Command& command) {
  return changed(connection, "select holdfast.snapshot_command($1::uuid, $2, $3, $4) as changed",
                 pg::Params::of(snapshot, action, command.by, command.why));
}

bool worker_pause(pg::Connection& connection, const std::string& worker, const Command& command) {
  return changed(connection, "select holdfast.worker_pause($1::uuid, $2, $3) as changed",
                 pg::Params::of(worker, command.by, command.why));
}

bool worker_resume(pg::Connection& connection, const std::string& worker, const Command& command) {
  return changed(connection, "select holdfast.worker_resume($1::uuid, $2, $3) as changed",
                 pg::Params::of(worker, command.by, command.why));
}

bool worker_cancel(pg::Connection& connection, const std::string& worker, const Command& command) {
  return changed(connection, "select holdfast.worker_cancel($1::uuid, $2, $3) as changed",
                 pg::Params::of(worker, command.by, command.why));
}

bool worker_drain(pg::Connection& connection, const std::string& worker, const Command& command) {
  return changed(connection, "select holdfast.worker_drain($1::uuid, $2, $3) as changed",
                 pg::Params::of(worker, command.by, command.why));
}

bool collection_pause(pg::Connection& connection, const Command& command) {
  return changed(connection, "select holdfast.collection_pause($1, $2) as changed",
                 pg::Params::of(command.by, command.why));
}

bool collection_resume(pg::Connection& connection, const Command& command) {
  return changed(connection, "select holdfast.collection_resume($1, $2) as changed",
                 pg::Params::of(command.by, command.why));
}

bool crawl_scope(pg::Connection& connection, const std::string& crawl, const ScopeLists& add, const ScopeLists& remove,
                 const std::string& by) {
  if (!changed(connection, "select holdfast.crawl_scope($1::uuid, $2::jsonb, $3::jsonb, $4) as changed",
               pg::Params::of(crawl, json_text(add), json_text(remove), by)))
    return false;
  while (
      !connection.call("select holdfast.crawl_judge_step($1::uuid, $2::integer) as done", pg::Params::of(crawl, kBatch))
           .one()
           .boolean("done")) {
  }
  return true;
}

bool crawl_priority(pg::Connection& connection, const std::string& crawl, int priority, const std::string& by) {
  return changed(connection, "select holdfast.crawl_priority($1::uuid, $2::integer, $3) as changed",
                 pg::Params::of(crawl, priority, by));
}

std::int64_t crawl_retry(pg::Connection& connection, const std::string& id, const std::vector<std::string>& of,
                         bool failed_only, const std::vector<std::string>& plugins, const std::string& by) {
  return connection
      .call("select holdfast.crawl_retry($1::uuid, $2::uuid[], $3::boolean, $4::text[], $5) as urls",
            pg::Params::of(id, of, failed_only, plugins, by))
      .one()
      .integer("urls");
}

void crawl_describe(pg::Connection& connection, const std::string& crawl, const Description& description,
                    const std::string& by) {
  connection.call(
      "select holdfast.crawl_describe($1::uuid, $2, $3, $4::text[], $5::text[], $6)",
      pg::Params::of(crawl, description.label, description.notes, description.add_tags, description.remove_tags, by));
}

bool snapshot_describe(pg::Connection& connection, const std::string& snapshot, const std::vector<std::string>& add,
                       const std::vector<std::string>& remove, const std::string& by) {
  return connection
      .call("select holdfast.snapshot_describe($1::uuid, $2::text[], $3::text[], $4) as changed",
            pg::Params::of(snapshot, add, remove, by))
      .one()
      .boolean("changed");
}

void crawl_keep(pg::Connection& connection, const std::string& crawl, std::optional<std::chrono::milliseconds> keep) {
  const auto interval =
      keep ? std::optional<std::string>(std::to_string(keep->count()) + " milliseconds") : std::nullopt;
  connection.call("select holdfast.crawl_keep($1::uuid, $2::interval)", pg::Params::of(crawl, interval));
}

std::int64_t crawl_remove(pg::Connection& connection, const std::string& crawl, const std::string& by) {
  return connection.call("select holdfast.crawl_remove($1::uuid, $2) as directories", pg::Params::of(crawl, by))
      .one()
      .integer("directories");
}

bool snapshot_remove(pg::Connection& connection, const std::string& snapshot, const std::string& by) {
  return connection.call("select holdfast.snapshot_remove($1::uuid, $2) as count", pg::Params::of(snapshot, by))
             .one()
             .integer("count") > 0;
}

std::vector<std::string> crawls_expired(pg::Connection& connection, std::int64_t limit) {
  return column(connection.call("select id from holdfast.crawls_expired($1::bigint) as id", pg::Params::of(limit)),
                "id");
}

std::vector<std::string> purge_list(pg::Connection& connection, std::int64_t limit) {
  return column(
      connection.call("select directory from holdfast.purge_list($1::bigint) as directory", pg::Params::of(limit)),
      "directory");
}

std::vector<std::string> purge_waiting(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age) {
  return column(connection.call("select directory from holdfast.purge_list($1::bigint, $2::interval) as directory",
                                pg::Params::of(limit, std::to_string(age.count()) + " milliseconds")),
                "directory");
}

std::vector<StalePage> crawl_pages_stale(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age,
                                         const std::optional<std::string>& crawl) {
  const auto result = connection.call("select * from holdfast.crawl_pages_stale($1::bigint, $2::interval, $3::uuid)",
                                      pg::Params::of(limit, std::to_string(age.count()) + " milliseconds", crawl));
  std::vector<StalePage> pages;
  for (std::size_t i = 0; i < result.size(); ++i)
    pages.push_back({result[i].text("crawl_id"), result[i].text("since"), result[i].boolean("there")});
  return pages;
}

void crawl_page_made(pg::Connection& connection, const StalePage& page) {
  connection.call("select holdfast.crawl_page_made($1::uuid, $2::timestamptz)",
                  pg::Params::of(page.crawl_id, page.since));
}

void purge_done(pg::Connection& connection, const std::vector<std::string>& directories) {
  connection.call("select holdfast.purge_done($1::text[])", pg::Params::of(directories));
}

std::int64_t clock_check(pg::Connection& connection) {
  return connection.call("select holdfast.clock_check() as count").one().integer("count");
}

} // namespace holdfast::store
