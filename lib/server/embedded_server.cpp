#include "lib/server/embedded_server.hpp"

#include "lib/base/error.hpp"
#include "lib/base/pidfd.hpp"
#include "lib/pg/connection.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/process/launcher.hpp"
#include "lib/server/cluster.hpp"
#include "lib/server/files.hpp"
#include "lib/server/postmaster.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

namespace holdfast::server {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kReadyLimit = 60s;
constexpr auto kStopTimeout = 30s;
// The holder of the start lock is starting (initdb 120 s, ready 60 s) or stopping (30 s + 10 s).
constexpr auto kStartLockLimit = 200s;
constexpr std::uintmax_t kLogRotateSize = 16U << 20U;

std::string dsn_of(const std::string& socket_directory, std::string_view database) {
  return "host=" + socket_directory + " port=5432 dbname=" + std::string(database) + " user=holdfast";
}

fs::path make_data_dir(const fs::path& data_dir) {
  std::error_code error;
  fs::create_directories(data_dir, error);
  const fs::path canonical = error ? fs::path{} : fs::canonical(data_dir, error);
  if (error) {
    throw Error(ErrorClass::cannot_create, "cannot make " + data_dir.string() + ": " + error.message(),
                "set data_dir to a directory that can be written");
  }
  return canonical;
}

// Makes one attempt after another to get a server that answers; the holder has the start lock.
class Starter {
public:
  Starter(const Cluster& cluster, const EmbeddedServer::Options& options)
      : cluster_(cluster), options_(options), user_(server_user(cluster)),
        socket_directory_(socket_directory(cluster.data_dir, user_)) {}

  // Returns the socket directory of the server that is ready now.
  std::string run() {
    open_passage(cluster_, user_);
    auto deadline = steady_clock::now() + kReadyLimit;
    std::string last = "it does not listen";
    while (steady_clock::now() < deadline) {
      const auto running = Postmaster::find(cluster_.directory);
      const std::string directory =
          running && !running->socket_directory().empty() ? running->socket_directory() : socket_directory_.string();
      if (answers(directory, last)) return directory;
      if (running || launched_) {
        if (!launched_ || !base::wait_for_exit(launched_, 30ms)) {
          if (!launched_) pause();
          continue;
        }
        examine_early_end();
        continue;
      }
      launch();
      deadline = steady_clock::now() + kReadyLimit; // initdb has a limit of its own
    }
    throw Error(ErrorClass::temporary,
                "PostgreSQL did not become ready within " + std::to_string(kReadyLimit.count()) + " s: " + last +
                    log_tail(),
                "see " + cluster_.log.string());
  }

private:
  bool answers(const std::string& directory, std::string& last) const {
    pg::ConnectionOptions options;
    options.application_name = "holdfast start";
    options.connect_timeout = 2s;
    try {
      const pg::Connection probe(dsn_of(directory, "holdfast"), options);
      return true;
    } catch (const pg::DatabaseError& error) {
      if (error.sqlstate() == "3D000") {
        pg::Connection maintenance(dsn_of(directory, "postgres"), options);
        maintenance.call("create database holdfast");
        maintenance.call("alter database holdfast set search_path = holdfast, public"); // for users, in every role
        return true;
      }
      last = error.what();
      if (error.error_class() != ErrorClass::temporary && error.error_class() != ErrorClass::unavailable) throw;
    }
    return false;
  }

  void pause() const { ::poll(nullptr, 0, 30); }

  void launch() {
    const auto directories = options_.program_directories.empty() ? usual_directories() : options_.program_directories;
    const auto programs = prepare_cluster(cluster_, user_, directories, options_.durable);
    remove_stale_pid_file(cluster_.directory);
    make_socket_directory(socket_directory_, user_);
    remove_stale_socket();
    const base::Fd log = open_log();
    Launch launch{programs.directory / "postgres", {}, cluster_.directory, log.get(), user_, -1};
    launch.arguments = {"-D", cluster_.directory.string()};
    const auto set = [&](const std::string& setting) {
      launch.arguments.emplace_back("-c");
      launch.arguments.push_back(setting);
    };
    set("listen_addresses=");
    set("port=5432");
    set("unix_socket_directories=" + socket_directory_.string());
    set("unix_socket_permissions=0700");
    set("log_destination=stderr");
    set("logging_collector=off");
    if (!options_.durable) { // a kill -9 of the server must still lose nothing, so commits are written, if not synced
      set("fsync=off");
      set("full_page_writes=off");
    }
    const pid_t pid = start_daemon(launch);
    launched_ = base::open_pidfd(pid);
    ++launches_;
    std::ofstream(EmbeddedServer::process_file(cluster_.data_dir))
        << pid << ' ' << process::process_start_ticks(pid) << '\n';
    spdlog::debug("started PostgreSQL {} in {}, pid {}", programs.major, cluster_.directory.string(), pid);
  }

  // No server runs on this cluster, so a socket file left here is dead. PostgreSQL would believe a recycled pid in its
  // lock file.
  void remove_stale_socket() const {
    std::error_code ignored;
    fs::remove(socket_directory_ / ".s.PGSQL.5432", ignored);
    fs::remove(socket_directory_ / ".s.PGSQL.5432.lock", ignored);
  }

  base::Fd open_log() {
    std::error_code ignored;
    if (fs::file_size(cluster_.log, ignored) > kLogRotateSize && !ignored) {
      fs::rename(cluster_.log, fs::path(cluster_.log) += ".1", ignored);
    }
    base::Fd log(::open(cluster_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!log) {
      throw Error(ErrorClass::cannot_create, "cannot write " + cluster_.log.string() + ": " + base::errno_text(errno));
    }
    if (::geteuid() == 0) (void)!::fchown(log.get(), user_.uid, user_.gid);
    const auto end = ::lseek(log.get(), 0, SEEK_END);
    log_start_ = end > 0 ? static_cast<std::streamoff>(end) : 0;
    return log;
  }

  // The server we launched has ended before it was ready.
  void examine_early_end() {
    launched_.reset();
    const std::string tail = log_tail();
    // After a kill -9 of a server its own processes need a moment to notice; until then they hold its memory.
    constexpr int kMostLaunches = 100;
    if (tail.find("pre-existing shared memory block") != std::string::npos && launches_ < kMostLaunches) {
      ::poll(nullptr, 0, 100);
      return;
    }
    for (const char* const reason : {"No space left on device", "Read-only file system", "Permission denied"}) {
      if (tail.find(reason) == std::string::npos) continue;
      throw Error(ErrorClass::cannot_create, "PostgreSQL cannot write below " + cluster_.data_dir.string() + tail,
                  "check the owner, the permissions and the free space of data_dir");
    }
    throw Error(ErrorClass::unavailable, "PostgreSQL ended before it was ready" + tail, "see " + cluster_.log.string());
  }

  // "; its log: a | b | c": the last lines since we launched it.
  std::string log_tail() const {
    constexpr std::size_t kLines = 8;
    std::ifstream file(cluster_.log);
    file.seekg(log_start_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(std::move(line));
    std::string tail;
    for (std::size_t i = lines.size() > kLines ? lines.size() - kLines : 0; i < lines.size(); ++i) {
      tail += (tail.empty() ? "; its log: " : " | ") + lines[i];
    }
    return tail;
  }

  const Cluster& cluster_;
  const EmbeddedServer::Options& options_;
  User user_;
  fs::path socket_directory_;
  base::Fd launched_; // a pidfd
  int launches_{0};
  std::streamoff log_start_{0};
};

} // namespace

struct EmbeddedServer::Impl {
  explicit Impl(const fs::path& data_dir)
      : cluster(make_data_dir(data_dir)), start_lock(cluster.data_dir / "postgres.lock"),
        users(cluster.data_dir / "postgres.users") {}

  // For the holder of the start lock. The shared lock of `users` may be lost in the attempt, which does not matter: no
  // process can join meanwhile.
  void stop_if_unused() {
    if (!users.try_exclusive()) return;
    auto running = Postmaster::find(cluster.directory);
    if (running && !running->stop(kStopTimeout))
      spdlog::error("PostgreSQL in {} does not stop, not even by an immediate shutdown", cluster.directory.string());
  }

  Cluster cluster;
  FileLock start_lock; // held while a process starts or stops the server
  FileLock users;      // shared by all who use it
  std::string dsn;
};

EmbeddedServer::EmbeddedServer() = default;

std::unique_ptr<EmbeddedServer> EmbeddedServer::start(const fs::path& data_dir, const Options& options) {
  auto impl = std::make_unique<Impl>(data_dir);
  if (!impl->start_lock.exclusive(kStartLockLimit)) {
    throw Error(ErrorClass::temporary, "another holdfast has been starting or stopping the database in " +
                                           impl->cluster.data_dir.string() + " for " +
                                           std::to_string(kStartLockLimit.count()) + " s");
  }
  if (!impl->users.shared(5s)) throw Error(ErrorClass::bug, "postgres.users is locked without postgres.lock");
  impl->dsn = dsn_of(Starter(impl->cluster, options).run(), "holdfast");
  impl->start_lock.unlock();
  std::unique_ptr<EmbeddedServer> started(new EmbeddedServer);
  started->impl_ = std::move(impl);
  return started;
}

fs::path EmbeddedServer::process_file(const fs::path& data_dir) { return data_dir / "postgres.process"; }

void EmbeddedServer::stop_unused(const fs::path& data_dir) {
  Impl impl(data_dir);
  if (impl.start_lock.try_exclusive()) impl.stop_if_unused();
}

EmbeddedServer::~EmbeddedServer() {
  try {
    if (impl_->start_lock.exclusive(kStartLockLimit))
      impl_->stop_if_unused();
    else
      spdlog::warn("left PostgreSQL in {} running: another holdfast keeps starting or stopping it",
                   impl_->cluster.data_dir.string());
  } catch (const std::exception& error) {
    spdlog::error("stopping PostgreSQL: {}", error.what());
  }
}

const std::string& EmbeddedServer::dsn() const noexcept { return impl_->dsn; }

} // namespace holdfast::server
