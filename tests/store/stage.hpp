#pragma once
// What the tests of lib/store share: a database of their own with the schema in it, workers, crawls, and a way to look
// at how a call ended. Main thread only. The destructor checks that every invariant holds, unless the test says
// otherwise.

#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/pg/connection.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/snapshot.hpp"
#include "lib/store/worker.hpp"
#include "tests/support/test_database.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
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

  // Ann runs an operation of lib/catalog/operation.hpp. Returns whether it has changed anything.
  bool command(std::string_view operation, const std::string& id = "",
               const nlohmann::json& body = nlohmann::json::object());

  std::string worker(const std::string& label = "worker", std::chrono::milliseconds lease = 1h);
  // The database's clock is past the end of its lease.
  void expire(const std::string& worker);
  // So much time passes for what waits: "10 minutes".
  void pass(const std::string& time);

  static store::Seed seed(const std::string& name); // https://site.test/<name>
  static std::vector<store::Seed> seeds(int from, int to);
  std::string add(const std::vector<store::Seed>& seeds, store::NewCrawl crawl = {});
  // Added and expanded by a worker: its snapshots are due.
  std::string start(const std::vector<store::Seed>& seeds, store::NewCrawl crawl = {});

  // One due snapshot, claimed and started; the test fails if none is due.
  store::Claim claim(const std::string& worker);
  // Turns all seeds that wait into snapshots that can be claimed.
  void expand(const std::string& worker);
  std::vector<store::Claim> claim_as(const std::string& worker, const store::ClaimRequest& request);
  // As many as are due, but no more than `room`. Crawls of `open` come first in every other claim.
  std::vector<store::Claim> claim_many(const std::string& worker, int room, const std::vector<std::string>& open = {});
  // The same, of these crawls and no others.
  std::vector<store::Claim> claim_only(const std::string& worker, int room, const std::vector<std::string>& open);

  // What a worker finishes `claim` with: sealed as `outcome`, with a directory of 1000 bytes in three files.
  static store::Page sealed(const store::Claim& claim, const std::string& outcome = "succeeded");
  // To be tried again after `delay`, the attempt counted; without a delay the database decides when, and for how long.
  static store::Page released(const store::Claim& claim, std::optional<std::chrono::milliseconds> delay = 0ms,
                              const std::string& reason = "again");
  static store::HookResult result(const std::string& plugin, const std::string& hook,
                                  const std::string& status = "succeeded");
  static store::ActiveHook running(const store::Claim& claim, const std::string& plugin, const std::string& hook);

  store::PageAnswer finish(const std::string& worker, const store::Page& page);
  std::vector<store::PageAnswer> finish_all(const std::string& worker, const std::vector<store::Page>& pages);
  store::PageAnswer seal(const std::string& worker, const store::Claim& claim, std::vector<store::Seed> links = {});
  store::PageAnswer release(const std::string& worker, const store::Claim& claim,
                            std::optional<std::chrono::milliseconds> delay = 0ms, const std::string& reason = "again");
  std::string status(const store::Lease& lease); // of the snapshot: queued, started, paused, sealed

private:
  std::deque<pg::Result> kept_;
};

} // namespace holdfast::test
