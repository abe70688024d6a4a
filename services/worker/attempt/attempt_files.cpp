#include "services/worker/attempt/attempt_files.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/hooks/text.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/machine/scratch.hpp"

#include <spdlog/spdlog.h>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::worker {

namespace fs = std::filesystem;

namespace {

// Lists a few names, for users.
std::string shortened(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  auto text =
      base::join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown))}, ", ");
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

[[noreturn]] void throw_not_made(const fs::path& directory) {
  const int error = errno;
  if (error == ELOOP || error == ENOTDIR)
    throw base::Error(base::ErrorClass::refused,
                      "a hook of its crawl has left a link or a file in place of its directory");
  throw_cannot_create(directory, base::errno_text(error));
}

// A hook may have removed its own directory, or put something else there: then it left nothing.
archive::ScanReport scan(const fs::path& directory, const std::atomic<bool>& cancelled) {
  struct stat status {};
  if (!base::stat_no_links(directory, status) || !S_ISDIR(status.st_mode)) return {};
  archive::ScanLimits limits;
  limits.cancelled = &cancelled;
  return archive::scan_outputs(directory, limits);
}

// Logs have limits of their own, and a hook that passes one may write on until it is killed.
std::uint64_t logs_in(const archive::Outputs& outputs, const hooks::HookLimits& limits) {
  return std::min(outputs.logs, 4 * (limits.stdout_bytes + limits.stderr_bytes));
}

const archive::Trace& trace_in(const archive::Survey& survey, const std::string& plugin) {
  static const archive::Trace none;
  const auto found = survey.find(plugin);
  return found == survey.end() ? none : found->second.trace;
}

} // namespace

awaitable<void> AttemptFiles::make(const process::Sandbox& sandbox) {
  co_await base::on_thread(context_.files, [this, &sandbox] {
    const auto made = base::make_directories_no_links(directory_);
    if (!made) throw_not_made(directory_);
    struct stat status {};
    if (::fstat(made.get(), &status) == 0) inode_ = {status.st_dev, status.st_ino};
    if (sandbox.level == process::SandboxLevel::none) return;
    if (!base::make_directories_no_links(temporary())) throw_not_made(temporary());
    give_to_hooks(sandbox, directory_);
    give_to_hooks(sandbox, temporary());
  });
}

fs::path AttemptFiles::temporary() const {
  const auto name = short_id(directory_.parent_path().filename().string()) + "." + directory_.filename().string();
  return context_.options.work_dir / "tmp" / name;
}

void AttemptFiles::check() const {
  struct stat status {};
  if (base::stat_no_links(directory_, status) && S_ISDIR(status.st_mode) &&
      inode_ == std::pair<std::uint64_t, std::uint64_t>(status.st_dev, status.st_ino)) {
    archive::open_own_directory(directory_); // unlocks it
    return;
  }
  throw base::Error(base::ErrorClass::refused, "a hook removed or replaced the directory of its snapshot");
}

awaitable<AttemptFiles::Left> AttemptFiles::left_by(const archive::ResultView& result) {
  Left left;
  auto scanned = co_await base::on_thread(context_.files, [&] {
    check();
    left.survey = archive::survey_attempt(directory_);
    refuse_astray(left.survey);
    left.refusal = overweight(left.survey, result.plugin);
    if (!left.refusal.empty()) archive::drop_outputs(directory_ / result.plugin);
    return scan(directory_ / result.plugin, abandoned_);
  });
  left.survey[result.plugin].trace = std::move(scanned.trace);
  if (!left.refusal.empty()) {
    forget_files_of(result);
    co_return left;
  }
  std::set<std::string> of_others; // hooks of the same plugin
  for (const auto& other : results_)
    if (&other != &result && other.plugin == result.plugin)
      for (const auto& file : other.files)
        of_others.insert(file.path);
  for (auto& file : scanned.files) {
    file.path = result.plugin + "/" + file.path;
    if (!of_others.contains(file.path)) left.files.push_back(std::move(file));
  }
  left.lost = std::move(scanned.lost);
  co_return left;
}

// Why the directory of a plugin is not looked into; "": it is not too large.
std::string AttemptFiles::overweight(const archive::Survey& survey, const std::string& plugin) const {
  const auto found = survey.find(plugin);
  if (found == survey.end()) return "";
  const auto& limits = context_.options.hook_limits;
  const auto& outputs = found->second;
  const auto logs = logs_in(outputs, limits);
  const auto more_than = [&](const char* limit, std::uint64_t bytes) {
    return plugin + "/ holds " + base::format_size(outputs.most()) + ", more than " + limit + " (" +
           base::format_size(bytes) + "); its files are not kept";
  };
  if (outputs.most() > limits.output_bytes + logs) return more_than("hook.output_limit", limits.output_bytes);
  if (most_ > 0 && outputs.apparent > most_ + logs) return more_than("max_snapshot_bytes", most_);
  return "";
}

// Files outside the plugins' directories are not outputs, but they would be published too.
void AttemptFiles::refuse_astray(const archive::Survey& survey) const {
  const auto limit = context_.options.hook_limits.output_bytes;
  std::uint64_t astray = 0;
  for (const auto& [name, outputs] : survey)
    if (context_.options.plugin_set->find(name) == nullptr) astray += outputs.most();
  if (astray > limit)
    throw base::Error(base::ErrorClass::refused, "its hooks left " + base::format_size(astray) +
                                                     " outside their directories, more than hook.output_limit (" +
                                                     base::format_size(limit) + ")");
}

void AttemptFiles::check_weight() const {
  const auto survey = archive::survey_attempt(directory_);
  refuse_astray(survey);
  const auto& limits = context_.options.hook_limits;
  std::uint64_t all = 0;
  for (const auto& [name, outputs] : survey)
    all += outputs.apparent - logs_in(outputs, limits);
  if (most_ > 0 && all > most_)
    throw base::Error(base::ErrorClass::refused, "its hooks left " + base::format_size(all) +
                                                     ", more than max_snapshot_bytes (" + base::format_size(most_) +
                                                     ")");
}

void AttemptFiles::check_room(const archive::Root& root) const {
  struct stat here {
  }, there{};
  if (::stat(context_.options.work_dir.c_str(), &here) != 0 || ::stat(root.path().c_str(), &there) != 0) return;
  const auto free = root.free_bytes();
  if (here.st_dev == there.st_dev || free < context_.options.minimum_free_bytes) return;
  std::uint64_t all = 0;
  for (const auto& [name, outputs] : archive::survey_attempt(directory_))
    all += outputs.allocated;
  if (all > free)
    throw base::Error(base::ErrorClass::input_output, "its files have " + base::format_size(all) +
                                                          ", and the archive has room for " + base::format_size(free));
}

// Forgets files of other hooks of the same plugin, which were removed with those of the culprit.
void AttemptFiles::forget_files_of(const archive::ResultView& culprit) {
  for (auto& other : results_) {
    if (&other == &culprit || other.plugin != culprit.plugin || other.files.empty()) continue;
    other.files.clear();
    other.add_error("its files were removed with those of " + culprit.hook);
    spoiled_.insert(other.plugin);
  }
}

std::string AttemptFiles::describe_lost(const std::vector<std::string>& lost) {
  constexpr std::size_t kNameShown = 80;
  if (lost.empty()) return "";
  std::vector<std::string> names;
  for (const auto& path : lost)
    names.push_back(hooks::clean_text(path, kNameShown, hooks::Lines::one));
  return "not kept, because their paths are too long or too deep (" + std::to_string(lost.size()) +
         "): " + shortened(names);
}

awaitable<std::string> AttemptFiles::find_meddling(const hooks::Hook& hook, const archive::Survey& survey,
                                                   Names running, bool beside_crawl_hooks) {
  std::set<std::string> busy;
  std::vector<std::string> names;
  for (const auto& [plugin, name] : running) {
    busy.insert(plugin);
    names.push_back(plugin + "/" + name);
  }
  const bool certain = running.size() == 1 && !beside_crawl_hooks;
  auto suspects = base::join(names, ", ");
  if (!certain) suspects = "one of " + suspects + (beside_crawl_hooks ? ", hooks of the crawl" : "");

  std::map<std::string, archive::ScanReport> changes; // by plugin
  std::vector<std::string> done;
  co_await base::on_thread(context_.files, [&] {
    changes = changes_beside(survey, busy);
    done = remove_planted(survey);
  });
  left_[hook.plugin->name] = trace_in(survey, hook.plugin->name);
  for (auto& [plugin, change] : changes) {
    const auto before = std::exchange(left_[plugin], std::move(change.trace));
    const auto what = correct(plugin, std::move(change.files), before);
    if (what.empty()) continue; // as it was, once it has been tidied up
    done.insert(done.end(), what.begin(), what.end());
    spoiled_.insert(plugin);
    for (auto& result : results_)
      if (result.plugin == plugin)
        result.add_error("after it had ended, its files were changed by " + suspects + ": " + shortened(what));
  }
  if (!done.empty())
    spdlog::warn("{}: {} wrote into directories of other plugins: {}", directory_.parent_path().filename().string(),
                 suspects, shortened(done));
  co_return certain ? shortened(done) : "";
}

// Blocking. Directories that are not as their plugins' last hooks left them.
std::map<std::string, archive::ScanReport> AttemptFiles::changes_beside(const archive::Survey& survey,
                                                                        const std::set<std::string>& busy) const {
  std::map<std::string, archive::ScanReport> changes;
  for (const auto& [plugin, trace] : left_)
    if (!busy.contains(plugin) && trace_in(survey, plugin) != trace)
      changes[plugin] = scan(directory_ / plugin, abandoned_);
  return changes;
}

// Removes files in the directory of a plugin that has yet to run, which would pass for its own. Blocking.
std::vector<std::string> AttemptFiles::remove_planted(const archive::Survey& survey) const {
  std::vector<std::string> planted;
  for (const auto& [name, outputs] : survey) {
    const bool has_run =
        std::any_of(results_.begin(), results_.end(), [&](const auto& result) { return result.plugin == name; });
    if (!has_run && context_.options.plugin_set->find(name) != nullptr) planted.push_back(name);
  }
  if (planted.empty()) return planted;
  const auto top = archive::open_own_directory(directory_);
  for (auto& name : planted) {
    archive::remove_tree_at(top.get(), name, (directory_ / name).native());
    name += "/ (taken away)";
  }
  return planted;
}

// Makes the plugin's results list these files. Returns what is different from what was there `before`.
std::vector<std::string> AttemptFiles::correct(const std::string& plugin, std::vector<archive::OutputFile> files,
                                               const archive::Trace& before) {
  const archive::Trace& after = left_[plugin];
  const auto touched = [&](const std::string& path) {
    const auto name = path.substr(plugin.size() + 1);
    const auto was = before.find(name), is = after.find(name);
    return was == before.end() || is == after.end() || was->second != is->second;
  };
  std::map<std::string, archive::OutputFile> now;
  for (auto& file : files) {
    file.path = plugin + "/" + file.path;
    now.emplace(file.path, std::move(file));
  }
  std::vector<std::string> what;
  archive::ResultView* first = nullptr;
  for (auto& result : results_) {
    if (result.plugin != plugin) continue;
    if (first == nullptr) first = &result;
    std::vector<archive::OutputFile> kept;
    for (auto& file : result.files) {
      const auto found = now.find(file.path);
      if (found == now.end())
        what.push_back(file.path + " (gone)");
      else if (touched(file.path))
        what.push_back(file.path + (found->second.size == file.size ? " (touched)" : " (changed)"));
      if (found == now.end()) continue;
      kept.push_back(std::move(found->second));
      now.erase(found);
    }
    result.files = std::move(kept);
  }
  for (auto& [path, file] : now) {
    what.push_back(path + " (new)");
    if (first != nullptr) first->files.push_back(std::move(file));
  }
  return what;
}

std::uint64_t AttemptFiles::bytes_of(const std::string& plugin) const {
  std::uint64_t bytes = 0;
  for (const auto& result : results_)
    if (result.plugin == plugin)
      for (const auto& file : result.files)
        bytes += file.size;
  return bytes;
}

awaitable<void> AttemptFiles::drop(const std::vector<archive::OutputFile>& files) {
  co_await base::on_thread(context_.files, [&] {
    for (const auto& file : files)
      base::remove_no_links(directory_ / file.path);
  });
}

void AttemptFiles::remove_all() noexcept {
  try {
    archive::remove_attempt(directory_);
    if (context_.sandbox.level != process::SandboxLevel::none) archive::remove_directory(temporary());
  } catch (const std::exception& error) {
    spdlog::warn("could not remove files of an attempt: {}", error.what());
  }
}

} // namespace holdfast::worker
