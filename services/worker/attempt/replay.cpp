#include "services/worker/attempt/replay.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/call.hpp"
#include "services/worker/attempt/steps.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/prepare_hook.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

namespace holdfast::worker {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kLongestReplay{4};
constexpr std::string_view kOfBrowser = "browser/";
constexpr const char* kShares[] = {"screenshot", "text", "resources"}; // of what was captured, that a replay shows

// Copies a file of the attempt for the replay, which may run as another user. Returns its name there; empty: there is
// none.
std::string lend(const PageWork& work, const fs::path& to, const std::string& file) {
  std::error_code error;
  fs::create_directories((to / file).parent_path(), error);
  return fs::copy_file(work.files.directory() / file, to / file, error) ? (to / file).native() : "";
}

nlohmann::json what_to_replay(const PageWork& work, const fs::path& to) {
  std::set<std::string> files, of_browser;
  for (const auto& record : work.captures.records)
    if (record.file.starts_with(kOfBrowser)) of_browser.insert(record.key);
  auto records = nlohmann::json::array();
  for (const auto& record : work.captures.records) {
    const bool by_browser = record.file.starts_with(kOfBrowser);
    if (!by_browser && of_browser.contains(record.key)) continue;
    if (files.insert(record.file).second) lend(work, to, record.file);
    records.push_back(warc::replay_record(record, to / record.file));
    records.back()["by_browser"] = by_browser && !record.url.starts_with("urn:");
  }
  std::string picture;
  for (const char* kind : {"png", "jpg", "webp"})
    if (picture.empty()) picture = lend(work, to, std::string("screenshot/screenshot.") + kind);
  return {
      {"url", work.claim.url}, {"records", records}, {"picture", picture}, {"dom", lend(work, to, "dom/output.html")}};
}

nlohmann::json replay(PageWork& work, const fs::path& directory) {
  const auto home = directory / "home";
  fs::create_directories(home);
  const auto asked = what_to_replay(work, directory / "archived");
  process::Command command;
  for (const auto& [name, value] : hooks::inherited_environment(work.services.options.environment_names))
    command.environment.push_back(name + "=" + value);
  const auto shown = work.sandbox.level == process::SandboxLevel::full ? fs::path("/tmp") : home;
  for (const char* name : {"HOME", "TMPDIR"})
    process::set_variable(command.environment, name, shown);
  confine(work.services, work.sandbox, command, {directory}, home);
  command.cookie = "HOLDFAST_COOKIE=" + work.services.worker_id + "." + base::random_hex32();
  command.limits = work.services.options.hook_limits.process;
  give_to_hooks(work.sandbox, directory);
  return replay_page(directory, asked, std::move(command));
}

} // namespace

nlohmann::json replay_page(const fs::path& directory, const nlohmann::json& asked, process::Command command) {
  std::ofstream(directory / "replay.json") << base::json_text(asked);
  command.argv = {process::executable_directory() / "holdfast-capture", "replay", directory.string()};
  command.directory = directory;
  command.stdout_path = command.stderr_path = directory / "log";
  process::run_to_end(process::executable_directory() / "holdfast-shim", command, kLongestReplay);
  std::ifstream file(directory / "result.json");
  auto quality = nlohmann::json::parse(file, nullptr, false);
  if (!quality.is_object()) quality = {{"problem", "the replay was ended: it took too long, or crashed"}};
  return quality;
}

nlohmann::json replay_score(const nlohmann::json& quality) {
  if (!quality.value("problem", "").empty()) return 0;
  nlohmann::json least;
  for (const char* name : kShares)
    if (const auto share = quality.value(name, nlohmann::json());
        share.is_number() && (least.is_null() || share < least))
      least = share;
  return least;
}

// A worker without a browser, a page without records, and one that failed are not replayed.
void check_replay(PageWork& work) {
  const auto& records = work.captures.records;
  const bool by_browser = std::any_of(records.begin(), records.end(),
                                      [](const auto& record) { return record.file.starts_with(kOfBrowser); });
  if (!work.services.options.check_replay || !by_browser || work.page.outcome == "failed") return;
  const auto directory = work.files.directory().parent_path() / "replay";
  archive::remove_directory(directory);
  work.replay = replay(work, directory);
  archive::remove_directory(directory);
  const auto score = replay_score(work.replay);
  if (!score.is_number()) return;
  work.view.facts["replay"] = score.dump();
  if (score >= kReplays) return;
  work.view.outcome = work.page.outcome = "partial";
  auto why = "its records do not replay: " + work.replay.value("problem", "");
  for (const char* name : kShares)
    if (const auto share = work.replay.value(name, nlohmann::json()); share.is_number() && share < kReplays)
      why += std::string(why.ends_with(": ") ? "" : ", ") + name + " " +
             std::to_string(static_cast<int>(share.get<double>() * 100)) + " %";
  work.add_reason(why);
}

awaitable<void> keep_replay(PageWork& work) {
  if (work.replay.is_null()) co_return;
  const auto quality = base::json_text(work.replay);
  co_await work.services.retry.once("replay_judged", work.claim.lease.snapshot_id, quality);
}

} // namespace holdfast::worker
