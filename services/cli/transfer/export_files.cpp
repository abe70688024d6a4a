#include "services/cli/transfer/export_files.hpp"

#include "lib/archive/published.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/url.hpp"
#include "lib/wacz/sorted_lines.hpp"
#include "lib/warc/capture.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace holdfast::cli {

namespace {

constexpr std::int64_t kSnapshotsListed = 500;
constexpr const char* kList = "index.jsonl";

} // namespace

ExportedFiles export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                           Destination& to, const std::function<void(const ExportedFiles&)>& told) {
  ExportedFiles counts;
  const auto list = wacz::temporary_file();
  std::uint64_t list_size = 0;
  std::optional<std::string> after;
  for (;;) {
    const auto batch = store::export_snapshots(connection, query, after, kSnapshotsListed);
    for (const auto& snapshot : batch) {
      const auto host = base::host_directory(base::parse_url(snapshot.url));
      const auto path = host + "/" + warc::timestamp_of(snapshot.date) + "-" + snapshot.id;
      archive::each_file(
          root, snapshot.directory, [](std::string_view) { return true; },
          [&](int file, const std::string& name) {
            const auto size = archive::file_size(file, name);
            to.add(path + "/" + name, file, size, true);
            ++counts.files;
            counts.bytes += size;
          });
      const auto line =
          base::json_text(nlohmann::ordered_json{
              {"url", snapshot.url}, {"title", snapshot.title}, {"date", snapshot.date}, {"path", path}}) +
          "\n";
      wacz::write_all(list.get(), line);
      list_size += line.size();
      ++counts.snapshots;
      told(counts);
    }
    if (static_cast<std::int64_t>(batch.size()) < kSnapshotsListed) break;
    after = batch.back().id;
  }
  to.add(kList, list.get(), list_size, false);
  return counts;
}

} // namespace holdfast::cli
