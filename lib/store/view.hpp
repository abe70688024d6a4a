#pragma once
// Lists for people: rows of the stable views as a table or as lines of JSON, the rows of a crawl's page, and what an id
// names. Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct CrawlEntry {
  std::string url, title, outcome, directory, thumbnail; // thumbnail: relative to the directory, or empty
  int depth{0};
  std::int64_t bytes{0};
};

std::vector<std::string> crawl_seeds(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit);
std::vector<CrawlEntry> crawl_entries(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit);

// What can be listed.
std::vector<std::string> list_names();

// A view's rows, newest first where it has a notion of that. `view`: one of list_names(). Filters are optional.
struct ListQuery {
  std::string view{"snapshots"};
  std::optional<std::string> crawl_id, snapshot_id, status, url_contains, tag, plugin;
  std::optional<std::string> outcome, host, since; // since: a time as PostgreSQL reads it
  std::optional<std::string> before;               // only crawls or snapshots with a lesser id
  std::optional<std::string> kind;                 // of a process: worker, runner, serve, command
  std::int64_t limit{50};
};
// Crawls with the most of something first: failed, open, size or total. Filters: status, outcome, url_contains, tag,
// before.
pg::Result crawls_by(pg::Connection& connection, const std::string& order, const ListQuery& query);
// Rows as they are, for tables.
pg::Result list(pg::Connection& connection, const ListQuery& query);
// The id of the `number`th newest snapshot of a list, from 1, with the filters status, url_contains and tag; nullopt:
// it is shorter.
std::optional<std::string> snapshot_number(pg::Connection& connection, std::int64_t number, const ListQuery& query);
// The same rows, each as one line of JSON.
std::vector<std::string> list_json(pg::Connection& connection, const ListQuery& query);

// What a (possibly shortened) id, a URL or the label of a crawl names: ("crawl" | "snapshot" | "process", full id). A
// short id is the head or the tail of one, at least 4 hex digits. Throws Error(refused) if nothing or more than one
// thing matches. find_newest() takes the newest of those that a URL or a label names.
struct Found {
  std::string kind, id, crawl_id;
};
Found find(pg::Connection& connection, const std::string& name);
Found find_newest(pg::Connection& connection, const std::string& name);

// Rows of holdfast.check_invariants(): empty when all is well.
pg::Result check_invariants(pg::Connection& connection);

// Views and functions for people: rows of holdfast.reference().
pg::Result reference(pg::Connection& connection);

} // namespace holdfast::store
