#include "services/cli/verify_replay.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/export.hpp"
#include "services/cli/temporary_directory.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kLongestReplay{4};

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, false);
}

} // namespace

ReplayCheck::ReplayCheck(Context& context, const archive::Root& root, fs::path pictures)
    : context_(context), root_(root), pictures_(std::move(pictures)),
      launcher_(process::make_launcher(io_.get_executor(), process::executable_directory() / "holdfast-shim")) {}

std::optional<ReplayCheck::Quality> ReplayCheck::check(const store::SealedFiles& sealed) {
  const TemporaryDirectory scratch("replay");
  files_.clear();
  const auto wanted = what_to_replay(sealed, scratch.path());
  if (wanted.is_null()) return std::nullopt;
  std::ofstream(scratch.path() / "replay.json") << base::json_text(wanted);
  run(scratch.path());
  Quality quality{std::nullopt, read_json(scratch.path() / "result.json")};
  if (!quality.detail.is_object()) quality.detail = {{"problem", "the replay was ended: it took too long, or crashed"}};
  if (!pictures_.empty()) {
    fs::create_directories(pictures_);
    const fs::path captured = wanted.value("picture", "");
    const auto replayed = scratch.path() / "snapshot/screenshot" / captured.filename();
    const auto overwrite = fs::copy_options::overwrite_existing;
    for (const auto& [from, what] : {std::pair{captured, "captured"}, std::pair{replayed, "replayed"}})
      if (!captured.empty() && fs::exists(from))
        fs::copy_file(from, pictures_ / (sealed.snapshot_id + "-" + what + from.extension().string()), overwrite);
  }
  quality.score = store::replay_judged(context_.connection(), sealed.snapshot_id, base::json_text(quality.detail));
  return quality;
}

// In a shim, which ends everything that Chromium has started.
void ReplayCheck::run(const fs::path& scratch) {
  process::Command command;
  command.argv = {process::executable_directory() / "holdfast-capture", "replay", scratch.string()};
  for (char** variable = environ; *variable != nullptr; ++variable)
    command.environment.emplace_back(*variable);
  command.directory = scratch;
  command.stdout_path = command.stderr_path = scratch / "log";
  command.cookie = "HOLDFAST_COOKIE=replay." + base::random_hex32();
  const auto supervised = [&]() -> asio::awaitable<void> {
    const std::shared_ptr<process::Child> child = launcher_->start(command);
    asio::steady_timer limit(io_, kLongestReplay);
    limit.async_wait([child](const boost::system::error_code& error) {
      if (!error) child->kill();
    });
    co_await child->wait();
    limit.cancel();
  };
  std::exception_ptr failure;
  asio::co_spawn(io_, supervised, [&](std::exception_ptr thrown) { failure = thrown; });
  io_.restart();
  io_.run();
  if (failure) std::rethrow_exception(failure);
}

// replay.json; null: there is no WARC file. What the browser recorded comes before what other plugins fetched.
nlohmann::json ReplayCheck::what_to_replay(const store::SealedFiles& sealed, const fs::path& scratch) {
  const auto captures = store::captures_of(context_.connection(), {sealed.snapshot_id});
  const auto originals = store::originals_of(context_.connection(), sealed.snapshot_id);
  const auto by_browser = [&](const store::Capture& capture) {
    return capture.file.starts_with(sealed.directory + "/browser/");
  };
  std::set<std::string> of_browser;
  for (const auto& capture : captures)
    if (by_browser(capture)) of_browser.insert(capture.key);
  // An imported page may hold records that no page before it has claimed: it did not load them.
  auto begin = sealed.created_at.substr(0, std::string_view("2026-01-31 23:59:59").size());
  std::replace(begin.begin(), begin.end(), ' ', 'T');
  std::map<std::string, std::string> files;
  auto records = nlohmann::json::array();
  for (const auto& capture : captures) {
    if (!by_browser(capture) && of_browser.contains(capture.key)) continue;
    if (!files.contains(capture.file)) files[capture.file] = local_file(capture.file, scratch);
    records.push_back({{"key", capture.key},
                       {"mime", capture.mime},
                       {"digest", capture.digest},
                       {"file", files[capture.file]},
                       {"offset", capture.offset},
                       {"length", capture.length},
                       {"by_browser", (of_browser.empty() || by_browser(capture)) && capture.date >= begin}});
  }
  if (records.empty()) return nullptr;
  for (const auto& original : originals) { // only their payloads
    if (!files.contains(original.file)) files[original.file] = local_file(original.file, scratch);
    records.push_back({{"mime", original.mime},
                       {"digest", original.digest},
                       {"file", files[original.file]},
                       {"offset", original.offset},
                       {"length", original.length}});
  }
  std::string picture;
  for (const char* kind : {"png", "jpg", "webp"})
    if (picture.empty()) picture = local_file(sealed.directory + "/screenshot/screenshot." + kind, scratch);
  return {{"url", sealed.url},
          {"records", records},
          {"picture", picture},
          {"dom", local_file(sealed.directory + "/dom/output.html", scratch)}};
}

// A name for a file of the archive; empty: it is not there. It leads to our open file, because a path into the archive
// may have become a link by the time when it is opened.
std::string ReplayCheck::local_file(const std::string& path, const fs::path& scratch) {
  base::Fd file(root_.bucket() != nullptr ? root_.fetch(path) : archive::open_file_below(root_.path(), path).release());
  if (!file) return "";
  const auto directory = scratch / "archived" / std::to_string(files_.size());
  fs::create_directories(directory);
  const auto name = directory / fs::path(path).filename();
  fs::create_symlink("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get()), name);
  files_.push_back(std::move(file));
  return name;
}

} // namespace holdfast::cli
