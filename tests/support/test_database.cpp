#include "tests/support/test_database.hpp"

#include "lib/pg/connection.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <system_error>

#ifdef __SANITIZE_ADDRESS__
// libpqxx 6.4 loses one PGresult with every session that is lost; found by name, so 7.x is still watched.
extern "C" const char* __lsan_default_suppressions() { return "leak:libpqxx-6.4\n"; }
#endif

namespace holdfast::test {
namespace {

constexpr const char* kTemplate = "holdfast_template";

std::filesystem::path make_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "holdfast-server-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  return name;
}

} // namespace

// A shell that waits for the end of this process, i.e. for the end of file on a pipe that only we hold open. If the
// directory is still there then, we have been killed: it ends the server and removes the directory.
class DatabaseServer::Watcher {
public:
  explicit Watcher(const std::filesystem::path& directory) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    writing_ = ends[1];
    std::string script = "trap '' INT TERM HUP; read -r _; [ -d \"$1\" ] || exit 0; "
                         "kill -QUIT \"$(head -n 1 \"$1/postgres/postmaster.pid\")\" 2>/dev/null; rm -rf \"$1\"";
    std::string target = directory.string();
    std::array<char*, 6> argv{const_cast<char*>("sh"), const_cast<char*>("-c"), script.data(),
                              const_cast<char*>("sh"), target.data(),           nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    const int error = ::posix_spawn(&pid_, "/bin/sh", &actions, &attributes, argv.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[0]);
    if (error != 0) {
      ::close(writing_);
      throw std::system_error(error, std::generic_category(), "posix_spawn /bin/sh");
    }
  }
  ~Watcher() {
    ::close(writing_);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

private:
  int writing_{-1};
  pid_t pid_{-1};
};

DatabaseServer::DatabaseServer() : directory_(make_directory()), watcher_(std::make_unique<Watcher>(directory_)) {
  server::EmbeddedServer::Options options;
  options.durable = false;
  server_ = server::EmbeddedServer::start(directory_, options);
  pg::Connection administrator(dsn("postgres"));
  std::ifstream hostile(HOLDFAST_SOURCE_DIR "/tests/support/hostile_role.txt");
  for (std::string line; std::getline(hostile, line);)
    if (line.find(" = ") != std::string::npos) administrator.call("alter role all set " + line);
}

DatabaseServer::~DatabaseServer() {
  server_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
  watcher_.reset();
}

std::string DatabaseServer::dsn(const std::string& database) const {
  // The last of two equal keywords wins. Tests make roles and switch triggers off: as the superuser. A crowded machine
  // may take its time; that it does is nothing a test looks for.
  return server_->dsn() + " user=postgres connect_timeout=60 dbname=" + database;
}

std::string DatabaseServer::create_database(bool migrated) {
  pg::Connection connection(dsn("postgres"));
  if (migrated && !template_ready_) {
    if (migrate_template == nullptr) throw std::logic_error("this test program defines no migrate_template()");
    connection.call(std::string("create database ") + kTemplate);
    migrate_template(dsn(kTemplate));
    template_ready_ = true;
  }
  const std::string name = "test_" + std::to_string(++databases_);
  // The files are copied: by way of the log, which is the default, it takes half as much again.
  connection.call("create database " + name +
                  (migrated ? std::string(" strategy file_copy template ") + kTemplate : ""));
  return name;
}

void DatabaseServer::drop_database(const std::string& name) {
  pg::Connection(dsn("postgres")).call("drop database if exists " + name + " with (force)");
}

DatabaseServer& server() {
  static DatabaseServer the_server;
  return the_server;
}

TestDatabase::TestDatabase(bool migrated) : name_(server().create_database(migrated)), dsn_(server().dsn(name_)) {}

TestDatabase::~TestDatabase() {
  try {
    server().drop_database(name_);
  } catch (const std::exception& error) {
    std::cerr << "cannot drop " << name_ << ": " << error.what() << '\n';
  }
}

} // namespace holdfast::test
