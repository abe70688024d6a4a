#include "services/cli/transfer/verify_replay.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/replay/replay_source.hpp"
#include "services/cli/context/directories.hpp"
#include "services/cli/transfer/export_files.hpp"
#include "services/worker/attempt/replay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

constexpr int kMostRuns = 4;                             // of an imported page: borrowed records may request more
constexpr std::string_view kPictureOf = "urn:fullPage:"; // Browsertrix's name of a screenshot

// Width and height of a PNG file; zeros: it is none.
std::pair<std::uint32_t, std::uint32_t> size_of_png(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr std::size_t kSizeAt = 16;
  if (!bytes.starts_with("\x89PNG\r\n\x1a\n"sv) || bytes.size() < kSizeAt + 8) return {0, 0};
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  return {number(kSizeAt), number(kSizeAt + 4)};
}

} // namespace

ReplayCheck::ReplayCheck(Context& context, const archive::Root& root, fs::path pictures)
    : context_(context), root_(root), pictures_(std::move(pictures)) {}

std::optional<ReplayCheck::Quality> ReplayCheck::check(const store::SealedFiles& sealed) {
  const TemporaryDirectory scratch("replay");
  files_.clear();
  auto wanted = what_to_replay(sealed, scratch.path());
  if (wanted.replay.is_null()) return std::nullopt;
  fs::path directory;
  Quality quality;
  for (int runs = 1;; ++runs) {
    directory = scratch.path() / std::to_string(runs);
    fs::create_directory(directory);
    process::Command command;
    for (char** variable = environ; *variable != nullptr; ++variable)
      command.environment.emplace_back(*variable);
    command.cookie = "HOLDFAST_COOKIE=replay." + base::random_hex32();
    quality.detail = worker::replay_page(directory, wanted.replay, std::move(command));
    if (runs == kMostRuns || !borrow(wanted, sealed, directory)) break;
  }
  if (!pictures_.empty()) {
    fs::create_directories(pictures_);
    const fs::path captured = wanted.replay.value("picture", "");
    const auto replayed = directory / "snapshot/screenshot" / captured.filename();
    const auto overwrite = fs::copy_options::overwrite_existing;
    for (const auto& [from, what] : {std::pair{captured, "captured"}, std::pair{replayed, "replayed"}})
      if (!captured.empty() && fs::exists(from))
        fs::copy_file(from, pictures_ / (sealed.snapshot_id + "-" + what + from.extension().string()), overwrite);
  }
  quality.score =
      store::call(context_.connection(), "replay_judged", sealed.snapshot_id, base::json_text(quality.detail))
          .value()
          .optional<double>();
  return quality;
}

// Records of the browser come before those of other plugins.
ReplayCheck::Wanted ReplayCheck::what_to_replay(const store::SealedFiles& sealed, const fs::path& scratch) {
  Wanted wanted{nullptr, scratch, {}, ""};
  const auto captures = store::captures_of(context_.connection(), {sealed.snapshot_id});
  const auto by_browser = [&](const store::Capture& capture) {
    return capture.file.starts_with(sealed.directory + "/browser/");
  };
  std::set<std::string> of_browser;
  for (const auto& capture : captures) {
    if (by_browser(capture)) of_browser.insert(capture.key);
    if (capture.file.starts_with(sealed.directory + "/warc/records-")) wanted.crawl = capture.crawl_id;
  }
  // An imported page may hold records that no page before it has claimed: it did not load them.
  auto begin = sealed.created_at.substr(0, std::string_view("2026-01-31 23:59:59").size());
  std::replace(begin.begin(), begin.end(), ' ', 'T');
  auto records = nlohmann::json::array();
  for (const auto& capture : captures) {
    if (!by_browser(capture) && of_browser.contains(capture.key)) continue;
    records.push_back(record_of(wanted, capture));
    records.back()["by_browser"] = (of_browser.empty() || by_browser(capture)) && capture.date >= begin &&
                                   !capture.url.starts_with("urn:"); // what was made of the page
  }
  if (records.empty()) return wanted;
  if (!wanted.crawl.empty())
    for (const auto& lent : captures_from_cache(context_.connection(), root_, captures)) {
      records.push_back(record_of(wanted, lent));
      records.back()["by_browser"] = true;
    }
  for (const auto& original : store::originals_of(context_.connection(), sealed.snapshot_id)) {
    records.push_back(record_of(wanted, original));
    records.back().erase("key"); // only their payloads
  }
  std::string picture;
  for (const char* kind : {"png", "jpg", "webp"})
    if (picture.empty()) picture = local_file(sealed.directory + "/screenshot/screenshot." + kind, scratch);
  wanted.replay = {{"url", sealed.url},
                   {"records", records},
                   {"picture", picture},
                   {"dom", local_file(sealed.directory + "/dom/output.html", scratch)}};
  if (picture.empty()) add_picture(wanted, captures);
  return wanted;
}

// The screenshot among the records of an imported page.
void ReplayCheck::add_picture(Wanted& wanted, const std::vector<store::Capture>& captures) {
  for (const auto& capture : captures) {
    if (!capture.url.starts_with(kPictureOf) || capture.mime != "image/png") continue;
    const auto records = nlohmann::json::array({record_of(wanted, capture)});
    const auto answer = capture::ReplaySource(records).answer({{"method", "GET"}, {"url", capture.url}});
    const auto [width, height] = size_of_png(answer ? answer->body : "");
    if (width == 0) continue;
    const auto file = wanted.scratch / "screenshot.png";
    std::ofstream(file, std::ios::binary) << answer->body;
    wanted.replay["picture"] = file.string();
    wanted.replay["width"] = width;
    wanted.replay["height"] = height;
    return;
  }
}

// Adds the records of failed requests: the browser that archived an imported page had some resources in its cache, from
// other pages of the crawl. Returns false if there are none.
bool ReplayCheck::borrow(Wanted& wanted, const store::SealedFiles& sealed, const fs::path& directory) {
  if (wanted.crawl.empty()) return false;
  std::set<std::string> missing;
  std::ifstream requests(directory / "requests");
  for (std::string sign, key, url; requests >> sign >> key >> url;)
    if (sign == "-") missing.insert(key);
  auto& records = wanted.replay["records"];
  for (const auto& record : records) // found, but damaged
    missing.erase(record.value("key", ""));
  bool any = false;
  for (const auto& key : missing) {
    const auto one = capture_in_crawl(context_.connection(), wanted.crawl, key, sealed.created_at);
    if (!one) continue;
    records.push_back(record_of(wanted, *one));
    records.back()["by_browser"] = true;
    any = true;
  }
  return any;
}

nlohmann::json ReplayCheck::record_of(Wanted& wanted, const store::Capture& capture) {
  auto& file = wanted.files[capture.file];
  if (file.empty()) file = local_file(capture.file, wanted.scratch);
  return warc::replay_record(capture, file);
}

// Returns a name for a file of the archive; empty: it does not exist. It leads to our open file, because a path into
// the archive may have become a link by the time when it is opened.
std::string ReplayCheck::local_file(const std::string& path, const fs::path& scratch) {
  auto file = root_.open_file(path);
  if (!file) return "";
  const auto directory = scratch / "archived" / std::to_string(files_.size());
  fs::create_directories(directory);
  const auto name = directory / fs::path(path).filename();
  fs::create_symlink("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get()), name);
  files_.push_back(std::move(file));
  return name;
}

} // namespace holdfast::cli
