#include "services/worker/worker.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/log.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/text/time.hpp"
#include "lib/store/call.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <utility>

namespace holdfast::worker {

namespace {

constexpr int kOpenSeeds = 200;                       // a new crawl of no more is opened by the claim itself
constexpr std::chrono::milliseconds kRoomCheck{2000}; // how often a worker that stopped claiming looks again
// For what is left once no hook runs: a few database calls, each with its own deadline.
constexpr std::chrono::milliseconds kLeave{60000};
// Time after the hooks were killed: anything that still runs hangs, for example in a file system that does not answer.
constexpr std::chrono::milliseconds kLeaveKilled{10000};
constexpr std::chrono::milliseconds kDoneCheck{1000};
constexpr std::chrono::milliseconds kLeastWait{20}; // between claims that find nothing
constexpr std::chrono::milliseconds kDueElsewhere{500};

// Returns the groups that limit hooks, ready for use; none if they are switched off, or the machine has none.
process::Cgroups cgroups_of_hooks(bool wanted) {
  process::Cgroups cgroups;
  if (!wanted) return cgroups;
  cgroups = process::Cgroups::find();
  cgroups.prepare();
  return cgroups;
}

} // namespace

Worker::Worker(asio::io_context& io, Options options, base::StopSignal& stop, std::function<bool(pg::Connection&)> done)
    : io_(io), options_(std::move(options)), stop_(stop), done_(std::move(done)),
      membership_(io.get_executor(), describe_worker(options_), options_.lease, options_.margin),
      scratch_(options_.work_dir, id()), sandbox_(choose_sandbox(options_, options_.work_dir)),
      networks_(options_, sandbox_), launcher_(io.get_executor(), options_.shim, cgroups_of_hooks(options_.cgroups)),
      binaries_(options_.binary_directories, options_.data_dir / "lib"), archive_root_(join()),
      pool_(options_.dsn, connection_options(label(), options_), options_.connections,
            std::min(options_.lease - options_.margin, std::chrono::milliseconds(10000))),
      retry_(pool_, membership_.trust()),
      archive_watch_(io.get_executor(), archive_root_, options_.archive_root.string()),
      claim_conditions_(options_, scratch_, archive_watch_), turns_(
                                                                 retry_, id(), &call_turn,
                                                                 [this] {
                                                                   archive_watch_.hurry();
                                                                   sleeper_.wake();
                                                                 },
                                                                 [this](const std::string& reason) { fence(reason); }),
      running_hooks_(io.get_executor(), retry_, id(), [this] { return jobs_.hooks(); }),
      expander_(io.get_executor(), retry_, id(), options_,
                {[this] { return !leaving() && claim_conditions_.shortage().text.empty(); },
                 [this] { sleeper_.wake(); },
                 [this](std::string crawl) { return housekeeping_.make_crawl_page(std::move(crawl)); }}),
      housekeeping_(io.get_executor(), pool_, files_, archive_root_, options_),
      hook_services_{options_,
                     id(),
                     membership_.process().machine.hostname,
                     retry_,
                     io.get_executor(),
                     files_,
                     resolver_,
                     launcher_,
                     binaries_,
                     sandbox_.sandbox,
                     sandbox_.users,
                     networks_},
      binary_resolver_(hook_services_), browser_(hook_services_, sandbox_),
      sign_ins_(hook_services_, [this](awaitable<void> work) { spawn(std::move(work)); }),
      session_services_{hook_services_, binary_resolver_, browser_},
      sessions_(session_services_, [this] { wake(); }), page_services_{hook_services_,   archive_root_, archive_watch_,
                                                                       sessions_,        turns_,        running_hooks_,
                                                                       claim_conditions_},
      jobs_(page_services_, {[this] {
                               publish_heartbeat_state();
                               sleeper_.wake();
                             },
                             [this](std::string crawl) { return crawl_sealed(std::move(crawl)); },
                             [this](awaitable<void> work) { spawn(std::move(work)); }}),
      sleeper_(io.get_executor()) {
  options_.work_dir = scratch_.path();
  options_.temporary_dir = scratch_.temporary();
  if (done_) sign_ins_.stop("its worker ends with its pages"); // it takes none
}

// Joins on a connection of its own, which throws if the database is unreachable, before anything of the hooks is
// logged. Then opens the archive. That of a collection with files exists already: an empty directory then is a volume
// that is not mounted.
archive::Root Worker::join() {
  pg::Connection connection(options_.dsn, connection_options(label(), options_));
  membership_.join(connection);
  if (sandbox_.sandbox.level == process::SandboxLevel::none && options_.sandbox != "off")
    spdlog::warn("sandbox of hooks: {}; they can do all that user {} can", sandbox_.description, ::geteuid());
  else
    spdlog::info("sandbox of hooks: {}", sandbox_.description);
  spdlog::info("network of hooks: {}", networks_.description());
  spdlog::info("cgroups of hooks: {}", launcher_.cgroups().describe());
  for (const auto& binary : store::binary_known(connection, id()))
    if (!binary.path.empty()) binaries_.remember(binary.name, binary.path);
  binaries_.add_machine_options(store::machine_options(connection, id()));
  try {
    return archive::Root::open(options_.archive_root, membership_.collection_id(),
                               !store::call_for<bool>(connection, "archive_begun"));
  } catch (const base::Error& error) {
    store::call(connection, "process_leave", id(), error.exit_code(), error.what());
    throw;
  }
}

Worker::~Worker() {
  membership_.stop();
  files_.join();
  resolver_.join();
}

awaitable<Worker::Ending> Worker::run() {
  base::set_log_process(label());
  spdlog::info("{} joined as {} with {} slots", label(), id(), options_.slots);
  watchdog_.emplace(io_.get_executor(), membership_.trust(), options_.margin / 2, [this] {
    fence("no heartbeat has succeeded for " + base::format_duration(options_.lease - options_.margin));
  });
  start_heartbeat();
  asio::cancellation_signal stop_watching;
  spawn(watch_stop(), stop_watching.slot());
  spawn(binary_resolver_.run());
  spawn(browser_.run(!done_));
  spawn(running_hooks_.run());
  spawn(housekeeping_.run());
  if (options_.kind != "snapshot") spawn(expand());
  try {
    co_await turn_loop();
  } catch (...) {
    fail(std::current_exception());
  }
  turns_.close("this worker leaves");
  while (!jobs_.empty()) // if the loop has failed
    co_await sleeper_.sleep(std::chrono::milliseconds(500));
  co_await sessions_.close("its worker leaves");
  sign_ins_.stop("its worker stops");
  running_hooks_.stop();
  watchdog_->leave_within(kLeave);
  membership_.stop();
  stop_watching.emit(asio::cancellation_type::terminal);
  while (spawned_ > 0)
    co_await sleeper_.sleep(std::chrono::milliseconds(500));
  co_await archive_watch_.ended();
  co_await leave();
  if (failure_) std::rethrow_exception(failure_);
  co_return fenced_ ? Ending::lost_trust : Ending::left;
}

// Records the exit in the database.
awaitable<void> Worker::leave() {
  const bool lost = fenced_ && !failure_;
  const int exit_code = failure_ ? static_cast<int>(base::ErrorClass::bug)
                        : lost   ? static_cast<int>(base::ErrorClass::temporary)
                                 : 0;
  const std::string reason = failure_                 ? "failed"
                             : lost                   ? "lost trust"
                             : stop_.reason().empty() ? "done"
                                                      : stop_.reason();
  const member::Membership::Leave leave = [&](pg::Connection& connection) {
    store::call(connection, "process_leave", id(), exit_code, reason);
  };
  co_await membership_.leave(pool_, leave, std::chrono::milliseconds(0), reason);
}

// Runs beside run(), which waits for it before it ends.
void Worker::spawn(awaitable<void> work, asio::cancellation_slot slot) {
  ++spawned_;
  asio::co_spawn(io_, std::move(work), asio::bind_cancellation_slot(slot, [this](std::exception_ptr failure) {
                   --spawned_;
                   sleeper_.wake();
                   try {
                     if (failure) std::rethrow_exception(failure);
                   } catch (const boost::system::system_error&) { // cancelled
                   } catch (const std::exception& error) {
                     spdlog::error("a task of this worker failed: {}", error.what());
                   }
                 }));
}

void Worker::start_heartbeat() {
  member::Membership::Callbacks callbacks;
  callbacks.heartbeat = [this, held = heartbeat_state_](pg::Connection& connection) -> std::function<void()> {
    const auto now = held->read();
    auto answer = store::worker_heartbeat(connection, id(), options_.lease, now.leases, now.stats_json());
    return [this, answer = std::move(answer)] { take_heartbeat(answer); };
  };
  callbacks.notified = [this](const std::vector<std::string>& notifications) { heed(notifications); };
  callbacks.restored = [this] {
    running_hooks_.lost();
    sign_ins_.look();
    wake();
  };
  callbacks.ended = [this](const std::string& reason) { fence(reason); };
  membership_.start(options_.dsn, heartbeat_options(label(), options_), options_.heartbeat, std::move(callbacks));
}

void Worker::take_heartbeat(const store::HeartbeatAnswer& answer) {
  jobs_.take_heartbeat(answer.lost, answer.extra);
  claim_conditions_.set_clock_ahead(answer.clock_ahead);
  publish_heartbeat_state(); // for the next heartbeat
  base::request_log_level(answer.log_level);
  if (answer.request == "drain")
    stop_.raise(base::Strength::drain, "asked to drain");
  else if (!answer.request.empty())
    stop_.raise(base::Strength::stop, "asked to " + answer.request);
}

// "crawl_sealed <id>", "crawl_paused <id>": nothing more of it is to be done here. Anything else is the notification.
void Worker::heed(const std::vector<std::string>& notifications) {
  for (const auto& notification : notifications) {
    // After a pause or a cancel, the heartbeat returns which pages of ours it concerns.
    if (notification == "control") membership_.heartbeat_now();
    sign_ins_.heed(notification);
    const auto space = notification.find(' ');
    if (space == std::string::npos || !notification.starts_with("crawl_")) continue;
    sessions_.crawl_over(notification.substr(space + 1), "its crawl is " + notification.substr(6, space - 6));
  }
  wake();
}

void Worker::publish_heartbeat_state() {
  heartbeat_state_->publish({jobs_.leases(), jobs_.sealed(), scratch_.free_bytes(), claim_conditions_.not_claiming()});
}

// Past the trust window others may have our work: nothing of ours may run on.
void Worker::fence(const std::string& reason) {
  if (fenced_) return;
  fenced_ = true;
  base::count("holdfast_worker_fencings_total");
  spdlog::error("the lease may have expired, killing the hooks of {} snapshots: {}", jobs_.size(), reason);
  jobs_.lose_all("the lease of this worker may have expired: " + reason);
  sessions_.shut_down(ShutdownMode::immediate, "the lease of this worker may have expired: " + reason);
  stop_services("the lease of its worker may have expired");
  watchdog_->stand_down(); // last: it watches over the lines above
  wake();
}

// Ends what works beside the pages.
void Worker::stop_services(const std::string& reason) {
  sign_ins_.stop(reason);
  binary_resolver_.stop();
  browser_.stop();
  expander_.stop();
  housekeeping_.stop();
}

void Worker::fail(std::exception_ptr failure) {
  if (!failure_) failure_ = std::move(failure);
  fence("the worker has failed");
}

awaitable<void> Worker::watch_stop() {
  co_await stop_.reached(base::Strength::drain);
  draining_ = true;
  stop_services("its worker stops");
  claim_conditions_.look(drain_reason()); // for why()
  publish_heartbeat_state();
  spdlog::info("draining ({}): {} snapshots in work", stop_.reason(), jobs_.size());
  wake();
  asio::steady_timer deadline(io_);
  const auto raise_after = [&](std::chrono::milliseconds time, base::Strength strength, const char* reason) {
    deadline.expires_after(time);
    deadline.async_wait([this, strength, reason](const boost::system::error_code& error) {
      if (!error) stop_.raise(strength, reason);
    });
  };
  raise_after(options_.drain_timeout, base::Strength::stop, "drain_timeout is over");
  co_await stop_.reached(base::Strength::stop);
  deadline.cancel();
  jobs_.interrupt_all("its worker was stopped: " + stop_.reason());
  sessions_.shut_down(ShutdownMode::fast, "its worker was stopped: " + stop_.reason());
  wake();
  raise_after(options_.stop_timeout, base::Strength::kill, "stop_timeout is over");
  co_await stop_.reached(base::Strength::kill);
  deadline.cancel();
  watchdog_->leave_within(kLeaveKilled);
  jobs_.lose_all("its worker was killed: " + stop_.reason());
  sessions_.shut_down(ShutdownMode::immediate, "its worker was killed: " + stop_.reason());
  wake();
}

void Worker::wake() {
  sleeper_.wake();
  expander_.wake();
}

// Runs until the worker leaves and every job has ended. Makes a turn when a page was submitted, a page may be due, or a
// poll is.
awaitable<void> Worker::turn_loop() {
  while (!leaving() || !jobs_.empty()) {
    if (!leaving()) archive_watch_.look();
    if (!leaving() && turns_.waiting() == 0) co_await archive_watch_.answered();
    const auto claim = claim_request();
    store::TurnAnswer answer;
    try {
      if (claim.room > 0 || turns_.waiting() > 0) answer = co_await turns_.make(claim);
      jobs_.start(answer.claims);
      if (answer.claims.empty() && turns_.waiting() == 0) co_await look_whether_done();
    } catch (const base::Error& error) {
      if (error.error_class() == base::ErrorClass::lease_lost)
        fence(error.what());
      else if (error.error_class() != base::ErrorClass::temporary)
        throw;
      spdlog::debug("worker_turn failed: {}", error.what());
    }
    // A turn lapses workers, unless it has finished pages. A worker that makes no other turns does it here.
    if ((claim.room == 0 || !answer.pages.empty()) && !fenced_ && housekeeping_.lapse_due())
      spawn(housekeeping_.lapse_process()); // its end wakes this loop
    if (!answer.claims.empty() || turns_.waiting() > 0) continue;
    if (!co_await sleeper_.sleep(pause_after(answer))) expander_.wake();
  }
}

store::ClaimRequest Worker::claim_request() {
  store::ClaimRequest claim;
  if (claim_conditions_.look(drain_reason())) publish_heartbeat_state();
  if (leaving() || !claim_conditions_.not_claiming().empty() || options_.kind == "crawl") return claim;
  claim.room = std::max(0, options_.slots - static_cast<int>(running()));
  claim.order = options_.claim_order;
  claim.seeds = options_.kind == "snapshot" ? 0 : kOpenSeeds;
  // With as many browsers open as there may be, what would need another is left to other workers.
  claim.open_only = sessions_.full();
  claim.open = sessions_.open();
  if (claim.open_only || claim.open.empty()) {
    auto crawls = jobs_.crawls();
    crawls.insert(claim.open.begin(), claim.open.end());
    claim.open.assign(crawls.begin(), crawls.end());
  }
  if (!options_.only_crawls.empty()) {
    if (!claim.open_only) claim.open = options_.only_crawls;
    claim.open_only = true;
    claim.only = options_.only_snapshots;
    claim.seeds = 0;
  }
  return claim;
}

// Returns how long to sleep unless woken, after a turn that claimed nothing.
std::chrono::milliseconds Worker::pause_after(const store::TurnAnswer& answer) const {
  auto pause = options_.poll;
  if (done_) pause = std::min(pause, kDoneCheck);
  if (!claim_conditions_.not_claiming().empty()) pause = kRoomCheck;
  pause = base::jittered(pause);
  if (!answer.wait) return pause;
  // A row is due, but the claim found nothing: it is paused, or its crawl cannot run here.
  const auto due =
      answer.wait->count() > 0 ? std::max(*answer.wait + std::chrono::milliseconds(1), kLeastWait) : kDueElsewhere;
  return std::min(pause, due);
}

std::string Worker::drain_reason() const { return draining_ ? "it is draining (" + stop_.reason() + ")" : ""; }

awaitable<void> Worker::crawl_sealed(std::string crawl_id) {
  sessions_.crawl_over(crawl_id, "its crawl is sealed");
  co_await housekeeping_.make_crawl_page(std::move(crawl_id));
}

awaitable<void> Worker::expand() {
  try {
    co_await expander_.run();
  } catch (const base::Error& error) {
    if (error.error_class() == base::ErrorClass::lease_lost)
      fence(error.what());
    else
      fail(std::current_exception());
  } catch (...) {
    fail(std::current_exception());
  }
}

awaitable<void> Worker::look_whether_done() {
  const auto now = std::chrono::steady_clock::now();
  if (!done_ || leaving() || now - looked_whether_done_ < kDoneCheck / 4) co_return;
  looked_whether_done_ = now;
  if (co_await pool_.run([this](pg::Connection& connection) { return done_(connection); }))
    stop_.raise(base::Strength::drain, "done");
}

} // namespace holdfast::worker
