#include "services/cli/transfer/page_info.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/replay/replay_source.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>

#include <set>

namespace holdfast::cli {

namespace {

constexpr std::string_view kPageInfo = "urn:pageinfo:";
constexpr std::size_t kMostUrls = 10'000; // of a page
constexpr std::int64_t kCandidates = 50;  // captures of a URL, of all crawls

// The URL keys that the record names.
std::set<std::string> keys_in(const archive::Root& root, const store::Capture& info) {
  const base::Fd file(
      root.bucket() != nullptr
          ? root.fetch(info.file)
          : archive::open_beneath(archive::open_directory(root.path()).get(), info.file, O_RDONLY).release());
  if (!file) return {};
  const auto record = nlohmann::json::array({{{"key", info.key},
                                              {"mime", info.mime},
                                              {"digest", info.digest},
                                              {"file", "/proc/self/fd/" + std::to_string(file.get())},
                                              {"offset", info.offset},
                                              {"length", info.length}}});
  const auto answer = capture::ReplaySource(record, "/dev/null").answer("GET", info.url);
  const auto noted = answer ? nlohmann::json::parse(answer->body, nullptr, false) : nlohmann::json();
  std::set<std::string> keys;
  if (!noted.is_object() || !noted.contains("urls") || !noted["urls"].is_object()) return keys;
  for (const auto& [url, about] : noted["urls"].items())
    if (keys.size() < kMostUrls && url.starts_with("http")) keys.insert(warc::url_key(url));
  return keys;
}

} // namespace

std::vector<store::Capture> captures_from_cache(pg::Connection& connection, const archive::Root& root,
                                                std::span<const store::Capture> captures) {
  std::set<std::string> missing;
  for (const auto& capture : captures)
    if (capture.url.starts_with(kPageInfo) && capture.mime == "application/json") missing = keys_in(root, capture);
  for (const auto& capture : captures)
    missing.erase(capture.key);
  std::vector<store::Capture> found;
  for (const auto& key : missing)
    if (auto one = capture_in_crawl(connection, captures.front().crawl_id, key, captures.front().date))
      found.push_back(std::move(*one));
  return found;
}

std::optional<store::Capture> capture_in_crawl(pg::Connection& connection, const std::string& crawl,
                                               const std::string& key, const std::string& at) {
  for (auto& one : store::captures_closest(connection, key, at, kCandidates))
    if (one.crawl_id == crawl && one.mime != "warc/revisit") return std::move(one);
  return std::nullopt;
}

} // namespace holdfast::cli
