#include "services/worker/node.hpp"

#include "lib/archive/verify.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/log.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/test_point.hpp"
#include "lib/s3/client.hpp"
#include "lib/store/control.hpp"
#include "services/worker/crawl_page.hpp"
#include "services/worker/machine.hpp"
#include "services/worker/machine_room.hpp"
#include "services/worker/on_thread.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <utility>

namespace holdfast::worker {

namespace {

std::vector<store::SealAnswer> seal_together(pg::Connection& connection, const std::string& node,
                                             const std::vector<store::SealRequest>& requests) {
  base::test_point("before_seal");
  auto answers = store::snapshot_seal_many(connection, node, requests);
  base::test_point("after_seal");
  return answers;
}

constexpr int kExpandBatch = 2000;                          // seeds turned into snapshots per transaction
constexpr int kOpenSeeds = 200;                             // a new crawl of no more is opened by the claim itself
constexpr std::chrono::milliseconds kArchivePatience{5000}; // for its answer, before a claim
constexpr std::chrono::milliseconds kRoomCheck{2000};       // how often a node that stopped claiming looks again
// For what is left once no hook runs: a few database calls, each with its own deadline.
constexpr std::chrono::milliseconds kLeave{60000};
// Once the hooks were killed: what then still runs hangs, in a file system that does not answer, say.
constexpr std::chrono::milliseconds kLeaveKilled{10000};
constexpr std::chrono::milliseconds kDoneCheck{1000};
constexpr std::chrono::milliseconds kLeastWait{20}; // between claims that find nothing
constexpr std::chrono::milliseconds kDueElsewhere{500};
constexpr std::chrono::milliseconds kTrustCheck{1000};
constexpr std::chrono::milliseconds kPurgeEvery{30000};
constexpr std::chrono::milliseconds kPurgeAge{60000}; // until then a runner may do it
constexpr int kPurgeBatch = 20;

// An answer that comes after the end of trust is of no use, so no call waits longer than trust could last.
pg::ConnectionOptions connection_options(const std::string& label, const NodeOptions& node) {
  using std::chrono::milliseconds;
  const auto window = node.lease - node.margin;
  pg::ConnectionOptions options;
  options.application_name = label;
  options.connect_timeout = std::clamp(window / 2, milliseconds(2000), milliseconds(5000));
  options.statement_timeout = std::clamp(window, milliseconds(2000), milliseconds(30000));
  options.lock_timeout = std::min(options.lock_timeout, options.statement_timeout);
  options.answer_timeout = options.statement_timeout + std::clamp(window / 4, milliseconds(500), milliseconds(5000));
  return options;
}

// A beat that hangs is worth less than the next one: the session is given up, and a new one made, in time for it.
pg::ConnectionOptions beat_options(const std::string& label, const NodeOptions& node) {
  using std::chrono::milliseconds;
  auto options = connection_options(label + " beat", node);
  options.connect_timeout = std::clamp(node.beat, milliseconds(2000), milliseconds(5000));
  options.statement_timeout = std::clamp(node.beat, milliseconds(1000), milliseconds(30000));
  options.lock_timeout = std::min(options.lock_timeout, options.statement_timeout);
  options.answer_timeout = options.statement_timeout;
  return options;
}

std::string capabilities(const NodeOptions& options) {
  nlohmann::json plugins = nlohmann::json::array();
  for (const auto& plugin : options.catalog->plugins())
    plugins.push_back(plugin.first);
  const bool bucket = options.archive_root.native().starts_with("s3:");
  return nlohmann::json{{"plugins", plugins}, {"archive", bucket ? "s3" : "directory"}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// For the fault suite, which must notice.
bool self_fencing() { return std::getenv("HOLDFAST_TEST_NO_SELF_FENCING") == nullptr; }

// Nodes must not poll in step.
std::chrono::milliseconds jittered(std::chrono::milliseconds interval) {
  static std::mt19937 generator{std::random_device{}()};
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(interval.count() * 3 / 4, interval.count() * 5 / 4)(generator));
}

} // namespace

Node::Node(asio::io_context& io, NodeOptions options, base::StopSignal& stop, std::function<bool(pg::Connection&)> done)
    : io_(io), options_(std::move(options)), stop_(stop), done_(std::move(done)),
      process_(describe_process("worker", options_.kind, options_.version, options_.slots, options_.data_dir)),
      scratch_(options_.work_dir, process_.id), binaries_(options_.program_directories, options_.data_dir / "lib"),
      trust_(options_.lease, options_.margin), wake_timer_(io), trust_timer_(io), look_timer_(io) {
  process_.parent_id = options_.parent_id;
  options_.work_dir = scratch_.path();
  options_.temporary_dir = scratch_.temporary();
  process::Cgroups cgroups;
  if (options_.cgroups) {
    cgroups = process::Cgroups::find();
    cgroups.prepare();
  }
  spdlog::info("cgroups of hooks: {}", cgroups.describe());
  launcher_ = process::make_launcher(io_.get_executor(), options_.shim, std::move(cgroups));

  // Joining is done on a connection of its own: if the database is away at start, say so and stop.
  pg::Connection connection(options_.dsn, connection_options(process_.label, options_));
  process_.capabilities_json = capabilities(options_);
  const auto sent = base::TrustWindow::Clock::now();
  collection_id_ = store::node_join(connection, process_, options_.lease);
  trust_.extend(sent);
  archive_root_ = std::make_unique<archive::Root>(archive::Root::open(options_.archive_root, collection_id_, true));
  pool_ = std::make_unique<pg::Pool>(options_.dsn, connection_options(process_.label, options_), options_.connections,
                                     std::min(options_.lease - options_.margin, std::chrono::milliseconds(10000)));
  database_ = std::make_unique<Database>(*pool_, trust_);
  context_ = std::unique_ptr<JobContext>(new JobContext{options_, process_.id, process_.machine.hostname, *database_,
                                                        *launcher_, binaries_, files_, resolver_, *archive_root_,
                                                        io_.get_executor(), process_.id, nullptr, nullptr});
  sessions_ = std::make_unique<CrawlSessions>(*context_, [this] { wake(); });
  context_->sessions = sessions_.get();
  programs_ = std::make_unique<Programs>(*context_);
  context_->programs = programs_.get();
  writes_ = std::unique_ptr<Writes>(new Writes{{*database_, process_.id, &seal_together},
                                               {*database_, process_.id, &store::result_start_many},
                                               {*database_, process_.id, &store::result_finish_many}});
  context_->writes = writes_.get();
  for (const auto& program : store::binary_known(connection, process_.id))
    if (!program.path.empty()) binaries_.remember(program.name, program.path);
  binaries_.add_machine_options(store::machine_options(connection, process_.id));
}

Node::~Node() {
  heartbeat_.reset();
  files_.join();
  resolver_.join();
  looks_.join();
}

awaitable<Node::Ending> Node::run() {
  base::set_log_node(process_.label);
  spdlog::info("{} joined as {} with {} slots", process_.label, process_.id, options_.slots);
  start_heartbeat();
  watch_trust();
  if (self_fencing()) watchdog_ = std::make_unique<Watchdog>(trust_, options_.margin / 2);
  asio::cancellation_signal stop_watching;
  spawn(watch_stop(), stop_watching.slot());
  spawn(programs_->run());
  std::exception_ptr failure;
  try {
    co_await claim_loop();
  } catch (...) {
    failure = std::current_exception();
    fence("the node has failed");
  }
  programs_->stop();
  // Leaving: what still runs gets its time; watch_stop() strengthens the signal when that is over.
  for (auto lapsed = std::chrono::steady_clock::time_point{}; !jobs_.empty();) {
    co_await sleep_until_woken(std::chrono::milliseconds(500));
    if (const auto now = std::chrono::steady_clock::now(); !fenced_ && now - lapsed > options_.poll) {
      lapsed = now;
      co_await give_up_the_dead();
    }
  }
  co_await sessions_->close("its node leaves");
  trust_timer_.cancel();
  if (watchdog_) watchdog_->leave_within(kLeave);
  heartbeat_.reset();
  stop_watching.emit(asio::cancellation_type::terminal);
  while (spawned_ > 0)
    co_await sleep_until_woken(std::chrono::milliseconds(500));
  const bool lost = fenced_ && !failure;
  const int exit_code = failure ? static_cast<int>(base::ErrorClass::bug)
                        : lost  ? static_cast<int>(base::ErrorClass::temporary)
                                : 0;
  const std::string reason = failure                  ? "failed"
                             : lost                   ? "lost trust"
                             : stop_.reason().empty() ? "done"
                                                      : stop_.reason();
  std::string problem;
  try {
    co_await pool_->run(
        [&](pg::Connection& connection) { store::node_leave(connection, process_.id, exit_code, reason); });
  } catch (const base::Error& error) {
    problem = error.what(); // its lease will lapse
  }
  if (!problem.empty()) spdlog::warn("could not say good-bye to the database: {}", problem);
  spdlog::info("{} left: {}", process_.label, reason);
  if (failure) std::rethrow_exception(failure);
  co_return lost ? Ending::lost_trust : Ending::left;
}

// Runs beside run(), which waits for it before it ends.
void Node::spawn(awaitable<void> work, asio::cancellation_slot slot) {
  ++spawned_;
  asio::co_spawn(io_, std::move(work), asio::bind_cancellation_slot(slot, [this](std::exception_ptr) {
                   --spawned_;
                   wake();
                 }));
}

void Node::start_heartbeat() {
  pg::Heartbeat::Callbacks callbacks;
  const std::weak_ptr<Held> alive = held_;
  callbacks.beat = [this, alive, held = held_.get(), id = process_.id](pg::Connection& connection,
                                                                       std::chrono::steady_clock::time_point) {
    std::vector<store::Lease> leases;
    std::string stats;
    {
      const std::lock_guard lock(held->mutex);
      leases = held->leases;
      stats = held->stats_json();
    }
    const auto sent = base::TrustWindow::Clock::now();
    auto answer = store::node_beat(connection, id, options_.lease, leases, stats);
    // The thread is joined before the node goes, but what it has posted may still be waiting then.
    asio::post(io_, [this, alive, sent, answer = std::move(answer)] {
      if (!alive.expired()) take_beat(sent, answer);
    });
  };
  callbacks.on_notify = [this, alive](const std::vector<std::string>& notifications) {
    if (!alive.expired()) heed(notifications);
  };
  callbacks.on_lost = [](const std::string& reason) { spdlog::warn("lost the database: {}", reason); };
  callbacks.on_restored = [this, alive] {
    spdlog::info("the database is back");
    if (!alive.expired()) wake();
  };
  callbacks.on_fatal = [this, alive](std::exception_ptr failure) {
    if (alive.expired()) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      fence(error.what());
    }
  };
  heartbeat_ = std::make_unique<pg::Heartbeat>(options_.dsn, beat_options(process_.label, options_), "holdfast",
                                               options_.beat, io_.get_executor(), std::move(callbacks));
}

// On the main thread: while that one hangs, trust runs out however well the beats go, and the watchdog ends us.
void Node::take_beat(base::TrustWindow::Clock::time_point sent, const store::BeatAnswer& answer) {
  base::test_point("take_beat");
  trust_.extend(sent);
  watch_trust();
  for (const auto& lease : answer.lost)
    if (const auto job = jobs_.find({lease.snapshot_id, lease.fence}); job != jobs_.end())
      job->second->lose("the database says that it is no longer ours");
  // A claim may be under way whose answer is not here yet: only what is unknown on two beats running is handed back.
  std::set<std::string> extra;
  for (const auto& lease : answer.extra) {
    if (claiming_ || jobs_.contains({lease.snapshot_id, lease.fence})) continue;
    const std::string key = lease.snapshot_id + " " + std::to_string(lease.fence);
    if (extra_once_.contains(key))
      spawn(hand_back(lease));
    else
      extra.insert(key);
  }
  extra_once_ = std::move(extra);
  publish_held(); // for the next beat: who stands still shows by time alone
  base::request_log_level(answer.log_level);
  if (answer.request == "drain")
    stop_.raise(base::Strength::drain, "asked to drain");
  else if (!answer.request.empty())
    stop_.raise(base::Strength::stop, "asked to " + answer.request);
}

awaitable<void> Node::hand_back(store::Lease lease) {
  try {
    co_await database_->repeat([&](pg::Connection& connection) {
      store::snapshot_release(connection, process_.id, lease, "handed_back", std::chrono::milliseconds(0),
                              "the answer to its claim was lost", false);
    });
  } catch (const base::Error& error) {
    spdlog::debug("not handed back: {}", error.what());
  }
}

// "crawl_sealed <id>", "crawl_paused <id>": nothing more of it is to be done here. Anything else is the doorbell.
void Node::heed(const std::vector<std::string>& notifications) {
  for (const auto& notification : notifications) {
    // Somebody paused or cancelled something: the beat says what of ours.
    if (notification == "control" && heartbeat_) heartbeat_->beat_now();
    const auto space = notification.find(' ');
    if (space == std::string::npos || !notification.starts_with("crawl_")) continue;
    sessions_->crawl_over(notification.substr(space + 1), "its crawl is " + notification.substr(6, space - 6));
  }
  wake();
}

void Node::publish_held() {
  const std::uint64_t free = scratch_.free_bytes();
  const std::lock_guard lock(held_->mutex);
  held_->leases.clear();
  held_->still.clear();
  for (const auto& [id, job] : jobs_) {
    held_->leases.push_back(job->lease());
    const auto* run = job->foreground();
    if (run == nullptr) continue;
    if (const auto stillness = run->stillness(); stillness.limit.count() > 0)
      held_->still.push_back({job->lease().snapshot_id, run->hook().plugin->name, run->hook().name.name, stillness});
  }
  held_->sealed = sealed_;
  held_->free_bytes = free;
  held_->not_claiming = not_claiming_;
}

// Ages, not times: a node's clock decides nothing.
std::string Node::Held::stats_json() const {
  nlohmann::json stats = {{"sealed", sealed}, {"free_bytes", free_bytes}};
  if (!not_claiming.empty()) stats["not_claiming"] = not_claiming;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& one : still)
    stats["no_progress"][one.snapshot_id] = {
        {"plugin", one.plugin},
        {"hook", one.hook},
        {"seconds", std::chrono::duration<double>(now - one.stillness.since).count()},
        {"limit", std::chrono::duration<double>(one.stillness.limit).count()}};
  return stats.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Node::set_not_claiming(std::string why) {
  if (why == not_claiming_) return;
  if (!why.empty())
    spdlog::warn("not claiming: {}", why);
  else
    spdlog::info("claiming again");
  not_claiming_ = std::move(why);
  publish_held();
}

// Past the trust window others may have our work: nothing of ours may run on.
void Node::fence(const std::string& reason) {
  if (fenced_) return;
  fenced_ = true;
  base::count("holdfast_node_fencings_total");
  spdlog::error("no longer trusted, killing {} snapshots' hooks: {}", jobs_.size(), reason);
  for (auto& [id, job] : jobs_)
    job->lose("this node is no longer trusted: " + reason);
  sessions_->kill("this node is no longer trusted: " + reason);
  programs_->stop();
  if (watchdog_) watchdog_->stand_down(); // last: it watches over the lines above
  wake();
}

void Node::watch_trust() {
  // The timer does not count the time that the machine sleeps, trust does: so it looks every second.
  const auto left = trust_.trusted_until() - base::TrustWindow::Clock::now();
  trust_timer_.expires_after(std::clamp<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1), kTrustCheck));
  trust_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || fenced_ || !self_fencing()) return;
    if (trust_.trusted(base::TrustWindow::Clock::now()))
      watch_trust();
    else
      fence("no beat has succeeded for " + base::format_duration(options_.lease - options_.margin));
  });
}

awaitable<void> Node::watch_stop() {
  co_await stop_.reached(base::Strength::drain);
  draining_ = true;
  not_claiming_ = shortage(); // for why(), and not worth another line here
  publish_held();
  spdlog::info("draining ({}): {} snapshots in work", stop_.reason(), jobs_.size());
  wake();
  asio::steady_timer deadline(io_, options_.drain_timeout);
  deadline.async_wait([this](const boost::system::error_code& error) {
    if (!error) stop_.raise(base::Strength::stop, "drain_timeout is over");
  });
  co_await stop_.reached(base::Strength::stop);
  deadline.cancel();
  for (auto& [id, job] : jobs_)
    job->interrupt("its node was stopped: " + stop_.reason());
  sessions_->hurry("its node was stopped: " + stop_.reason());
  wake();
  deadline.expires_after(options_.stop_timeout);
  deadline.async_wait([this](const boost::system::error_code& error) {
    if (!error) stop_.raise(base::Strength::kill, "stop_timeout is over");
  });
  co_await stop_.reached(base::Strength::kill);
  deadline.cancel();
  if (watchdog_) watchdog_->leave_within(kLeaveKilled);
  for (auto& [id, job] : jobs_)
    job->lose("its node was killed: " + stop_.reason());
  sessions_->kill("its node was killed: " + stop_.reason());
  wake();
}

void Node::wake() {
  woken_ = true;
  wake_timer_.cancel();
}

awaitable<void> Node::sleep_until_woken(std::chrono::milliseconds at_most) {
  if (!woken_) {
    wake_timer_.expires_after(at_most);
    co_await wake_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  woken_ = false;
}

bool Node::has_room() {
  set_not_claiming(shortage());
  return not_claiming_.empty();
}

std::string Node::shortage() {
  if (draining_) return "it is draining (" + stop_.reason() + ")";
  std::uint64_t free = 0;
  std::string where = "work_dir";
  try {
    free = scratch_.free_bytes();
    // What could not be published in the end is not begun.
    if (!archive_trouble_.empty()) return archive_trouble_;
    if (archive_free_ < free) {
      free = archive_free_;
      where = "archive.root";
    }
  } catch (const base::Error& error) {
    return error.what();
  }
  if (free < options_.minimum_free_bytes)
    return "only " + base::format_size(free) + " free in " + where + ", disk.minimum_free is " +
           base::format_size(options_.minimum_free_bytes);
  if (options_.minimum_free_memory_bytes > 0) {
    const auto memory = available_memory();
    if (memory && *memory < options_.minimum_free_memory_bytes)
      return "only " + base::format_size(*memory) + " of memory left, memory.minimum_free is " +
             base::format_size(options_.minimum_free_memory_bytes);
  }
  if (options_.maximum_load > 0) {
    const double load = load_per_processor();
    if (load > static_cast<double>(options_.maximum_load))
      return fmt::format("the load of the last minute is {:.1f} for each processor, load.maximum is {}", load,
                         options_.maximum_load);
  }
  return {};
}

awaitable<bool> Node::is_done() {
  if (!done_) co_return false;
  bool done = false;
  try {
    done = co_await pool_->run([this](pg::Connection& connection) { return done_(connection); });
  } catch (const base::Error& error) {
    if (error.error_class() != base::ErrorClass::temporary) throw;
  }
  co_return done;
}

awaitable<void> Node::claim_loop() {
  auto checked = std::chrono::steady_clock::time_point{};
  auto purged = std::chrono::steady_clock::time_point{}; // the first look is at once
  while (!fenced_ && !draining_) {
    bool claimed = false;
    std::string problem;
    std::optional<std::chrono::milliseconds> next; // until something that waits will be due
    co_await look_at_archive();
    const bool has_room = this->has_room();
    try {
      if (has_room) {
        claimed |= co_await claim_snapshots();
        if (options_.kind != "snapshot" && !fenced_ && !draining_) claimed |= co_await expand_crawl();
      }
      // A claim of snapshots gives up who is dead. Who makes none does that too, or it might be nobody.
      if (!has_room || options_.kind == "crawl" || jobs_.size() >= static_cast<std::size_t>(options_.slots))
        co_await database_->once([](pg::Connection& connection) { return store::lapse_nodes(connection); });
      if (done_ && !claimed && std::chrono::steady_clock::now() - checked >= kDoneCheck / 4) {
        checked = std::chrono::steady_clock::now();
        if (co_await is_done()) stop_.raise(base::Strength::drain, "done");
      }
      if (has_room && !claimed && jobs_.size() < static_cast<std::size_t>(options_.slots))
        next = co_await database_->once([](pg::Connection& connection) { return store::claim_wait(connection); });
    } catch (const base::Error& error) {
      if (error.error_class() == base::ErrorClass::lease_lost)
        fence(error.what());
      else if (error.error_class() != base::ErrorClass::temporary)
        throw;
      problem = error.what();
    }
    claiming_ = false;
    if (!problem.empty()) spdlog::debug("no claim: {}", problem);
    if (const auto now = std::chrono::steady_clock::now(); problem.empty() && now - purged > jittered(kPurgeEvery)) {
      purged = now;
      co_await purge();
    }
    if (claimed) continue;
    auto wait = options_.poll;
    if (done_) wait = std::min(wait, kDoneCheck);
    if (!has_room) wait = kRoomCheck;
    wait = jittered(wait);
    // What is due already although we found nothing is not for us: paused, or of a crawl that we have no room to open.
    if (next)
      wait = std::min(wait,
                      next->count() > 0 ? std::max(*next + std::chrono::milliseconds(1), kLeastWait) : kDueElsewhere);
    co_await sleep_until_woken(wait);
  }
}

// A node that drains makes no claims, but all there are may drain.
awaitable<void> Node::give_up_the_dead() {
  std::string problem;
  try {
    co_await database_->once([](pg::Connection& connection) { return store::lapse_nodes(connection); });
  } catch (const base::Error& error) {
    problem = error.what(); // another round
  }
  if (!problem.empty()) spdlog::debug("nobody given up: {}", problem);
}

// How the archive is, as far as can be told soon: a directory whose server is away (NFS) keeps who asks for as long as
// that lasts, and this thread waits for nothing. A store is asked only while it is away, so that a node that does
// nothing else hears that it is back.
awaitable<void> Node::look_at_archive() {
  const auto* bucket = archive_root_->bucket();
  const auto now = std::chrono::steady_clock::now();
  if (!looking_ && (bucket == nullptr || (!bucket->trouble().empty() && now - looked_ >= kRoomCheck / 2))) {
    looking_ = true;
    looked_ = now;
    ++spawned_;
    asio::co_spawn(io_, ask_archive(), [this](std::exception_ptr) { --spawned_; });
  }
  if (bucket != nullptr) {
    const auto trouble = bucket->trouble();
    archive_trouble_ = trouble.empty() ? "" : "the object store does not answer (" + trouble + ")";
    co_return;
  }
  look_timer_.expires_after(kArchivePatience);
  if (looking_) co_await look_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  if (looking_) archive_trouble_ = "the archive " + options_.archive_root.string() + " does not answer";
}

awaitable<void> Node::ask_archive() {
  std::string trouble;
  std::uint64_t free = archive_free_;
  co_await on_thread(looks_, [&] {
    try {
      archive_root_->check();
      free = archive_root_->free_bytes();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  });
  if (archive_root_->bucket() != nullptr && !trouble.empty()) spdlog::debug("still no object store: {}", trouble);
  archive_trouble_ = trouble;
  archive_free_ = free;
  looking_ = false;
  look_timer_.cancel();
}

// Deletes files of removed snapshots and writes pages of crawls anew, where no runner does. Every node has the archive;
// a runner may not have it.
awaitable<void> Node::purge() {
  std::string problem;
  try {
    const auto directories = co_await database_->once(
        [](pg::Connection& connection) { return store::purge_waiting(connection, kPurgeBatch, kPurgeAge); });
    std::vector<std::string> gone;
    co_await on_thread(files_, [&] {
      if (!directories.empty()) archive_root_->check();
      for (const auto& directory : directories) {
        try {
          archive::remove_snapshot(*archive_root_, directory);
          gone.push_back(directory);
        } catch (const base::Error& error) {
          spdlog::debug("not deleted: {}", error.what()); // a runner says it once
        }
      }
    });
    if (!gone.empty()) {
      co_await database_->once([&](pg::Connection& connection) { store::purge_done(connection, gone); });
      spdlog::info("deleted the files of {} removed snapshots", gone.size());
    }
    co_await pool_->run(
        [this](pg::Connection& connection) { refresh_crawl_pages(connection, *archive_root_, kPurgeAge); });
  } catch (const base::Error& error) {
    problem = error.what(); // another round, or another node, does it
  }
  if (!problem.empty()) spdlog::debug("nothing deleted: {}", problem);
}

// Turns the seeds of one due crawl into snapshots; false if there was none.
awaitable<bool> Node::expand_crawl() {
  // We expand one crawl at a time, so what we own now is what we were given and do not know of.
  if (crawl_in_doubt_)
    co_await database_->repeat([this](pg::Connection& connection) { store::crawl_hand_back(connection, process_.id); });
  crawl_in_doubt_ = true;
  const auto lease = co_await database_->once([this](pg::Connection& connection) {
    const auto claim = store::crawl_claim(connection, process_.id, options_.lease);
    if (claim) base::test_point("after_crawl_claim");
    return claim;
  });
  bool more = lease.has_value();
  while (more) {
    store::Expansion expansion;
    bool taken_away = false;
    try {
      expansion = co_await database_->repeat([&](pg::Connection& connection) {
        base::test_point("before_expand");
        const auto answer = store::crawl_expand(connection, process_.id, *lease, kExpandBatch);
        base::test_point("after_expand");
        return answer;
      });
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::lease_lost) throw;
      taken_away = true; // somebody has paused it, say; if it is we who were given up, the next claim says so
    }
    if (taken_away) co_return true;
    if (expansion.status == "sealed") co_await make_crawl_page(lease->crawl_id);
    more = expansion.seeds_left > 0;
    if (more && fenced_) co_return true;
    if (more && draining_) { // others need not wait until we have left
      co_await database_->repeat(
          [this](pg::Connection& connection) { store::crawl_hand_back(connection, process_.id); });
      break;
    }
    // A crawl of a million seeds must not keep our slots empty until all of them are in.
    if (more) co_await claim_snapshots();
  }
  crawl_in_doubt_ = false;
  co_return lease.has_value();
}

awaitable<bool> Node::claim_snapshots() {
  const int room = options_.slots - static_cast<int>(jobs_.size());
  if (room <= 0 || options_.kind == "crawl") co_return false;
  std::set<std::string> crawls;
  for (auto& crawl : sessions_->open())
    crawls.insert(std::move(crawl));
  // With as many browsers open as there may be, what would need another is left to other nodes.
  const bool full = sessions_->full();
  if (full || sessions_->open().empty())
    for (const auto& [id, job] : jobs_)
      crawls.insert(job->lease().crawl_id);
  claiming_ = true;
  const std::vector<std::string> near(crawls.begin(), crawls.end());
  const int opens = options_.kind == "snapshot" ? 0 : kOpenSeeds;
  const auto claims = co_await database_->once([&](pg::Connection& connection) {
    const auto answer = store::work_take(connection, process_.id, room, near, full, options_.claim_order, opens);
    if (!answer.empty()) base::test_point("after_claim");
    return answer;
  });
  for (const auto& claim : claims) {
    const auto& [id, crawl, fence] = claim.lease;
    for (auto older = jobs_.lower_bound({id, 0}); older != jobs_.end() && older->first.first == id; ++older)
      older->second->lose("it was taken away and has come back as a" + std::to_string(fence));
    auto job = std::make_shared<SnapshotJob>(*context_, claim);
    jobs_[{id, fence}] = job;
    asio::co_spawn(io_, run_job(std::move(job)), asio::detached);
  }
  claiming_ = false;
  if (!claims.empty()) {
    base::count("holdfast_node_claims_total");
    for (const auto& claim : claims)
      if (claim.owners_lost > 0) base::count("holdfast_node_takeovers_total");
    base::count("holdfast_node_snapshots_claimed_total", {}, static_cast<double>(claims.size()));
  }
  if (!claims.empty()) publish_held();
  co_return !claims.empty();
}

awaitable<void> Node::run_job(std::shared_ptr<SnapshotJob> job) {
  if (fenced_)
    job->lose("this node is no longer trusted");
  else if (stop_.strength() >= base::Strength::stop)
    job->interrupt("its node was stopped");
  const auto ending = co_await job->run();
  if (ending == SnapshotJob::Ending::sealed) ++sealed_;
  if (ending == SnapshotJob::Ending::lost) base::count("holdfast_node_lease_losses_total");
  if (job->sealed_crawl()) {
    sessions_->crawl_over(job->lease().crawl_id, "its crawl is sealed");
    co_await make_crawl_page(job->lease().crawl_id);
  }
  jobs_.erase({job->lease().snapshot_id, job->lease().fence});
  publish_held();
  wake();
}

awaitable<void> Node::make_crawl_page(std::string crawl_id) {
  std::string problem;
  try {
    co_await pool_->run([&](pg::Connection& connection) {
      refresh_crawl_pages(connection, *archive_root_, std::chrono::milliseconds(0), crawl_id);
    });
  } catch (const base::Error& error) {
    problem = error.what(); // it stays marked; a runner or another round makes it
  }
  const base::LogAbout about({crawl_id, "", 0, "", ""});
  if (!problem.empty()) spdlog::warn("no page for crawl {}: {}", crawl_id, problem);
}

} // namespace holdfast::worker
