#include "lib/store/capture.hpp"

#include "lib/store/call.hpp"

#include <algorithm>
#include <map>

namespace holdfast::store {

namespace {

// "2026-01-31 23:59:59+00" -> "2026-01-31T23:59:59Z"
std::string date_of(std::string text) {
  constexpr std::size_t kSeconds = 19;
  text.resize(kSeconds);
  text[10] = 'T';
  return text + "Z";
}

std::vector<Capture> rows(const pg::Result& result) {
  return result.map([](const pg::Row& row) {
    Capture capture;
    capture.key = row.text("url_key");
    capture.date = date_of(row["at"]);
    capture.url = row.text("url");
    capture.mime = row.text("mime");
    capture.status = row["status"].value_or(0);
    capture.digest = row.text("digest");
    capture.file = row.text("file");
    capture.offset = row["record_offset"];
    capture.length = row["record_length"];
    capture.snapshot_id = row.text("snapshot_id");
    capture.crawl_id = row.text("crawl_id");
    capture.refers_to = row["refers_to"].value_or("");
    return capture;
  });
}

} // namespace

std::vector<Capture> captures(pg::Connection& connection, const CaptureQuery& query) {
  return rows(call(connection, "captures", query.first, query.end, query.from, query.to, query.filters, query.newest,
                   query.offset, query.limit));
}

std::int64_t captures_count(pg::Connection& connection, const CaptureQuery& query) {
  return call(connection, "captures_count", query.first, query.end, query.from, query.to, query.filters).value();
}

std::vector<Capture> captures_closest(pg::Connection& connection, const std::string& key, const std::string& at,
                                      const CaptureQuery& query) {
  return rows(call(connection, "captures_closest", key, at, query.from, query.to, query.filters, query.limit));
}

std::vector<Capture> originals_of(pg::Connection& connection, const std::string& snapshot) {
  return rows(call(connection, "originals_of", std::vector<std::string>{snapshot}));
}

std::optional<Capture> capture_in(pg::Connection& connection, const std::string& snapshot, const std::string& key) {
  auto found = rows(call(connection, "capture_in", snapshot, key));
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

std::vector<Capture> revisits_broken(pg::Connection& connection, const std::string& snapshot) {
  return rows(call(connection, "revisits_broken", snapshot));
}

std::vector<Capture> captures_stored(pg::Connection& connection, const std::vector<Payload>& payloads,
                                     const std::optional<std::string>& crawl, std::uint64_t least_length) {
  std::vector<std::string> keys, digests;
  for (const auto& [key, digest] : payloads) {
    keys.push_back(key);
    digests.push_back(digest);
  }
  return rows(call(connection, "captures_stored", keys, digests, crawl, static_cast<std::int64_t>(least_length)));
}

std::vector<KeptCapture> captures_to_move(pg::Connection& connection, const std::vector<std::string>& directories) {
  return call(connection, "captures_to_move", directories).map([](const pg::Row& row) {
    return KeptCapture{row["snapshot_id"], row["file"],          row["source_file"],
                       row["position"],    row["source_offset"], row["record_length"]};
  });
}

namespace {

// In the order of their ids, after `after`.
std::vector<ExportedSnapshot> export_snapshots(pg::Connection& connection, const ExportQuery& query,
                                               const std::optional<std::string>& after, std::int64_t limit) {
  return call(connection, "export_snapshots", query.ids, query.tag, query.host, query.since, query.until, after, limit)
      .map([](const pg::Row& row) {
        return ExportedSnapshot{row["snapshot_id"],
                                row["crawl_id"],
                                row["url"],
                                row["title"].value_or(""),
                                date_of(row["captured_at"]),
                                row["directory"],
                                row["tags"],
                                row["notes"],
                                row.is_null("bookmarked_at") ? "" : date_of(row["bookmarked_at"])};
      });
}

} // namespace

void each_exported(pg::Connection& connection, const ExportQuery& query, std::int64_t at_once,
                   const std::function<void(const std::vector<ExportedSnapshot>&)>& take) {
  std::optional<std::string> after;
  for (bool more = true; more;) {
    auto part = query;
    std::vector<std::string> order;
    if (query.shelf) {
      const auto pages = call(connection, "shelf_pages", *query.shelf, "shelf", after, at_once);
      more = static_cast<std::int64_t>(pages.size()) == at_once;
      if (more) after = pages[pages.size() - 1].text("cursor");
      part.ids = order = pages.column("id");
    }
    auto batch = export_snapshots(connection, part, query.shelf ? std::nullopt : after, at_once);
    if (!query.shelf) {
      more = static_cast<std::int64_t>(batch.size()) == at_once;
      if (more) after = batch.back().id;
    }
    std::map<std::string, std::size_t> place;
    for (std::size_t at = 0; at < order.size(); ++at)
      place[order[at]] = at;
    if (query.shelf)
      std::sort(batch.begin(), batch.end(),
                [&](const auto& left, const auto& right) { return place[left.id] < place[right.id]; });
    if (!batch.empty()) take(batch);
  }
}

std::vector<Capture> captures_of(pg::Connection& connection, const std::vector<std::string>& snapshots) {
  return rows(call(connection, "captures_of", snapshots));
}

namespace {

SealedFiles sealed_row(const pg::Row& row) {
  return {row["snapshot_id"], row["url"], row["created_at"], row["directory"].value_or(""),
          row["manifest_sha256"].value_or("")};
}

} // namespace

void each_sealed(pg::Connection& connection, const std::optional<std::string>& id,
                 const std::function<void(const SealedFiles&)>& take) {
  constexpr int kBatch = 500;
  for (std::optional<std::string> after;;) {
    const auto batch = call(connection, "sealed_files", id, after, kBatch).map(sealed_row);
    std::for_each(batch.begin(), batch.end(), take);
    if (batch.size() < kBatch) return;
    after = batch.back().snapshot_id;
  }
}

std::vector<SealedFiles> replays_due(pg::Connection& connection, int every, std::chrono::seconds within, int limit) {
  return connection
      .call("select * from holdfast.replays_due($1::integer, $2 * interval '1 second', $3::integer)", every,
            static_cast<std::int64_t>(within.count()), limit)
      .map(sealed_row);
}

std::string collection_id(pg::Connection& connection) {
  return connection.call("select id from holdfast.collection").value();
}

} // namespace holdfast::store
