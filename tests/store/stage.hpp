#pragma once
// What the tests of lib/store share: a database of their own with the schema in it, nodes, crawls, and a way to look at
// how a call ended. Main thread only. The destructor checks that every invariant holds, unless the test says otherwise.

#include "lib/pg/connection.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/node.hpp"
#include "lib/store/snapshot.hpp"
#include "lib/store/view.hpp"
#include "tests/support/test_database.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::test {

using namespace std::chrono_literals;

// SQLSTATE of the DatabaseError that `action` ends with, else the class of its Error, else "".
std::string refusal(const std::function<void()>& action);

class Stage {
  TestDatabase database_; // before what connects to it

public:
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  pg::Connection connection;
  bool broken_on_purpose{false};

  const std::string& dsn() const { return database_.dsn(); }
  std::string value(const std::string& sql, const pg::Params& params = {}); // one value; NULL is ""
  pg::Row row(const std::string& sql, const pg::Params& params = {});       // the only row; lives as long as the stage
  void run(const std::string& sql, const pg::Params& params = {}) { connection.call(sql, params); }
  // Without triggers and foreign keys, as a careless superuser could.
  void force(const std::string& sql);

  std::string node(const std::string& label = "node", std::chrono::milliseconds lease = 1h);
  // The database's clock is past the end of its lease.
  void expire(const std::string& node);

  static store::Seed seed(const std::string& name); // https://site.test/<name>
  static std::vector<store::Seed> seeds(int from, int to);
  std::string add(const std::vector<store::Seed>& seeds, store::NewCrawl crawl = {});
  // Added and expanded by a node: its snapshots are due.
  std::string start(const std::vector<store::Seed>& seeds, store::NewCrawl crawl = {});

  // The only due snapshot, claimed (and started).
  store::Claim claim(const std::string& node);
  store::Claim claim_and_start(const std::string& node);
  static store::Sealing succeeded(std::vector<store::Seed> discovered = {});
  store::Sealed seal(const std::string& node, const store::Claim& claim, const store::Sealing& sealing = succeeded());
  std::string status(const store::Lease& lease); // of the snapshot: queued, started, paused, sealed

private:
  std::deque<pg::Result> kept_;
};

} // namespace holdfast::test
