#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/uuid.hpp"
#include "lib/process/launcher.hpp"
#include "lib/process/orphans.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

namespace holdfast::process {

namespace {

std::string first_word(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

// Several processes may run this at once for the first time: the one that links its file into place wins.
std::string keep_random_id(const std::filesystem::path& file) {
  if (auto kept = first_word(file); base::is_uuid(kept)) return kept;
  const std::string id = base::random_hex32();
  const auto draft = file.string() + "." + id;
  {
    std::ofstream out(draft);
    out << id << '\n';
    out.flush();
    if (!out) {
      const int error = errno;
      ::unlink(draft.c_str());
      throw base::Error(base::ErrorClass::cannot_create,
                        "cannot write the machine id to " + file.string() + ": " + base::errno_text(error),
                        "make the directory exist and writable for this user");
    }
  }
  const bool won = ::link(draft.c_str(), file.c_str()) == 0;
  const int error = errno;
  ::unlink(draft.c_str());
  if (won) return id;
  if (auto kept = first_word(file); base::is_uuid(kept)) return kept;
  if (error == EEXIST)
    throw base::Error(base::ErrorClass::configuration, "no machine id in " + file.string(),
                      "remove the file; a new id is made at the next start");
  throw base::Error(base::ErrorClass::cannot_create,
                    "cannot write the machine id to " + file.string() + ": " + base::errno_text(error));
}

} // namespace

std::string machine_id(const std::filesystem::path& keep_in) {
  for (const char* file : {"/etc/machine-id", "/var/lib/dbus/machine-id"})
    if (auto id = first_word(file); base::is_uuid(id)) return id;
  if (!keep_in.empty()) return keep_random_id(keep_in);
  return base::sha256_hex(boot_id() + "/" + base::own_host_name()).substr(0, 32);
}

std::string boot_id() { return first_word("/proc/sys/kernel/random/boot_id"); }

std::string namespace_id(const std::string& kind) {
  std::error_code error;
  const std::string link = std::filesystem::read_symlink("/proc/self/ns/" + kind, error); // "pid:[4026531836]"
  const auto open = link.find('['), close = link.find(']');
  return open == std::string::npos || close == std::string::npos ? "" : link.substr(open + 1, close - open - 1);
}

std::uint64_t process_start_ticks(pid_t pid) {
  const auto entry = read_process(pid);
  return entry ? entry->start_ticks : 0;
}

bool process_alive(pid_t pid, std::uint64_t start_ticks) {
  const auto entry = read_process(pid);
  return entry && entry->start_ticks == start_ticks && !entry->zombie();
}

void become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw base::Error(base::ErrorClass::system,
                      "cannot become the parent of orphaned hooks (PR_SET_CHILD_SUBREAPER): " +
                          base::errno_text(errno));
}

void forbid_inspection() {
#ifndef __SANITIZE_ADDRESS__
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
}

void allow_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::filesystem::path executable_directory() {
  // Asked once: below a chroot the link reads differently as soon as the process has entered another mount namespace.
  static const auto directory = [] {
    std::error_code error;
    auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error)
      throw base::Error(base::ErrorClass::system,
                        "cannot find the running executable by /proc/self/exe: " + error.message(), "mount /proc");
    return executable.parent_path();
  }();
  return directory;
}

std::filesystem::path companion(const std::string& installed, const std::string& in_tree) {
  const auto above = executable_directory().parent_path();
  const auto built = (above / "../../deploy" / in_tree).lexically_normal();
  std::error_code ignored;
  return !std::filesystem::exists(above / installed, ignored) && std::filesystem::exists(built, ignored)
             ? built
             : above / installed;
}

} // namespace holdfast::process
