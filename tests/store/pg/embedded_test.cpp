// The embedded server with real server programs: start, share, crash, refuse. Works as root and as an ordinary user.
#include "lib/pg/connection.hpp"
#include "lib/process/launcher.hpp"
#include "lib/server/embedded_server.hpp"
#include "tests/store/pg/outcome.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

using holdfast::base::Error;
using holdfast::base::ErrorClass;
using holdfast::pg::Connection;
using holdfast::process::process_alive;
using holdfast::process::process_start_ticks;
using holdfast::server::EmbeddedServer;
using holdfast::test::outcome_of;
using holdfast::test::TempDir;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

// Most cases do not test durability, and fsync costs seconds.
const EmbeddedServer::Options kQuick{.durable = false, .program_directories = {}};

std::unique_ptr<EmbeddedServer> start(const fs::path& data_dir) { return EmbeddedServer::start(data_dir, kQuick); }

pid_t postmaster_pid(const fs::path& data_dir) {
  std::ifstream file(data_dir / "postgres" / "postmaster.pid");
  pid_t pid = 0;
  file >> pid;
  return pid;
}

// What has ended may stay as a zombie: the first process of a container need not reap.
bool exists(pid_t pid) { return pid > 0 && process_alive(pid, process_start_ticks(pid)); }

template <class Condition>
bool within(std::chrono::seconds limit, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

void kill_and_wait(pid_t pid) {
  REQUIRE(pid > 0);
  REQUIRE(::kill(pid, SIGKILL) == 0);
  REQUIRE(within(20s, [&] { return !exists(pid); }));
}

std::int64_t rows(const EmbeddedServer& server) {
  Connection connection(server.dsn());
  return connection.call("select count(*) as n from kept").one().integer("n");
}

bool anybody_works_below(const fs::path& directory) {
  for (const auto& process : fs::directory_iterator("/proc")) {
    std::error_code ignored;
    if (fs::read_symlink(process.path() / "cwd", ignored).string().starts_with(directory.string() + "/")) return true;
  }
  return false;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Another holdfast: a forked process that does `work`, says so, and waits to be told to end. Destroyed: killed.
class Other {
public:
  // What `work` returns is kept until end().
  template <class Work>
  explicit Other(Work work) {
    std::array<int, 2> to{};
    std::array<int, 2> from{};
    REQUIRE(::pipe2(to.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(from.data(), O_CLOEXEC) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::close(to[1]);
      ::close(from[0]);
      int status = 1;
      try {
        [[maybe_unused]] const auto held = work();
        char byte = 'k';
        if (::write(from[1], &byte, 1) == 1 && ::read(to[0], &byte, 1) >= 0) status = 0;
      } catch (const std::exception& error) {
        (void)!::write(STDERR_FILENO, error.what(), std::char_traits<char>::length(error.what()));
      }
      ::_exit(status);
    }
    ::close(to[0]);
    ::close(from[1]);
    tell_ = to[1];
    hear_ = from[0];
  }
  ~Other() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(tell_);
    ::close(hear_);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  bool ready() {
    char byte = 0;
    return ::read(hear_, &byte, 1) == 1;
  }
  pid_t pid() const { return pid_; }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  int end() {
    (void)!::write(tell_, "e", 1);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

private:
  pid_t pid_{-1};
  int tell_{-1};
  int hear_{-1};
};

} // namespace

TEST_CASE("a new data directory gets a server with our database, reachable through the socket only") {
  const TempDir directory;
  REQUIRE(::chmod(directory.path().c_str(), 0711) == 0); // root's server user must reach data_dir
  const fs::path data_dir = directory / "data";          // made by start
  pid_t pid = 0;
  {
    const auto server = EmbeddedServer::start(data_dir);
    Connection connection(server->dsn());
    const auto settings = connection.call(
        "select current_database() as database, current_user as role, current_setting('listen_addresses') as addresses,"
        " current_setting('fsync') as fsync, current_setting('data_checksums') as checksums,"
        " current_setting('server_encoding') as encoding, current_setting('max_connections') as connections,"
        " (select datcollate from pg_database where datname = current_database()) as locale");
    const auto row = settings.one();
    CHECK(row.text("database") == "holdfast");
    CHECK(row.text("role") == "holdfast");
    CHECK(row.text("addresses").empty());
    CHECK(row.text("fsync") == "on");
    CHECK(row.text("checksums") == "on");
    CHECK(row.text("encoding") == "UTF8");
    CHECK(row.text("connections") == "100");
    CHECK(row.text("locale").starts_with("C"));
    connection.script("create table kept (id int); insert into kept values (1)");
    pid = postmaster_pid(data_dir);
    CHECK(exists(pid));
    CHECK(::getsid(pid) != ::getsid(0)); // Ctrl-C in our terminal does not reach it
    struct stat socket_directory {};
    REQUIRE(::stat((data_dir / "postgres-run").c_str(), &socket_directory) == 0);
    CHECK((socket_directory.st_mode & 0777) == 0700);
    if (::geteuid() == 0) CHECK(socket_directory.st_uid != 0);
    CHECK(fs::exists(data_dir / "postgres.log"));
  }
  CHECK(within(5s, [&] { return !exists(pid); }));
  CHECK_FALSE(fs::exists(data_dir / "postgres" / "postmaster.pid"));
  const auto again = EmbeddedServer::start(data_dir);
  CHECK(rows(*again) == 1);
}

TEST_CASE("two users in one process share the server, and the last one to leave stops it") {
  const TempDir directory;
  auto first = start(directory.path());
  const pid_t pid = postmaster_pid(directory.path());
  auto second = start(directory.path());
  CHECK(postmaster_pid(directory.path()) == pid);
  CHECK(first->dsn() == second->dsn());
  first.reset();
  CHECK(Connection(second->dsn()).call("select 1").size() == 1);
  second.reset();
  CHECK(within(5s, [&] { return !exists(pid); }));
}

TEST_CASE("a second process joins, and the server outlives the process that started it") {
  const TempDir directory;
  Other starter([&] { return start(directory.path()); });
  REQUIRE(starter.ready());
  const pid_t pid = postmaster_pid(directory.path());
  auto joined = start(directory.path());
  CHECK(postmaster_pid(directory.path()) == pid);
  SUBCASE("which leaves in order") { CHECK(starter.end() == 0); }
  SUBCASE("which is killed") { starter.kill(); }
  CHECK(Connection(joined->dsn()).call("select 1").size() == 1);
  joined.reset();
  CHECK(within(5s, [&] { return !exists(pid); }));
}

TEST_CASE("a server whose last user was killed runs on, is joined by the next and stopped by it") {
  const TempDir directory;
  {
    Other starter([&] { return start(directory.path()); });
    REQUIRE(starter.ready());
    starter.kill();
  }
  const pid_t pid = postmaster_pid(directory.path());
  CHECK(exists(pid));
  auto joined = start(directory.path());
  CHECK(postmaster_pid(directory.path()) == pid);
  joined.reset();
  CHECK(within(5s, [&] { return !exists(pid); }));
}

TEST_CASE("processes that start at the same time get one server between them") {
  const TempDir directory;
  const auto work = [&] { return start(directory.path()); };
  Other one(work);
  Other two(work);
  Other three(work);
  REQUIRE(one.ready());
  REQUIRE(two.ready());
  REQUIRE(three.ready());
  const pid_t pid = postmaster_pid(directory.path());
  CHECK(exists(pid));
  CHECK(one.end() == 0);
  CHECK(two.end() == 0);
  CHECK(exists(pid));
  CHECK(three.end() == 0);
  CHECK(within(5s, [&] { return !exists(pid); }));
}

TEST_CASE("after a kill -9 of the server the next start recovers the data") {
  const TempDir directory;
  auto server = start(directory.path());
  Connection(server->dsn()).script("create table kept (id int); insert into kept values (1), (2)");
  const pid_t killed = postmaster_pid(directory.path());
  Connection busy(server->dsn()); // a backend that will be orphaned
  kill_and_wait(killed);
  SUBCASE("while the user is still there") {
    const auto again = start(directory.path());
    CHECK(rows(*again) == 2);
    CHECK(postmaster_pid(directory.path()) != killed);
  }
  SUBCASE("after the user has left") {
    server.reset();
    const auto again = start(directory.path());
    CHECK(rows(*again) == 2);
  }
}

TEST_CASE("a stale postmaster.pid whose pid now belongs to another process does not matter") {
  const TempDir directory;
  {
    const auto server = start(directory.path());
    Connection(server->dsn()).script("create table kept (id int); insert into kept values (1)");
    kill_and_wait(postmaster_pid(directory.path()));
  }
  // A process of the same user as the server, as after a reboot.
  struct stat owner {};
  REQUIRE(::stat((directory / "postgres").c_str(), &owner) == 0);
  Other bystander([&] {
    if (::geteuid() != owner.st_uid && ::setuid(owner.st_uid) != 0) throw std::runtime_error("setuid");
    return 0;
  });
  REQUIRE(bystander.ready());
  const fs::path pid_file = directory / "postgres/postmaster.pid";
  std::string text = text_of(pid_file);
  REQUIRE_FALSE(text.empty());
  text.replace(0, text.find('\n'), std::to_string(bystander.pid()));
  std::ofstream(pid_file, std::ios::binary | std::ios::trunc) << text;
  const fs::path socket_lock = directory / "postgres-run/.s.PGSQL.5432.lock";
  REQUIRE(fs::exists(socket_lock));
  std::ofstream(socket_lock, std::ios::binary | std::ios::trunc) << text;

  const auto again = start(directory.path());
  CHECK(rows(*again) == 1);
  CHECK(exists(bystander.pid())); // no process was mistaken for the server
  CHECK(bystander.end() == 0);
}

TEST_CASE("a kill -9 of holdfast during initdb leaves nothing that the next start cannot mend") {
  const TempDir directory;
  {
    Other starter([&] { return start(directory.path()); });
    const auto initdb_runs = [&] {
      for (const auto& entry : fs::directory_iterator(directory.path())) {
        if (entry.path().filename().string().starts_with("postgres.new-") && fs::exists(entry.path() / "PG_VERSION")) {
          return true;
        }
      }
      return false;
    };
    REQUIRE(within(60s, initdb_runs));
    starter.kill();
  }
  CHECK_FALSE(fs::exists(directory / "postgres"));
  {
    const auto server = start(directory.path()); // at once: a child of the dead initdb may still be writing
    CHECK(Connection(server->dsn()).call("select 1").size() == 1);
  }
  REQUIRE(within(30s, [&] { return !anybody_works_below(directory.path()); }));
  { const auto server = start(directory.path()); }
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    CHECK_FALSE(entry.path().filename().string().starts_with("postgres.new-"));
  }
}

TEST_CASE("data of another major version are refused, with both versions in the message") {
  const TempDir directory;
  { const auto server = start(directory.path()); }
  const std::string installed = text_of(directory / "postgres/PG_VERSION");
  std::ofstream(directory / "postgres/PG_VERSION", std::ios::trunc) << "9\n";
  const auto outcome = outcome_of([&] { start(directory.path()); });
  CHECK(outcome.error_class == ErrorClass::schema_mismatch);
  CHECK(outcome.message.find("PostgreSQL 9") != std::string::npos);
  CHECK(outcome.message.find("PostgreSQL " + installed.substr(0, installed.find('\n'))) != std::string::npos);
  CHECK(outcome.hint.find("pg_upgrade") != std::string::npos);
  CHECK(text_of(directory / "postgres/PG_VERSION") == "9\n");
}

TEST_CASE("without server programs the hint names the package") {
  const TempDir directory;
  const TempDir empty;
  const auto outcome = outcome_of(
      [&] { EmbeddedServer::start(directory.path(), {.durable = false, .program_directories = {empty.path()}}); });
  CHECK(outcome.error_class == ErrorClass::unavailable);
  CHECK(outcome.hint.find("apt install postgresql") != std::string::npos);
  CHECK_FALSE(fs::exists(directory / "postgres"));
}

TEST_CASE("a program that only has the name of a server is no server program") {
  const TempDir directory;
  const TempDir programs;
  programs.write("postgres", "#!/bin/sh\necho 'not what you want 99'\n", true);
  programs.write("initdb", "#!/bin/sh\n", true);
  const auto outcome = outcome_of(
      [&] { EmbeddedServer::start(directory.path(), {.durable = false, .program_directories = {programs.path()}}); });
  CHECK(outcome.error_class == ErrorClass::unavailable);
}

TEST_CASE("an initdb that fails leaves nothing behind and says why") {
  const TempDir directory;
  const TempDir programs;
  if (::geteuid() == 0) REQUIRE(::chmod(programs.path().c_str(), 0755) == 0);
  programs.write("postgres", "#!/bin/sh\necho 'postgres (PostgreSQL) 99.1'\n", true);
  programs.write("initdb", "#!/bin/sh\necho 'initdb: error: could not write: No space left on device' >&2; exit 1\n",
                 true);
  const auto outcome = outcome_of(
      [&] { EmbeddedServer::start(directory.path(), {.durable = false, .program_directories = {programs.path()}}); });
  CHECK(outcome.error_class == ErrorClass::cannot_create);
  CHECK(outcome.message.find("No space left on device") != std::string::npos);
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    CHECK_FALSE(entry.is_directory());
  }
}

TEST_CASE("a directory that cannot be made, or not be written, is named") {
  const TempDir directory;
  const auto file = directory.write("file", "");
  const auto impossible = outcome_of([&] { start(file / "data"); });
  CHECK(impossible.error_class == ErrorClass::cannot_create);
  CHECK(impossible.message.find((file / "data").string()) != std::string::npos);

  // Root may write anywhere, so the read-only directory is met by an ordinary user.
  const fs::path closed = directory / "closed";
  fs::create_directory(closed);
  REQUIRE(::chmod(closed.c_str(), 0555) == 0);
  REQUIRE(::chmod(directory.path().c_str(), 0755) == 0);
  constexpr uid_t kNobody = 65534;
  Other user([&] {
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) throw std::runtime_error("setuid");
    const auto outcome = outcome_of([&] { start(closed); });
    if (outcome.error_class != ErrorClass::cannot_create ||
        outcome.message.find(closed.string()) == std::string::npos) {
      throw std::runtime_error("unexpected: " + outcome.message);
    }
    return 0;
  });
  CHECK(user.ready());
  CHECK(user.end() == 0);
}

TEST_CASE("a server that cannot start says so with its own words") {
  const TempDir directory;
  { const auto server = start(directory.path()); }
  std::ofstream(directory / "postgres/postgresql.conf", std::ios::app) << "shared_buffers = plenty\n";
  const auto outcome = outcome_of([&] { start(directory.path()); });
  CHECK(outcome.error_class == ErrorClass::unavailable);
  CHECK(outcome.message.find("shared_buffers") != std::string::npos);
  CHECK(outcome.hint.find("postgres.log") != std::string::npos);
}

TEST_CASE("a directory with other things in the cluster's place is left alone") {
  const TempDir directory;
  directory.write("postgres/notes.txt", "mine");
  const auto outcome = outcome_of([&] { start(directory.path()); });
  CHECK(outcome.error_class == ErrorClass::cannot_create);
  CHECK(text_of(directory / "postgres/notes.txt") == "mine");
}

TEST_CASE("a data directory too deep for a socket's name gets a short socket directory of its own") {
  const TempDir directory;
  const fs::path deep = directory / std::string(60, 'd') / std::string(60, 'e');
  fs::path socket_directory;
  {
    fs::create_directories(deep);
    if (::geteuid() == 0) { // the server's user must reach it
      for (fs::path at = deep; at != directory.path().parent_path(); at = at.parent_path())
        ::chmod(at.c_str(), 0755);
    }
    const auto server = start(deep);
    Connection connection(server->dsn() + " user=postgres"); // others may not ask
    socket_directory = connection.call("show unix_socket_directories").one().text("unix_socket_directories");
    CHECK(socket_directory.string().size() < 80);
    CHECK(socket_directory.string().find(directory.path().string()) == std::string::npos);
    const auto joined = start(deep);
    CHECK(joined->dsn() == server->dsn());
  }
  fs::remove_all(socket_directory);
}

TEST_CASE("a socket directory that others can enter is refused") {
  const TempDir directory;
  { const auto server = start(directory.path()); }
  REQUIRE(::chmod((directory / "postgres-run").c_str(), 0777) == 0);
  const auto outcome = outcome_of([&] { start(directory.path()); });
  CHECK(outcome.error_class == ErrorClass::cannot_create);
  CHECK(outcome.message.find("postgres-run") != std::string::npos);
}

TEST_CASE("a database that was dropped is made again") {
  const TempDir directory;
  {
    const auto server = start(directory.path());
    Connection(server->dsn() + " dbname=postgres").call("drop database holdfast");
  }
  const auto server = start(directory.path());
  CHECK(Connection(server->dsn()).call("select 1").size() == 1);
}

TEST_CASE("run by root, the server is run by another user, who owns its files and nothing else") {
  if (::geteuid() != 0) return; // an ordinary user is the server's user
  const TempDir directory;
  const auto server = start(directory.path());
  struct stat cluster {};
  struct stat data_dir {};
  REQUIRE(::stat((directory / "postgres").c_str(), &cluster) == 0);
  REQUIRE(::stat(directory.path().c_str(), &data_dir) == 0);
  CHECK(cluster.st_uid != 0);
  CHECK(data_dir.st_uid == 0);
  CHECK((data_dir.st_mode & 0777) == 0710); // may be passed through by the server's group, no more
  struct stat process {};
  REQUIRE(::stat(("/proc/" + std::to_string(postmaster_pid(directory.path()))).c_str(), &process) == 0);
  CHECK(process.st_uid == cluster.st_uid);
}

TEST_CASE("run by root on an ordinary user's data directory, the server is that user's") {
  if (::geteuid() != 0) return;
  constexpr uid_t kNobody = 65534;
  const TempDir directory;
  REQUIRE(::chown(directory.path().c_str(), kNobody, kNobody) == 0);
  {
    const auto server = start(directory.path());
    struct stat cluster {};
    REQUIRE(::stat((directory / "postgres").c_str(), &cluster) == 0);
    CHECK(cluster.st_uid == kNobody);
  }
  Other owner([&] { // and the owner can use it afterwards
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) throw std::runtime_error("setuid");
    { const auto server = start(directory.path()); }
    return 0;
  });
  CHECK(owner.ready());
  CHECK(owner.end() == 0);
}

TEST_CASE("run by root where the server's user cannot pass, the error names user and place") {
  if (::geteuid() != 0) return;
  const TempDir directory; // 0700
  const fs::path inner = directory / "inner";
  fs::create_directory(inner);
  const auto outcome = outcome_of([&] { start(inner); });
  CHECK(outcome.error_class == ErrorClass::cannot_create);
  CHECK(outcome.message.find("cannot enter " + inner.string()) != std::string::npos);
  CHECK(outcome.hint.find("data_dir") != std::string::npos);
}

TEST_CASE("the program's role cannot read files, run programs, switch triggers off or become a superuser") {
  const TempDir directory;
  const auto server = start(directory.path());
  Connection connection(server->dsn());
  CHECK(connection.call("show is_superuser").one().text("is_superuser") == "off");
  for (const char* const attack :
       {"select pg_read_file('postgresql.conf')", "copy (select 1) to program 'cat'", "copy (select 1) to '/dev/null'",
        "select lo_import('/etc/passwd')", "set session_replication_role = replica", "set role postgres",
        "alter role holdfast superuser", "grant pg_read_server_files to holdfast", "create role mine superuser",
        "alter system set archive_command = 'touch /tmp/x'",
        "create function f() returns int language c as 'libc.so'"}) {
    CAPTURE(std::string(attack));
    CHECK(outcome_of([&] { connection.call(attack); }).sqlstate == "42501");
  }
}

TEST_CASE("the superuser logs in only as the user of the server, or as root") {
  const TempDir directory;
  const auto server = start(directory.path());
  const std::string superuser = server->dsn() + " user=postgres";
  CHECK(Connection(superuser).call("show is_superuser").one().text("is_superuser") == "on");
  if (::geteuid() != 0) return;
  struct stat owner {};
  REQUIRE(::stat((directory / "postgres").c_str(), &owner) == 0);
  fs::permissions(directory.path(), fs::perms::others_exec, fs::perm_options::add);
  fs::permissions(directory / "postgres-run", fs::perms::all); // a stranger who gets through to the socket
  constexpr uid_t kStranger = 12345;
  Other stranger([&] {
    if (::setuid(kStranger) != 0) throw std::runtime_error("setuid");
    if (!outcome_of([&] { Connection(superuser).call("select 1"); }).failed)
      throw std::runtime_error("a stranger is superuser");
    return 0;
  });
  CHECK(stranger.ready());
  CHECK(stranger.end() == 0);
}
