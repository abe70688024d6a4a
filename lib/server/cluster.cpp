#include "lib/server/cluster.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <grp.h>
#include <locale.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>

namespace holdfast::server {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;

constexpr std::chrono::seconds kInitdbLimit{120};
constexpr std::string_view kUnfinished = "postgres.new-";

// Appended to postgresql.conf once; users may change it there. Settings that holdfast depends on are on the command
// line instead.
constexpr std::string_view kSettings = R"(
# Set by holdfast for a small machine. Edit at will; it will not be written again.
max_connections = 100
shared_buffers = 128MB
jit = off
log_checkpoints = off
log_line_prefix = '%m [%p] %a: '
lc_messages = 'C'
)";

// Statements for the role of the program, which owns its database and is no superuser: it cannot read files, run
// programs or switch triggers off. It may not make roles either, because PostgreSQL 15 lets one who may grant
// pg_read_server_files to itself. One command a line, as the single-user mode reads them.
constexpr std::string_view kRoles = R"(create role holdfast login createdb;
create role holdfast_reader;
create role holdfast_operator;
create role holdfast_worker;
create role holdfast_serve;
create role holdfast_owner;
grant holdfast_reader, holdfast_operator, holdfast_worker, holdfast_serve, holdfast_owner to holdfast with admin option;
)";

constexpr std::string_view kLogins = R"(# Written by holdfast, once. The socket's directory is closed to other users.
# The superuser is for maintenance by hand, by the user who owns these files (see pg_ident.conf) and root.
local  all          postgres  peer map=superuser
local  replication  all       peer map=superuser
local  all          all       trust
)";

std::string superusers(const User& user) {
  return "superuser  \"" + user.name + "\"  postgres\nsuperuser  root  postgres\n";
}

User look_up(const passwd* entry, uid_t uid, gid_t gid) {
  if (entry == nullptr) return User{uid, gid, "uid " + std::to_string(uid)};
  return User{entry->pw_uid, entry->pw_gid, entry->pw_name};
}

User user_named(uid_t uid, gid_t fallback_gid) { return look_up(::getpwuid(uid), uid, fallback_gid); }

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw Error(ErrorClass::cannot_create, "cannot look at " + path.string() + ": " + base::errno_text(errno));
  }
  return status;
}

// Returns the version of the cluster; nothing if there is none yet.
std::optional<int> version_of(const Cluster& cluster) {
  std::error_code error;
  if (!fs::exists(cluster.directory, error) && !error) return std::nullopt;
  std::ifstream file(cluster.directory / "PG_VERSION");
  std::string text;
  int major = 0;
  if (std::getline(file, text)) std::from_chars(text.data(), text.data() + text.size(), major);
  if (major > 0) return major;
  if (fs::is_empty(cluster.directory, error) && !error) return std::nullopt;
  throw Error(ErrorClass::cannot_create, cluster.directory.string() + " exists but holds no PostgreSQL data",
              "move it away, or choose another data_dir");
}

Programs choose(const std::vector<Programs>& found, std::optional<int> wanted, const Cluster& cluster) {
  if (found.empty()) {
    throw Error(ErrorClass::unavailable,
                "PostgreSQL's server programs (initdb, postgres) are not installed, and no database is configured",
                "install them (Debian: apt install postgresql), or set database.url");
  }
  const auto newest = std::max_element(found.begin(), found.end(),
                                       [](const Programs& a, const Programs& b) { return a.major < b.major; });
  if (!wanted) return *newest;
  const auto fitting =
      std::find_if(found.begin(), found.end(), [&](const Programs& candidate) { return candidate.major == *wanted; });
  if (fitting != found.end()) return *fitting;
  throw Error(ErrorClass::schema_mismatch,
              "the data in " + cluster.directory.string() + " were written by PostgreSQL " + std::to_string(*wanted) +
                  ", but here is only PostgreSQL " + std::to_string(newest->major) + " (" + newest->directory.string() +
                  ")",
              "install postgresql-" + std::to_string(*wanted) + ", or convert the data with pg_upgrade");
}

void remove_unfinished(const Cluster& cluster) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cluster.data_dir, ignored)) {
    if (entry.path().filename().string().starts_with(kUnfinished)) fs::remove_all(entry.path(), ignored);
  }
}

// Returns a locale in which text is compared by code point, and upper() handles more than ASCII if possible.
const char* locale_name() {
  const locale_t locale = ::newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) return "C";
  ::freelocale(locale);
  return "C.UTF-8";
}

void sync_directory(const fs::path& directory) {
  const base::Fd file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file) ::fsync(file.get());
}

[[noreturn]] void fail_creation(const fs::path& program, const fs::path& target, int status, const std::string& text) {
  // The programs translate nothing here (LC_ALL=C.UTF-8); the reason is in their "error" lines.
  std::string reason;
  for (const auto& line : base::split(text, "\n"))
    if (line.find("error:") != std::string::npos || line.find("ERROR:") != std::string::npos ||
        line.find("FATAL:") != std::string::npos)
      reason += line + "; ";
  if (reason.empty()) reason = text.substr(text.size() > 400 ? text.size() - 400 : 0);
  throw Error(ErrorClass::cannot_create,
              program.filename().string() + " could not make the database in " + target.parent_path().string() +
                  " (status " + std::to_string(status) + "): " + reason,
              "check the owner, the permissions and the free space of data_dir");
}

// Runs one of the programs on the new files, with `input`; throws if it fails.
void run_on(const fs::path& program, std::vector<std::string> arguments, const fs::path& target, const User& user,
            std::string_view input) {
  const base::Fd reading(memory_file());
  const base::Fd output(memory_file());
  (void)!::pwrite(reading.get(), input.data(), input.size(), 0);
  const Launch launch{program, std::move(arguments), target, output.get(), user, reading.get()};
  const int status = run_to_end(launch, kInitdbLimit);
  if (status != 0) fail_creation(program, target, status, text_of(output.get()));
}

void run_initdb(const Programs& programs, const fs::path& target, const User& user, bool durable) {
  std::vector<std::string> arguments{"--pgdata=" + target.string(),
                                     "--username=postgres",
                                     "--auth-local=trust",
                                     "--auth-host=reject",
                                     "--encoding=UTF8",
                                     std::string("--locale=") + locale_name(),
                                     "--data-checksums"};
  if (!durable) arguments.emplace_back("--no-sync");
  run_on(programs.directory / "initdb", std::move(arguments), target, user, {});
}

void append(const fs::path& file, const std::string& text, std::ios::openmode mode) {
  std::ofstream stream(file, mode);
  stream << text << std::flush;
  if (!stream) throw Error(ErrorClass::cannot_create, "cannot write " + file.string());
}

// The roles are made before a server runs, by the single-user mode of PostgreSQL, which needs no login.
void make_roles(const Programs& programs, const fs::path& target, const User& user, bool durable) {
  std::vector<std::string> arguments{"--single", "-D", target.string(), "-c", "exit_on_error=on"};
  if (!durable) arguments.emplace_back("-F");
  arguments.emplace_back("postgres");
  run_on(programs.directory / "postgres", std::move(arguments), target, user, kRoles);
}

void create(const Cluster& cluster, const Programs& programs, const User& user, bool durable) {
  std::string target = (cluster.data_dir / (std::string(kUnfinished) + "XXXXXX")).string();
  if (::mkdtemp(target.data()) == nullptr) {
    throw Error(ErrorClass::cannot_create,
                "cannot make a directory in " + cluster.data_dir.string() + ": " + base::errno_text(errno),
                "check the owner, the permissions and the free space of data_dir");
  }
  try {
    if (::geteuid() != user.uid && ::chown(target.c_str(), user.uid, user.gid) != 0) {
      throw Error(ErrorClass::cannot_create,
                  "cannot give " + target + " to user " + user.name + ": " + base::errno_text(errno));
    }
    spdlog::info("making a PostgreSQL {} database in {}", programs.major, cluster.directory.string());
    run_initdb(programs, target, user, durable);
    append(fs::path(target) / "postgresql.conf", std::string(kSettings), std::ios::app);
    append(fs::path(target) / "pg_hba.conf", std::string(kLogins), std::ios::trunc);
    append(fs::path(target) / "pg_ident.conf", superusers(user), std::ios::trunc);
    make_roles(programs, target, user, durable);
    fs::rename(target, cluster.directory);
  } catch (const fs::filesystem_error& error) {
    remove_unfinished(cluster);
    throw Error(ErrorClass::cannot_create, "cannot make " + cluster.directory.string() + ": " + error.code().message());
  } catch (...) {
    remove_unfinished(cluster);
    throw;
  }
  if (durable) sync_directory(cluster.data_dir);
}

} // namespace

User server_user(const Cluster& cluster) {
  const uid_t self = ::geteuid();
  std::error_code error;
  if (fs::exists(cluster.directory / "PG_VERSION", error)) {
    const auto owner = status_of(cluster.directory);
    const User user = user_named(owner.st_uid, owner.st_gid);
    if (owner.st_uid == self && self != 0) return user;
    if (self == 0 && owner.st_uid != 0) return user;
    throw Error(ErrorClass::configuration,
                cluster.directory.string() + " belongs to " + user.name + ", but holdfast runs as " +
                    user_named(self, ::getegid()).name,
                self == 0 ? "give it to an ordinary user (chown -R postgres)" : "run holdfast as that user");
  }
  if (error) {
    throw Error(ErrorClass::cannot_create, "cannot enter " + cluster.directory.string() + ": " + error.message(),
                "run holdfast as its owner");
  }
  if (self != 0) return user_named(self, ::getegid());
  const auto owner = status_of(cluster.data_dir);
  if (owner.st_uid != 0) return user_named(owner.st_uid, owner.st_gid);
  for (const char* const name : {"postgres", "nobody"}) {
    if (const passwd* const entry = ::getpwnam(name)) return look_up(entry, 0, 0);
  }
  constexpr uid_t kNobody = 65534;
  return User{kNobody, kNobody, "nobody"};
}

void open_passage(const Cluster& cluster, const User& user) {
  if (::geteuid() != 0) return;
  const auto status = status_of(cluster.data_dir);
  if (status.st_uid == user.uid || (status.st_mode & S_IXOTH) != 0) return;
  // Gives the group only the right to pass, and only if the group is root's own, i.e. it was not chosen.
  if (status.st_gid == 0) (void)!::chown(cluster.data_dir.c_str(), 0, user.gid);
  if (status.st_gid == 0 || status.st_gid == user.gid) {
    ::chmod(cluster.data_dir.c_str(), (status.st_mode & 07777) | S_IXGRP);
  }
}

Programs prepare_cluster(const Cluster& cluster, const User& user, const std::vector<fs::path>& program_directories,
                         bool durable) {
  remove_unfinished(cluster);
  const auto wanted = version_of(cluster);
  const Programs programs = choose(find_programs(program_directories), wanted, cluster);
  if (!wanted) create(cluster, programs, user, durable);
  return programs;
}

} // namespace holdfast::server
