#include "services/worker/attempt_files.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "services/worker/on_thread.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <system_error>

namespace holdfast::worker {

namespace fs = std::filesystem;

namespace {

// A few, for people.
std::string shortened(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  auto text =
      base::join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown))}, ", ");
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

// A hook may have removed its own directory, or put something else there: then it left nothing.
std::vector<archive::OutputFile> scan(const fs::path& directory) {
  std::error_code gone;
  if (!fs::is_directory(fs::symlink_status(directory, gone))) return {};
  return archive::scan_outputs(directory).files;
}

} // namespace

awaitable<void> AttemptFiles::make() {
  co_await on_thread(context_.files, [this] {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (error)
      throw base::Error(base::ErrorClass::cannot_create,
                        "cannot create " + directory_.string() + ": " + error.message(),
                        "check owner, permissions and free space of work_dir");
    struct stat status {};
    if (lstat(directory_.c_str(), &status) == 0) inode_ = {status.st_dev, status.st_ino};
  });
}

void AttemptFiles::check() const {
  struct stat status {};
  if (lstat(directory_.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
      inode_ == std::pair<std::uint64_t, std::uint64_t>(status.st_dev, status.st_ino)) {
    if ((status.st_mode & 0700) != 0700) fchmodat(AT_FDCWD, directory_.c_str(), 0700, AT_SYMLINK_NOFOLLOW);
    return;
  }
  throw base::Error(base::ErrorClass::refused, "a hook has taken away the directory of its snapshot");
}

awaitable<std::vector<archive::OutputFile>> AttemptFiles::left_by(const archive::ResultView& result) {
  auto scanned = co_await on_thread(context_.files, [&] {
    check();
    return scan(directory_ / result.plugin);
  });
  std::set<std::string> of_others; // hooks of the same plugin
  for (const auto& other : results_)
    if (&other != &result && other.plugin == result.plugin)
      for (const auto& file : other.files)
        of_others.insert(file.path);
  std::vector<archive::OutputFile> files;
  for (auto& file : scanned) {
    file.path = result.plugin + "/" + file.path;
    if (!of_others.contains(file.path)) files.push_back(std::move(file));
  }
  co_return files;
}

awaitable<std::string> AttemptFiles::find_meddling(const hooks::Hook& hook, Names running, bool beside_crawl_hooks) {
  std::set<std::string> busy;
  std::vector<std::string> names;
  for (const auto& [plugin, name] : running) {
    busy.insert(plugin);
    names.push_back(plugin + "/" + name);
  }
  const bool certain = running.size() == 1 && !beside_crawl_hooks;
  auto suspects = base::join(names, ", ");
  if (!certain) suspects = "one of " + suspects + (beside_crawl_hooks ? ", hooks of the crawl" : "");

  std::map<std::string, Change> changes; // by plugin
  std::vector<std::string> done;
  co_await on_thread(context_.files, [&] {
    left_[hook.plugin->name] = archive::trace_outputs(directory_ / hook.plugin->name);
    changes = changes_beside(busy);
    done = remove_planted();
  });
  for (auto& [plugin, change] : changes) {
    left_[plugin] = std::move(change.trace);
    const auto what = correct(plugin, std::move(change.files));
    if (what.empty()) continue; // touched, but the same
    done.insert(done.end(), what.begin(), what.end());
    spoiled_.insert(plugin);
    for (auto& result : results_)
      if (result.plugin == plugin)
        result.error += (result.error.empty() ? "" : "; ") +
                        ("after it had ended, its files were changed by " + suspects + ": " + shortened(what));
  }
  if (!done.empty())
    spdlog::warn("{}: {} wrote into directories of other plugins: {}", directory_.parent_path().filename().string(),
                 suspects, shortened(done));
  co_return certain ? shortened(done) : "";
}

// Blocking. Directories that are not as their plugins' last hooks left them.
std::map<std::string, AttemptFiles::Change> AttemptFiles::changes_beside(const std::set<std::string>& busy) {
  std::map<std::string, Change> changes;
  for (const auto& [plugin, trace] : left_) {
    if (busy.contains(plugin) || archive::trace_outputs(directory_ / plugin) == trace) continue;
    auto files = scan(directory_ / plugin);
    changes[plugin] = {std::move(files), archive::trace_outputs(directory_ / plugin)};
  }
  return changes;
}

// Blocking. What lies ready for a plugin that has yet to run would pass for its own.
std::vector<std::string> AttemptFiles::remove_planted() {
  std::vector<std::string> planted;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool has_run =
        std::any_of(results_.begin(), results_.end(), [&](const auto& result) { return result.plugin == name; });
    if (!has_run && context_.options.catalog->find(name) != nullptr) planted.push_back(name);
  }
  for (auto& name : planted) {
    fs::remove_all(directory_ / name, error);
    name += "/ (taken away)";
  }
  return planted;
}

// Makes the plugin's results list these files. Returns what is different.
std::vector<std::string> AttemptFiles::correct(const std::string& plugin, std::vector<archive::OutputFile> files) {
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
      if (found == now.end() || found->second.sha256 != file.sha256)
        what.push_back(file.path + (found == now.end() ? " (gone)" : " (changed)"));
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
  co_await on_thread(context_.files, [&] {
    std::error_code ignored;
    for (const auto& file : files)
      fs::remove(directory_ / file.path, ignored);
  });
}

void AttemptFiles::remove_all() noexcept {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  fs::remove(directory_.parent_path(), ignored); // only if no other attempt is there
}

} // namespace holdfast::worker
