#pragma once
// Real databases for tests: one PostgreSQL server per test process, started when first asked for, and one fresh
// database per TestDatabase. Main thread only.
//
// The server stops, and its directory goes, when the process ends; also when it is killed (a watcher sees to that).

#include "lib/server/embedded_server.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace holdfast::test {

// Brings an empty database to the schema that TestDatabase's copies shall have. A test program that uses migrated
// databases defines it, in a source of its own or of an OBJECT library (a static library would not be searched for it).
[[gnu::weak]] void migrate_template(const std::string& dsn);

class DatabaseServer {
public:
  DatabaseServer();
  ~DatabaseServer();
  DatabaseServer(const DatabaseServer&) = delete;
  DatabaseServer& operator=(const DatabaseServer&) = delete;

  // Of a database of this server.
  std::string dsn(const std::string& database) const;

private:
  friend class TestDatabase;
  std::string create_database(bool migrated);
  void drop_database(const std::string& name);

  class Watcher;
  std::filesystem::path directory_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<server::EmbeddedServer> server_;
  bool template_ready_{false};
  int databases_{0};
};

// The one of this process.
DatabaseServer& server();

// A database of a test's own: a copy of the migrated template, or empty. Dropped by the destructor, even if sessions
// are still open.
class TestDatabase {
public:
  explicit TestDatabase(bool migrated = true);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  const std::string& dsn() const noexcept { return dsn_; }

private:
  std::string name_;
  std::string dsn_;
};

} // namespace holdfast::test
