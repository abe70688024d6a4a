#pragma once
// What the tests of services/worker share: a database, plugins that the test writes as shell scripts, workers that run
// on the test's own thread, and gates at which hooks wait for the test. Owned by the test case; single-threaded. The
// destructor ends the workers and checks what every case must leave: no process of any hook, no scratch, no broken
// invariant.

#include "lib/base/stop_signal.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/crawl.hpp"
#include "services/worker/worker.hpp"
#include "tests/process/stage.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/test_database.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

using namespace std::chrono_literals;

class WorkerStage {
  TestDatabase database_; // before what connects to it

public:
  struct Running {
    std::unique_ptr<base::StopSignal> stop;
    std::unique_ptr<worker::Worker> worker; // gone when ended
    std::string id;
    std::optional<worker::Worker::Ending> ending;
    std::string failure;
    bool ended() const { return ending.has_value() || !failure.empty(); }
  };

  WorkerStage();
  ~WorkerStage();
  WorkerStage(const WorkerStage&) = delete;
  WorkerStage& operator=(const WorkerStage&) = delete;

  TempDir dir;
  pg::Connection connection;
  worker::Options options; // of the workers to be started; quick heartbeats, no politeness to the disk

  // A hook of a plugin: "on_Snapshot__50_page.sh" and what it does. $url, $gates and gate() are there for it: `gate
  // NAME` says that it has come, and waits until the test opens the gate.
  void hook(const std::string& plugin, const std::string& file_name, const std::string& script);
  void config(const std::string& plugin, const std::string& json);
  // Prints a record of each of the URLs.
  static std::string discover(const std::vector<std::string>& urls);

  static std::string url(const std::string& name) { return "https://site.test/" + name; }
  std::string add(const std::vector<std::string>& urls, store::NewCrawl crawl = {});

  // A worker with `options`, and the plugins of that directory.
  Running& start(const std::string& plugins = "plugins");
  // Starts a worker and lets it work until nothing is open, then leave.
  void work();
  void leave(Running& running, base::Strength strength = base::Strength::drain);

  // Lets everything that is under way go on until the condition holds; fails the case at the deadline.
  void until(const char* what, const std::function<bool()>& condition, std::chrono::milliseconds deadline = kDeadline);
  void until_sealed() {
    until("every crawl is sealed",
          [&] { return number("select count(*) from holdfast.crawl where status <> 'sealed'") == 0; });
  }
  bool arrived(const std::string& gate) const { return std::filesystem::exists(dir / ("gates/" + gate + ".here")); }
  void until_arrived(const std::string& gate);
  void open(const std::string& gate) { dir.write("gates/" + gate, ""); }

  std::string value(const std::string& sql, const pg::Params& params = {}); // one value; NULL is ""
  std::int64_t number(const std::string& sql, const pg::Params& params = {}) { return std::stoll(value(sql, params)); }
  // "status/reason"-like joins are easier to read in one line: all rows, cells by "|", rows by "\n".
  std::string table(const std::string& sql, const pg::Params& params = {});
  void run(const std::string& sql, const pg::Params& params = {}) { connection.call(sql, params); }
  void ring() { run("select holdfast.notify_workers()"); }
  void pass(const std::string& time); // for what waits: "10 minutes"

  std::filesystem::path archive() const { return dir / "data/archive"; }
  // Of the only sealed snapshot with this URL.
  std::filesystem::path published(const std::string& url);
  // Attempt directories in the archive, relative to it, sorted.
  std::vector<std::string> attempts_on_disk() const;
  std::vector<pid_t> hooks_of(const std::string& worker_id) const {
    return carriers("HOLDFAST_COOKIE=" + worker_id + ".");
  }
  std::vector<pid_t> hooks() const;
  // Each sealed row names a directory whose manifest holds, and there is no other directory.
  void check_disk_and_rows();

private:
  void pump(std::chrono::milliseconds at_most);

  asio::io_context io_;
  std::deque<Running> workers_;
};

} // namespace holdfast::test
