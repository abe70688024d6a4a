#include "services/cli/lists.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <map>

namespace holdfast::cli {

namespace {

// "crawls" -> "Crawl": the type of a JSON line.
std::string record_type(const std::string& list) {
  static const std::map<std::string, std::string, std::less<>> types = {
      {"crawls", "Crawl"},   {"snapshots", "Snapshot"},    {"results", "ArchiveResult"}, {"workers", "Process"},
      {"queue", "Snapshot"}, {"running", "ArchiveResult"}, {"events", "Event"},          {"failures", "ArchiveResult"},
      {"hosts", "Host"},     {"sessions", "CrawlSession"}, {"webhooks", "Webhook"},      {"deliveries", "Delivery"},
      {"binaries", "Binary"}};
  return types.at(list);
}

} // namespace

const std::vector<std::string>& table_columns(const std::string& list) {
  static const std::map<std::string, std::vector<std::string>, std::less<>> columns = {
      {"crawls",
       {"id", "status", "outcome?", "total", "open?", "partial?", "failed?", "cancelled?", "bytes", "age", "label?",
        "tags?", "first_url"}},
      {"snapshots", {"id", "status", "outcome?", "http_status?", "depth?", "tags?", "title?", "url", "reason?"}},
      {"results", {"plugin", "status", "wall_ms", "output", "error", "url"}},
      {"queue", {"id", "state", "retry_at", "attempts", "url"}},
      {"running", {"plugin", "running_for", "worker", "pid", "url"}},
      {"workers", {"label", "status", "held", "slots", "lease_left", "exit_reason", "started_at"}},
      {"events", {"at", "lifecycle", "object_id", "event", "to_state", "detail"}},
      {"failures", {"ended_at", "plugin", "error", "url"}},
      {"hosts", {"name", "min_delay", "max_parallel", "backoff_until", "reason"}},
      {"sessions", {"crawl_id", "status", "worker", "snapshots", "running", "opened_at", "reason"}},
      {"webhooks", {"name", "url", "events", "waiting", "delivered", "given_up", "reason"}},
      {"deliveries", {"id", "webhook", "event", "status", "attempts", "last_status", "last_error", "created_at"}},
      {"binaries", {"name", "hostname", "status", "version", "path", "plugins", "error"}},
  };
  return columns.at(list);
}

void print_json(pg::Connection& connection, const store::ListQuery& query, const std::vector<std::string>& columns) {
  for (const auto& line : store::list_json(connection, query)) {
    auto json = nlohmann::ordered_json{{"type", record_type(query.view)}};
    const auto row = nlohmann::ordered_json::parse(line);
    for (const auto& column : columns)
      json[column] = row.at(column);
    if (columns.empty()) json.update(row);
    std::cout << json.dump() << '\n';
  }
}

} // namespace holdfast::cli
