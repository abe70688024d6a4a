#include "services/worker/hook/hook_sandbox.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/hooks/binary.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace holdfast::worker {

namespace fs = std::filesystem;

namespace {

// Without links; empty if it does not exist or is not to be reached.
fs::path real(const fs::path& path) {
  std::error_code error;
  auto result = path.is_absolute() ? fs::canonical(path, error) : fs::path();
  return error ? fs::path() : result;
}

bool within(const fs::path& path, const fs::path& directory) {
  return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first == directory.end();
}

class Builder {
public:
  explicit Builder(const Options& options) : options_(options) {}

  process::Sandbox build(const fs::path& work_dir, process::SandboxLevel level) {
    sandbox_.level = level;
    hide(options_.data_dir);
    hide(work_dir);
    if (!options_.archive_root.native().starts_with("s3:")) hide(options_.archive_root);
    for (const auto& path : options_.secret_paths)
      hide(path);
    hide("/run");
    hide("/etc/holdfast");
    add_homes();

    show(fs::path(real("/etc/resolv.conf")).parent_path());
    for (const auto& [name, plugin] : options_.plugin_set->plugins())
      show(plugin.directory.parent_path());
    for (const auto& directory : options_.binary_directories)
      show_programs(directory);
    show(options_.libexec);
    show(options_.shim.parent_path()); // our own programs, which the plugins that come with us start
    show(options_.data_dir / "lib");
    if (const char* path = std::getenv("PATH"))
      for (const auto& directory : hooks::path_directories(path))
        show_programs(directory);
    for (const auto& [name, value] : options_.hook_options)
      for (const auto& path : hooks::path_directories(value)) {
        if (name.ends_with("_BINARY"))
          show_programs(path.parent_path());
        else
          show(path);
      }
    drop_nested();
    if (level == process::SandboxLevel::user) list_the_rest();
    return std::move(sandbox_);
  }

private:
  // More than that in one directory is not looked through for what may be shown.
  static constexpr std::size_t kMostEntries = 512, kMostShown = 1024;

  void hide(const fs::path& path) {
    if (const auto found = real(path); !found.empty() && found != "/") sandbox_.hidden.push_back(found);
  }

  void add_homes() {
    const passwd* const entry = ::getpwuid(::geteuid());
    for (const char* home : {std::getenv("HOME"), entry == nullptr ? nullptr : entry->pw_dir}) {
      const auto path = home == nullptr ? fs::path() : real(home);
      if (!path.empty() && path != "/" && fs::is_directory(path)) sandbox_.emptied.push_back(path);
    }
  }

  bool is_hidden(const fs::path& path) const {
    const auto covers = [&](const fs::path& cover) { return within(path, cover); };
    return covers("/tmp") || covers("/var/tmp") ||
           std::any_of(sandbox_.hidden.begin(), sandbox_.hidden.end(), covers) ||
           std::any_of(sandbox_.emptied.begin(), sandbox_.emptied.end(), covers);
  }

  // Returns true for a path that would uncover a hidden one as a whole.
  bool uncovers(const fs::path& path) const {
    const auto lies_in_it = [&](const fs::path& cover) { return within(cover, path); };
    return lies_in_it("/tmp") || lies_in_it("/var/tmp") ||
           std::any_of(sandbox_.hidden.begin(), sandbox_.hidden.end(), lies_in_it) ||
           std::any_of(sandbox_.emptied.begin(), sandbox_.emptied.end(), lies_in_it);
  }

  void show(const fs::path& path) {
    const auto found = real(path);
    if (found.empty() || !is_hidden(found) || uncovers(found) || !shown_.insert(found).second) return;
    sandbox_.readable.push_back(found);
  }

  // With what lies beside it: ~/.local/bin needs ~/.local/lib.
  void show_programs(const fs::path& directory) {
    const auto found = real(directory);
    if (found.empty()) return;
    const auto prefix = found.parent_path();
    show((found.filename() == "bin" || found.filename() == "sbin") && !uncovers(prefix) ? prefix : found);
  }

  // Drops paths below another path of the same list, which covers or shows them already.
  void drop_nested() {
    std::vector<fs::path> covers = sandbox_.hidden;
    covers.insert(covers.end(), sandbox_.emptied.begin(), sandbox_.emptied.end());
    const auto drop = [](std::vector<fs::path>& list, const std::vector<fs::path>& others) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      std::erase_if(list, [&](const fs::path& path) {
        return std::any_of(others.begin(), others.end(),
                           [&](const fs::path& other) { return other != path && within(path, other); });
      });
    };
    drop(sandbox_.hidden, covers);
    drop(sandbox_.emptied, covers);
    std::erase_if(sandbox_.hidden, [&](const fs::path& path) {
      return std::find(sandbox_.emptied.begin(), sandbox_.emptied.end(), path) != sandbox_.emptied.end();
    });
    drop(sandbox_.readable, std::vector<fs::path>(sandbox_.readable));
  }

  void list_the_rest() {
    covers_ = {"/tmp", "/var/tmp", "/dev", "/proc"};
    covers_.insert(covers_.end(), sandbox_.hidden.begin(), sandbox_.hidden.end());
    covers_.insert(covers_.end(), sandbox_.emptied.begin(), sandbox_.emptied.end());
    show_uncovered("/");
    sandbox_.hidden.clear();
    sandbox_.emptied.clear();
  }

  // The largest directories and files below this one that neither are covered nor have something covered in them.
  void show_uncovered(const fs::path& directory) {
    std::error_code error;
    std::size_t entries = 0;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
      if (++entries > kMostEntries || sandbox_.readable.size() >= kMostShown) return;
      std::error_code ignored;
      const auto& path = entry->path();
      if (entry->is_symlink(ignored)) continue; // it leads to what is shown elsewhere, or is not
      if (std::find(covers_.begin(), covers_.end(), path) != covers_.end()) continue;
      const auto lies_in_it = [&](const fs::path& cover) { return within(cover, path); };
      if (std::any_of(covers_.begin(), covers_.end(), lies_in_it))
        show_uncovered(path);
      else
        sandbox_.readable.push_back(path);
    }
  }

  const Options& options_;
  std::vector<fs::path> covers_;
  process::Sandbox sandbox_;
  std::set<fs::path> shown_;
};

// Hooks may work in the tree: each entry is changed in its open directory, so no path can lead elsewhere meanwhile.
void change_owner_below(int directory, const fs::path& path, int depth, uid_t uid, gid_t gid) {
  for (const auto& [name, type] : archive::list_entries(directory, path.native())) {
    (void)!::fchownat(directory, name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW);
    if (type != S_IFDIR || depth == archive::kMaximumDepth) continue; // what lies deeper is not kept
    if (const auto inner = archive::open_directory_at(directory, name))
      change_owner_below(inner.get(), path / name, depth + 1, uid, gid);
  }
}

void change_owner(const fs::path& path, uid_t uid, gid_t gid, mode_t mode) {
  const auto top = archive::open_own_directory(path);
  (void)!::fchown(top.get(), uid, gid);
  (void)!::fchmod(top.get(), mode);
  change_owner_below(top.get(), path, 0, uid, gid);
}

} // namespace

process::Sandbox hook_sandbox(const Options& options, const fs::path& work_dir, process::SandboxLevel level) {
  return Builder(options).build(work_dir, level);
}

process::Sandbox SandboxState::with(const std::shared_ptr<const process::HookUser>& user) const {
  auto result = sandbox;
  if (user) result.user = user->user();
  return result;
}

SandboxState choose_sandbox(const Options& options, const fs::path& work_dir) {
  using process::SandboxLevel;
  SandboxState state{{}, {options.hook_users, options.shim}, ""};
  if (options.sandbox == "off") {
    state.description = "none: hook.sandbox is off";
    return state;
  }
  const auto user = state.users.lease(); // for the tries
  const auto try_level = [&](SandboxLevel level, const fs::path& directory) {
    state.sandbox = hook_sandbox(options, work_dir, level);
    state.description = process::to_string(level) + (user ? ", " + state.users.description() : "");
    return process::sandbox_problem(options.shim, state.with(user), directory);
  };
  const auto problem = try_level(SandboxLevel::full, "/");
  if (problem.empty()) return state;
  if (options.sandbox == "required")
    throw base::Error(base::ErrorClass::unavailable, "hook.sandbox is required and does not work here: " + problem,
                      "allow user namespaces (in a container: its seccomp profile), or set hook.sandbox to auto");
  // Without namespaces a hook gets to its files on the way that they have.
  const auto second = try_level(SandboxLevel::user, real(work_dir).empty() ? fs::path("/") : real(work_dir));
  if (second.empty()) {
    state.description += " (not full: " + problem + ")";
    return state;
  }
  state.sandbox = {};
  state.description = "none: " + problem + "; nor does level user: " + second;
  return state;
}

void give_to_hooks(const process::Sandbox& sandbox, const fs::path& directory) {
  if (sandbox.user) change_owner(directory, sandbox.user->uid, sandbox.user->gid, 0700);
}

bool replace_own_file(const fs::path& file, std::string_view text, mode_t mode) {
  const auto partial = file.string() + ".new";
  base::remove_no_links(partial);
  const auto fd = base::open_no_links(partial, O_WRONLY | O_CREAT | O_EXCL, mode);
  return fd && base::write_all(fd.get(), text) && ::rename(partial.c_str(), file.c_str()) == 0;
}

void take_from_hooks(const process::Sandbox& sandbox, const fs::path& directory) {
  if (!sandbox.user) return;
  struct stat made {}; // as the umask had it
  const bool seen = ::stat(directory.parent_path().c_str(), &made) == 0;
  change_owner(directory, ::geteuid(), ::getegid(), seen ? made.st_mode & 0777 : 0755);
}

} // namespace holdfast::worker
