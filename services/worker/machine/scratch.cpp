#include "services/worker/machine/scratch.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/base/error.hpp"
#include "lib/process/hook_users.hpp"
#include "lib/process/launcher.hpp"

#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr const char* kOwner = "owner";
constexpr const char* kSessions = "crawls"; // each owned by the user of its hooks
constexpr std::chrono::milliseconds kSweepGrace{2000};
constexpr std::size_t kLongTemporary = 48; // what is made below it may add another 59 characters

// "<pid namespace> <boot id> <pid> <start ticks>"
std::string own_identity() {
  return process::namespace_id("pid") + " " + process::boot_id() + " " + std::to_string(getpid()) + " " +
         std::to_string(process::process_start_ticks(getpid()));
}

// Returns the path of the link to an incarnation's temporary directory, if it needs one. In another mount namespace
// that shares /tmp, such as a container, it leads nowhere: that one takes only links of its own for dangling.
std::filesystem::path short_name(const std::string& worker_id) {
  return "/tmp/holdfast-" + process::namespace_id("mnt") + "-" + short_id(worker_id);
}

void remove_short_name(const std::string& worker_id) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(short_name(worker_id), ignored))
    std::filesystem::remove(short_name(worker_id), ignored);
}

void remove_logged(const std::filesystem::path& directory) {
  try {
    archive::remove_directory(directory);
  } catch (const std::exception& error) {
    spdlog::warn("could not remove temporary files: {}", error.what());
  }
}

// Links of incarnations that were killed and whose work_dir has been removed since: they are not read again.
void remove_dangling_names() {
  std::error_code error;
  for (std::filesystem::directory_iterator it("/tmp", error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->path().filename().native().starts_with("holdfast-") || !it->is_symlink(ignored)) continue;
    const auto target = std::filesystem::read_symlink(it->path(), ignored);
    if (target.filename() == "tmp" && it->path() == short_name(target.parent_path().filename().string()) &&
        !std::filesystem::exists(target.parent_path(), ignored) && !ignored)
      std::filesystem::remove(it->path(), ignored); // refused if another user owns it
  }
}

// Reads the owner from its file; without a pid: there is none.
store::LocalProcess owner_of(const std::filesystem::path& directory) {
  store::LocalProcess owner;
  owner.id = directory.filename().string();
  std::ifstream file(directory / kOwner);
  if (!(file >> owner.pid_namespace >> owner.boot_id >> owner.pid >> owner.start_ticks)) owner.pid = 0;
  return owner;
}

bool is_dead(const std::filesystem::path& directory, const store::LocalProcess& owner) {
  // A directory without an owner was being made, or removed, when its maker died; a young one may still be being made.
  if (owner.pid == 0) {
    std::error_code error;
    const auto age = std::filesystem::file_time_type::clock::now() - std::filesystem::last_write_time(directory, error);
    return !error && age > std::chrono::minutes(1);
  }
  if (owner.boot_id != process::boot_id()) return true;
  if (owner.pid_namespace != process::namespace_id("pid")) return false; // another container on this work_dir
  return !process::process_alive(owner.pid, owner.start_ticks);
}

} // namespace

void throw_cannot_create(const std::filesystem::path& path, const std::string& why) {
  throw base::Error(base::ErrorClass::cannot_create, "cannot create " + path.string() + ": " + why,
                    "check owner, permissions and free space of work_dir");
}

void probe_work_dir(const std::filesystem::path& work_dir) {
  constexpr int kDirectories = 16, kBytes = 64 << 10;
  const auto directory = work_dir / "probe";
  std::error_code error, ignored;
  for (int number = 0; number < kDirectories && !error; ++number)
    std::filesystem::create_directories(directory / std::to_string(number), error);
  if (!error) {
    errno = 0;
    std::ofstream file(directory / "file");
    file << std::string(kBytes, 'x') << std::flush;
    if (!file) error = {errno, std::generic_category()};
  }
  std::filesystem::remove_all(directory, ignored);
  if (error) throw_cannot_create(directory, error.message());
}

std::string short_id(const std::string& id) { return id.substr(id.size() - std::min<std::size_t>(12, id.size())); }

Scratch::Scratch(const std::filesystem::path& work_dir, const std::string& worker_id)
    : path_(work_dir / "workers" / worker_id) {
  std::error_code error;
  for (const char* name : {"attempts", kSessions, "tmp"}) {
    std::filesystem::create_directories(path_ / name, error);
    if (!error) path_ = std::filesystem::canonical(path_, error); // in it, no link is followed (base/file.hpp)
    if (error) throw_cannot_create(path_ / name, error.message());
  }
  // Pages in work are closed to other users of the machine. As root, the users of hooks pass through it, into
  // directories that are closed to each other (give_to_hooks).
  std::filesystem::permissions(path_, std::filesystem::perms(::geteuid() == 0 ? 0711 : 0700), error);
  temporary_ = path_ / "tmp";
  if (temporary_.native().size() > kLongTemporary) {
    std::filesystem::create_directory_symlink(std::filesystem::absolute(temporary_), short_name(worker_id), error);
    if (!error) temporary_ = short_name(worker_id);
  }
  std::ofstream file(path_ / kOwner);
  file << own_identity() << '\n' << std::flush;
  if (!file) {
    remove_short_name(worker_id);
    remove_logged(path_); // without an owner it would stay for a while
    throw base::Error(base::ErrorClass::cannot_create, "cannot write " + (path_ / kOwner).string(),
                      "check permissions and free space of work_dir");
  }
}

Scratch::~Scratch() {
  remove_short_name(path_.filename().string());
  remove_logged(path_);
}

std::uint64_t Scratch::free_bytes() const {
  std::error_code error;
  const auto space = std::filesystem::space(path_, error);
  return error ? 0 : space.available;
}

std::vector<store::LocalProcess> collect_leftovers(const Options& options, const std::string& machine_id) {
  const process::HookUsers users(options.hook_users, options.shim);
  remove_dangling_names();
  std::vector<store::LocalProcess> gone;
  std::error_code error;
  for (std::filesystem::directory_iterator it(options.work_dir / "workers", error), end; !error && it != end;
       it.increment(error)) {
    auto owner = owner_of(it->path());
    if (!is_dead(it->path(), owner)) continue;
    const int processes = process::sweep("HOLDFAST_COOKIE", owner.id + ".", kSweepGrace);
    if (processes > 0) spdlog::warn("ended {} processes that an earlier worker left behind", processes);
    for (std::filesystem::directory_iterator session(it->path() / kSessions, error), last; !error && session != last;
         session.increment(error))
      users.end_owner_of(session->path());
    error.clear();
    remove_short_name(owner.id);
    remove_logged(it->path());
    owner.machine_id = machine_id;
    if (owner.pid > 0) gone.push_back(std::move(owner));
  }
  return gone;
}

} // namespace holdfast::worker
