#include "tests/worker/stage.hpp"

#include "lib/base/uuid.hpp"
#include "tests/store/migrated.hpp"
#include "tests/support/pass.hpp"

#include <boost/asio/co_spawn.hpp>
#include <doctest/doctest.h>

#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

namespace holdfast::test {

namespace fs = std::filesystem;

WorkerStage::WorkerStage() : connection(database_.dsn()) {
  fs::create_directories(dir / "plugins");
  fs::create_directories(dir / "gates");
  options.dsn = database_.dsn();
  options.connections = 2;
  options.version = "test";
  options.data_dir = dir / "data";
  options.work_dir = dir / "data/work";
  options.archive_root = archive();
  options.shim = program("holdfast-shim");
  options.hook_limits.timeout = 60s;
  options.allow_private = true; // no name server is asked
  options.slots = 4;
  options.poll = 100ms;
  options.lease = 60s;
  options.heartbeat = 100ms;
  options.margin = 10s;
  options.kill_grace = 1s;
  options.minimum_free_bytes = 0;
}

WorkerStage::~WorkerStage() {
  for (auto& running : workers_) {
    if (running.ended()) continue;
    running.stop->raise(base::Strength::kill, "the test is over");
    try {
      until("the worker has ended", [&] { return running.ended(); });
    } catch (const std::exception&) { // until() has said it
    }
  }
  CHECK(eventually([&] { return hooks().empty(); }, 5s));
  for (const pid_t pid : hooks())
    kill(pid, SIGKILL);
  std::error_code none;
  if (fs::exists(options.work_dir / "workers", none)) CHECK(fs::is_empty(options.work_dir / "workers", none));
  expect_invariants(connection);
}

void WorkerStage::pass(const std::string& time) {
  connection.script(passes(time));
  ring();
}

void WorkerStage::hook(const std::string& plugin, const std::string& file_name, const std::string& script) {
  const std::string prelude = R"(#!/bin/bash
for word in "$@"; do case $word in --url=*) url=${word#--url=} ;; esac; done
gates=')" + (dir / "gates").string() +
                              R"('
gate() {
  : >"$gates/$1.here"
  exec {quiet}<> <(:)
  for ((i = 0; i < 1200; i++)); do [[ -e $gates/$1 ]] && return; read -rt 0.05 -u "$quiet"; done
  exit 99
}
)";
  dir.write("plugins/" + plugin + "/" + file_name, prelude + script + "\n", true);
}

void WorkerStage::config(const std::string& plugin, const std::string& json) {
  dir.write("plugins/" + plugin + "/config.json", json);
}

std::string WorkerStage::discover(const std::vector<std::string>& urls) {
  std::string script;
  for (const auto& one : urls)
    script += "echo '{\"type\":\"Snapshot\",\"url\":\"" + one + "\"}'\n";
  return script;
}

std::string WorkerStage::add(const std::vector<std::string>& urls, store::NewCrawl crawl) {
  if (crawl.id.empty()) crawl.id = base::new_uuid();
  std::vector<store::Seed> seeds;
  for (const auto& one : urls)
    seeds.push_back({one, "", {}});
  REQUIRE(store::crawl_add(connection, crawl, seeds));
  return crawl.id;
}

WorkerStage::Running& WorkerStage::start(const std::string& plugins) {
  options.plugin_set = hooks::PluginSet::load({dir / plugins});
  auto stop = std::make_unique<base::StopSignal>(io_.get_executor());
  auto worker = std::make_unique<worker::Worker>(io_, options, *stop); // may throw
  auto& running = workers_.emplace_back();
  running.stop = std::move(stop);
  running.worker = std::move(worker);
  running.id = running.worker->id();
  asio::co_spawn(io_, running.worker->run(), [&running](std::exception_ptr failure, worker::Worker::Ending ending) {
    if (!failure) {
      running.ending = ending;
      return;
    }
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      running.failure = error.what();
    }
  });
  return running;
}

void WorkerStage::work() {
  auto& running = start();
  until_sealed();
  leave(running);
}

void WorkerStage::leave(Running& running, base::Strength strength) {
  running.stop->raise(strength, "the test says so");
  until("the worker has left", [&] { return running.ended(); });
  CHECK(running.failure == "");
}

void WorkerStage::pump(std::chrono::milliseconds at_most) {
  if (io_.stopped()) io_.restart();
  io_.run_for(at_most);
  // Not from within the worker's own coroutine.
  for (auto& running : workers_)
    if (running.ended()) running.worker.reset();
}

void WorkerStage::until(const char* what, const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      for (const auto& running : workers_)
        if (!running.failure.empty()) MESSAGE("a worker failed: " << running.failure);
      MESSAGE(table("select url, status, outcome, reason from holdfast.v_snapshot order by url"));
      throw std::runtime_error(std::string("it did not happen in time that ") + what);
    }
    pump(10ms);
  }
}

void WorkerStage::until_arrived(const std::string& gate) {
  until(("a hook has come to " + gate).c_str(), [&] { return arrived(gate); });
}

std::string WorkerStage::value(const std::string& sql, const pg::Params& params) {
  const auto result = connection.call(sql, params);
  REQUIRE_MESSAGE(result.size() == 1, sql);
  return result.cell(0, 0).value_or("");
}

std::string WorkerStage::table(const std::string& sql, const pg::Params& params) {
  const auto result = connection.call(sql, params);
  std::string text;
  for (std::size_t row = 0; row < result.size(); ++row) {
    if (row > 0) text += '\n';
    for (std::size_t column = 0; column < result.columns().size(); ++column)
      text += (column > 0 ? "|" : "") + result.cell(row, column).value_or("");
  }
  return text;
}

fs::path WorkerStage::published(const std::string& url) {
  return archive() /
         value("select directory from holdfast.v_snapshot where url = $1 and status = 'sealed'", pg::Params::of(url));
}

std::vector<std::string> WorkerStage::attempts_on_disk() const {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(archive()))
    if (entry.path().filename() == "manifest-sha256.txt")
      found.push_back(entry.path().parent_path().lexically_relative(archive()).string());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<pid_t> WorkerStage::hooks() const {
  std::vector<pid_t> all;
  for (const auto& running : workers_) {
    const auto some = hooks_of(running.id);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void WorkerStage::check_disk_and_rows() {
  std::string on_disk;
  for (const auto& directory : attempts_on_disk()) {
    on_disk += (on_disk.empty() ? "" : "\n") + directory;
    const int status = system(("cd '" + (archive() / directory).string() +
                               "' && sha256sum --quiet --strict -c manifest-sha256.txt && "
                               "test \"$(find . -type f | wc -l)\" = $(($(wc -l "
                               "<manifest-sha256.txt) + 1)) >&2")
                                  .c_str());
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(on_disk ==
        table("select directory from holdfast.snapshot_sealed where directory is not null order by directory "
              "collate \"C\""));
}

} // namespace holdfast::test
