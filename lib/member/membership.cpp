#include "lib/member/membership.hpp"

#include "lib/base/error.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/uuid.hpp"
#include "lib/process/launcher.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>

namespace holdfast::member {

namespace {

constexpr std::chrono::milliseconds kLeaveAgain{100};

} // namespace

Membership::Membership(asio::any_io_executor executor, store::ProcessInfo process, std::chrono::milliseconds lease,
                       std::chrono::milliseconds margin)
    : executor_(std::move(executor)), process_(std::move(process)), lease_(lease), trust_(lease, margin) {}

Membership::~Membership() { stop(); }

void Membership::join(pg::Connection& connection) {
  const auto sent = base::TrustWindow::Clock::now();
  collection_id_ = store::process_join(connection, process_, lease_);
  trust_.extend(sent);
}

// Trust is extended on the main thread: while that one hangs, trust runs out however well the heartbeats go.
std::function<void(pg::Connection&)>
Membership::heartbeating(std::function<std::function<void()>(pg::Connection&)> heartbeat) {
  return [this, alive = std::weak_ptr<bool>(alive_), executor = executor_,
          heartbeat = std::move(heartbeat)](pg::Connection& connection) {
    const auto sent = base::TrustWindow::Clock::now();
    auto take_answer = heartbeat(connection);
    asio::post(executor, [this, alive, sent, take_answer = std::move(take_answer)] {
      if (alive.expired()) return;
      base::test_point("take_heartbeat");
      trust_.extend(sent);
      last_error_.clear();
      take_answer();
    });
  };
}

void Membership::start(const std::string& dsn, pg::ConnectionOptions options, std::chrono::milliseconds interval,
                       Callbacks callbacks) {
  alive_ = std::make_shared<bool>(true);
  pg::Heartbeat::Callbacks heard;
  heard.heartbeat = heartbeating(std::move(callbacks.heartbeat));
  heard.on_notify = [notified = std::move(callbacks.notified)](std::vector<std::string> payloads) {
    notified(payloads);
  };
  heard.on_lost = [this](const std::string& reason) {
    last_error_ = reason;
    spdlog::warn("lost the database: {}", reason);
  };
  heard.on_restored = [restored = std::move(callbacks.restored)] {
    spdlog::info("the database is back");
    restored();
  };
  heard.on_fatal = [ended = std::move(callbacks.ended)](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      ended(error.what());
    }
  };
  heartbeat_ =
      std::make_unique<pg::Heartbeat>(dsn, std::move(options), "holdfast", interval, executor_, std::move(heard));
}

void Membership::heartbeat_now() {
  if (heartbeat_) heartbeat_->heartbeat_now();
}

void Membership::stop() {
  alive_.reset();
  heartbeat_.reset();
}

awaitable<void> Membership::leave(pg::Pool& pool, const Leave& leave, std::chrono::milliseconds timeout,
                                  const std::string& reason) {
  stop();
  const auto until = std::chrono::steady_clock::now() + timeout;
  std::string problem;
  for (;;) {
    problem.clear();
    try {
      co_await pool.run([&leave](pg::Connection& connection) { leave(connection); });
    } catch (const base::Error& error) {
      problem = error.what();
    }
    if (problem.empty() || std::chrono::steady_clock::now() >= until) break;
    asio::steady_timer timer(executor_, kLeaveAgain);
    co_await timer.async_wait(asio::use_awaitable);
  }
  if (!problem.empty()) spdlog::warn("{}: could not record its exit; its lease will expire: {}", label(), problem);
  spdlog::info("{} left: {}", label(), reason);
}

store::ProcessInfo describe_process(const std::string& process_type, const std::string& worker_type,
                                    const std::string& version, int slots, const std::filesystem::path& keep_in) {
  store::ProcessInfo process;
  process.id = base::new_uuid();
  std::error_code ignored; // machine_id() reports a failure, if it needs the directory
  if (!keep_in.empty()) std::filesystem::create_directories(keep_in, ignored);
  process.machine.id = process::machine_id(keep_in.empty() ? keep_in : keep_in / "machine-id");
  utsname names{};
  if (uname(&names) == 0) {
    process.machine.hostname = names.nodename;
    process.machine.os = std::string(names.sysname) + " " + names.release;
    process.machine.architecture = names.machine;
  }
  process.machine.cpu_count = static_cast<int>(std::thread::hardware_concurrency());
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0)
    process.machine.memory_bytes =
        static_cast<std::int64_t>(memory.totalram) * static_cast<std::int64_t>(memory.mem_unit);
  process.boot_id = process::boot_id();
  process.pid_namespace = process::namespace_id("pid");
  process.pid = getpid();
  process.start_ticks = process::process_start_ticks(getpid());
  process.process_type = process_type;
  process.worker_type = worker_type;
  process.label = process_type + " on " + process.machine.hostname + " pid " + std::to_string(process.pid);
  process.version = version;
  process.slots = slots;
  return process;
}

} // namespace holdfast::member
