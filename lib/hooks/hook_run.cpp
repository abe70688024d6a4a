#include "lib/hooks/hook_run.hpp"

#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/shell.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/directory_meter.hpp"
#include "lib/hooks/outcome.hpp"
#include "lib/hooks/text.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <optional>
#include <system_error>

namespace holdfast::hooks {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

// The contract polls each 50 ms; young hooks are looked at more often, because most readiness comes early.
constexpr std::array<milliseconds, 4> kPolls{milliseconds(5), milliseconds(10), milliseconds(20), milliseconds(50)};
constexpr milliseconds kPollForReadiness{10}; // a caller waits for the first line
constexpr milliseconds kMeasureEvery{1000};
constexpr int kStillShare = 10; // one part in so many of the time that a hook may stand still is not worth a word
constexpr int kBusyShare = 50;  // one part in so many of a processor's time
constexpr std::size_t kEntriesAtOnce = 500;
constexpr std::size_t kReadAtOnce = 1u << 20; // then other coroutines have their turn
constexpr std::uint64_t kLargestUrlsFile = 64u << 20;
constexpr std::size_t kStderrTail = 64u << 10;

class File {
public:
  File() = default;
  explicit File(int descriptor) : fd_(descriptor) {}

  // Never follows a link: the directory belongs to the hook, and what it puts there is not trusted.
  static File open(const fs::path& path, int flags, mode_t mode = 0) {
    return File(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode));
  }

  bool is_open() const { return static_cast<bool>(fd_); }
  int get() const { return fd_.get(); }
  std::uint64_t size() const {
    struct stat status {};
    return is_open() && ::fstat(fd_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  bool regular() const {
    struct stat status {};
    return is_open() && ::fstat(fd_.get(), &status) == 0 && S_ISREG(status.st_mode);
  }
  std::string read_at(std::uint64_t offset, std::size_t most) const {
    std::string bytes(most, '\0');
    ssize_t count = 0;
    do {
      count = is_open() ? ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) : 0;
    } while (count < 0 && errno == EINTR);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
  bool write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

private:
  base::Fd fd_;
};

Error cannot_create(const fs::path& path, int error_number) {
  return Error(ErrorClass::cannot_create, "cannot create " + path.string() + ": " + base::errno_text(error_number),
               "check the owner of work_dir and the space left on it");
}

File create_log(const fs::path& path) {
  File log = File::open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
  if (!log.is_open()) throw cannot_create(path, errno);
  return log;
}

void remove_quietly(const fs::path& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
}

} // namespace

// Shared with its two coroutines, so that a HookRun may go away while its process is still being killed.
struct HookRun::Impl : std::enable_shared_from_this<HookRun::Impl> {
  Impl(process::Launcher& the_launcher, asio::any_io_executor the_executor, process::Command the_command,
       const Hook& the_hook, fs::path the_directory, HookLimits the_limits)
      : launcher(the_launcher), executor(std::move(the_executor)), command(std::move(the_command)), hook(the_hook),
        directory(std::move(the_directory)), limits(the_limits), tick(executor), meter(directory) {}

  // A coroutine that waits for something to happen: its timer is cancelled by notify().
  class Waiter {
  public:
    Waiter(Impl& impl, Clock::time_point deadline) : impl_(impl), timer_(impl.executor, deadline) {
      impl_.waiters.push_back(&timer_);
    }
    ~Waiter() { std::erase(impl_.waiters, &timer_); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    awaitable<void> wait() {
      boost::system::error_code ignored;
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }

  private:
    Impl& impl_;
    asio::steady_timer timer_;
  };

  void start();
  void write_script() const;
  void write_pid_file();
  void poll();
  bool read_stdout(); // true if there is more to read at once
  void take(std::vector<Record> records);
  void check_limits();
  void check_progress(const DirectoryState& state);
  void check_log_sizes();
  void hold_to(std::uint64_t size, std::uint64_t limit, const char* what);
  void notify();
  milliseconds next_poll();
  bool ended_by_stop(const process::Exit& exit) const;
  std::string stderr_tail() const;
  void note_excess(const process::Exit& exit);
  std::string failure_text(const process::Exit& exit) const;
  void settle_logs();
  static awaitable<void> follow(std::shared_ptr<Impl> self);
  static awaitable<void> supervise(std::shared_ptr<Impl> self);
  static awaitable<void> read_urls_file(std::shared_ptr<Impl> self);
  void conclude(process::Exit exit);

  bool stalls() const { return limits.stall.count() > 0 && !hook.name.background; }
  fs::path file(const char* suffix) const { return fs::path(prefix + suffix); }

  process::Launcher& launcher;
  asio::any_io_executor executor;
  process::Command command;
  const Hook hook; // a copy: the catalog may be replaced while we run
  const fs::path directory;
  const HookLimits limits;
  std::string prefix; // <directory>/<hook>.<32hex>

  std::unique_ptr<process::Child> child;
  Clock::time_point started{};
  std::chrono::system_clock::time_point started_wall{};
  std::optional<FilesBefore> before;
  File stdout_file, stderr_file;
  std::uint64_t stdout_read{0};
  RecordReader reader;
  std::optional<ResultRecord> result;
  std::size_t extra_results{0};
  DiscoveredUrls discovered;

  asio::steady_timer tick;
  std::size_t polls{0};
  DirectoryMeter meter;
  Clock::time_point next_measure{};
  // What the last look saw, and when one last saw that something had been printed, written or computed.
  DirectoryState seen_files;
  std::uint64_t seen_printed{0};
  std::chrono::microseconds seen_cpu{0};
  Clock::time_point looked{}, progressed{};
  bool more_stdout{false}, pid_written{false};
  std::vector<asio::steady_timer*> waiters;
  int waiting_for_readiness{0};

  bool exited{false}; // the process tree is gone
  bool ended{false};  // and the outcome is there
  bool interrupting{false}, polite{false}, stopped{false}, timed_out{false};
  std::string limit_error;
  HookOutcome outcome;
  std::exception_ptr failure;
};

void HookRun::Impl::start() {
  std::error_code error;
  // Another hook may have put something in its place that leads elsewhere.
  if (const auto there = fs::symlink_status(directory, error); fs::exists(there) && !fs::is_directory(there))
    fs::remove(directory, error);
  fs::create_directories(directory, error);
  if (error) throw cannot_create(directory, error.value());
  if (const auto& user = command.sandbox.user) (void)!::lchown(directory.c_str(), user->uid, user->gid);
  before.emplace(directory);
  prefix = (directory / (hook.name.name + "." + base::random_hex32())).string();
  command.directory = directory;
  command.stdout_path = file(".stdout.log");
  command.stderr_path = file(".stderr.log");
  command.limits = limits.process;
  write_script();
  // Made and held open before the hook can run: it may remove or replace the files without our losing what it printed.
  stdout_file = create_log(command.stdout_path);
  stderr_file = create_log(command.stderr_path);
  started = Clock::now();
  started_wall = std::chrono::system_clock::now();
  next_measure = started + kMeasureEvery;
  looked = progressed = started;
  if (stalls()) command.watch_cpu = kMeasureEvery;
  try {
    child = launcher.start(command);
  } catch (...) {
    for (const char* suffix : {".stdout.log", ".stderr.log", ".sh"})
      remove_quietly(file(suffix));
    throw;
  }
  write_pid_file();
  asio::co_spawn(executor, follow(shared_from_this()), asio::detached);
  asio::co_spawn(executor, supervise(shared_from_this()), asio::detached);
}

// For people who want to run the hook by hand. Arguments only: the environment may hold secrets.
void HookRun::Impl::write_script() const {
  std::string text = "#!/bin/sh\ncd " + base::shell_quoted(directory.string()) + " || exit 1\nexec";
  for (const std::string& argument : command.argv)
    text += " " + base::shell_quoted(argument);
  text += "\n";
  const File script = File::open(file(".sh"), O_WRONLY | O_CREAT | O_EXCL, 0755);
  if (!script.is_open() || !script.write_all(text)) {
    throw cannot_create(file(".sh"), errno);
  }
}

// Its time of modification is the start of the process, by which others tell the process from a later one with the same
// id.
void HookRun::Impl::write_pid_file() {
  const pid_t pid = child->pid();
  if (pid_written || pid <= 0) return;
  pid_written = true;
  const File pid_file = File::open(file(".pid"), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (!pid_file.is_open() || !pid_file.write_all(std::to_string(pid) + "\n")) return; // a help for others, not a need
  const auto since_epoch = started_wall.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  timespec when{};
  when.tv_sec = static_cast<time_t>(seconds.count());
  when.tv_nsec = static_cast<long>(std::chrono::nanoseconds(since_epoch - seconds).count());
  const std::array<timespec, 2> times{when, when};
  (void)::futimens(pid_file.get(), times.data());
}

void HookRun::Impl::notify() {
  for (asio::steady_timer* timer : waiters)
    timer->cancel();
}

void HookRun::Impl::take(std::vector<Record> records) {
  for (Record& record : records) {
    if (auto* claimed = std::get_if<ResultRecord>(&record)) {
      // The contract calls a second result an error of the hook. The last one is the hook's latest word; the others
      // count as ignored lines.
      if (result) ++extra_results;
      result = std::move(*claimed);
    } else if (auto* snapshot = std::get_if<SnapshotRecord>(&record)) {
      discovered.add(std::move(*snapshot));
    } else if (auto* tag = std::get_if<TagRecord>(&record)) {
      outcome.tags.push_back(std::move(tag->name));
    } else if (auto* binary = std::get_if<BinaryRecord>(&record)) {
      outcome.binaries.push_back(std::move(*binary));
    } else if (auto* machine = std::get_if<MachineRecord>(&record)) {
      outcome.machine_records.push_back(std::move(*machine));
    } else if (auto* rate_limit = std::get_if<RateLimitRecord>(&record)) {
      outcome.rate_limits.push_back(std::move(*rate_limit));
    } else if (auto* redirect = std::get_if<RedirectRecord>(&record)) {
      outcome.redirects.push_back(std::move(redirect->location));
    } else if (auto* response = std::get_if<ResponseRecord>(&record)) {
      outcome.response = std::move(*response);
    } else if (auto* unreachable = std::get_if<UnreachableRecord>(&record)) {
      outcome.unreachable = std::move(unreachable->reason);
    }
  }
}

bool HookRun::Impl::read_stdout() {
  if (stdout_file.size() < stdout_read) stdout_read = 0; // the hook has emptied its own log
  const std::uint64_t allowed = limits.stdout_bytes > stdout_read ? limits.stdout_bytes - stdout_read : 0;
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(kReadAtOnce, allowed));
  if (most == 0) return false;
  const std::uint64_t available = stdout_file.size() - stdout_read;
  if (available == 0) return false;
  const bool first = !reader.saw_output();
  const std::string bytes =
      stdout_file.read_at(stdout_read, static_cast<std::size_t>(std::min<std::uint64_t>(most, available)));
  if (bytes.empty()) return false;
  stdout_read += bytes.size();
  take(reader.feed(bytes));
  if (first) notify();
  return available > bytes.size();
}

void HookRun::Impl::hold_to(std::uint64_t size, std::uint64_t limit, const char* what) {
  if (size <= limit) return;
  if (limit_error.empty()) limit_error = std::string(what) + " exceeded " + base::format_size(limit);
  if (exited) return;
  child->terminate(limits.kill_grace);
  // A hook that goes on while it should be leaving could fill the disk within the grace.
  if (size / 2 > limit) child->kill();
}

void HookRun::Impl::check_log_sizes() {
  hold_to(stdout_file.size(), limits.stdout_bytes, "standard output");
  hold_to(stderr_file.size(), limits.stderr_bytes, "standard error");
}

void HookRun::Impl::check_limits() {
  check_log_sizes();
  const auto now = Clock::now();
  if (now >= next_measure) {
    if (const auto state = meter.step(kEntriesAtOnce)) {
      next_measure = now + kMeasureEvery;
      // Its logs lie there too, and have limits of their own.
      hold_to(state->bytes - std::min(state->bytes, stdout_file.size() + stderr_file.size()), limits.output_bytes,
              "output files");
      if (stalls()) check_progress(*state);
    }
  }
  if (!hook.name.background && !timed_out && !interrupting && !stopped && limit_error.empty() &&
      now - started >= limits.timeout) {
    timed_out = true;
    child->terminate(limits.kill_grace);
  }
}

// Counts the time from the last sign of progress to the beginning of the look that found none.
void HookRun::Impl::check_progress(const DirectoryState& state) {
  const auto began = meter.round_began();
  const std::uint64_t printed = stdout_file.size() + stderr_file.size();
  const auto cpu = child->cpu_time();
  const bool busy = (cpu - seen_cpu) * kBusyShare > began - looked; // less is what waiting costs
  const bool moved = busy || state != seen_files || printed != seen_printed;
  seen_files = state;
  seen_printed = printed;
  seen_cpu = cpu;
  looked = began;
  if (moved) {
    progressed = began;
    return;
  }
  if (began - progressed < limits.stall || timed_out || interrupting || stopped || exited || !limit_error.empty())
    return;
  limit_error = "made no progress for " + in_seconds(limits.stall);
  child->terminate(limits.kill_grace);
}

void HookRun::Impl::poll() {
  write_pid_file();
  more_stdout = read_stdout();
  check_limits();
}

milliseconds HookRun::Impl::next_poll() {
  milliseconds delay = kPolls[std::min(polls, kPolls.size() - 1)];
  ++polls;
  if (waiting_for_readiness > 0) delay = std::min(delay, kPollForReadiness);
  if (!hook.name.background && !timed_out) {
    const auto left = std::chrono::ceil<milliseconds>(started + limits.timeout - Clock::now());
    delay = std::clamp(left, milliseconds(0), delay);
  }
  return more_stdout ? milliseconds(0) : delay;
}

awaitable<void> HookRun::Impl::follow(std::shared_ptr<Impl> self) {
  while (!self->exited) {
    self->poll();
    self->tick.expires_after(self->next_poll());
    boost::system::error_code ignored;
    co_await self->tick.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

awaitable<void> HookRun::Impl::supervise(std::shared_ptr<Impl> self) {
  try {
    process::Exit exit = co_await self->child->wait();
    self->exited = true;
    self->tick.cancel();
    while (self->read_stdout())
      co_await asio::post(self->executor, asio::use_awaitable);
    self->take(self->reader.finish());
    // A hook that was quick may have passed a limit between two looks.
    self->check_log_sizes();
    co_await read_urls_file(self);
    self->conclude(std::move(exit));
  } catch (...) {
    self->exited = true;
    self->tick.cancel();
    self->failure = std::current_exception();
  }
  self->ended = true;
  self->notify();
}

// Parsers leave what they found in a file as well; some only there.
awaitable<void> HookRun::Impl::read_urls_file(std::shared_ptr<Impl> self) {
  const fs::path path = self->directory / "urls.jsonl";
  if (!self->before->changed(path)) co_return; // absent, or left by another hook
  const File urls = File::open(path, O_RDONLY | O_NONBLOCK);
  if (!urls.regular()) co_return;
  RecordReader urls_reader(RecordSource::urls_file);
  for (std::uint64_t offset = 0; offset < kLargestUrlsFile;) {
    const std::string bytes = urls.read_at(offset, kReadAtOnce);
    if (bytes.empty()) break;
    offset += bytes.size();
    self->take(urls_reader.feed(bytes));
    co_await asio::post(self->executor, asio::use_awaitable);
  }
  self->take(urls_reader.finish());
  self->outcome.ignored_lines += urls_reader.ignored_lines();
  self->outcome.dropped_lines += urls_reader.dropped_lines();
}

// It ended because we asked it to, while we were leaving, and not for a reason of its own.
bool HookRun::Impl::ended_by_stop(const process::Exit& exit) const {
  constexpr std::array<int, 4> kSignals{SIGHUP, SIGINT, SIGTERM, SIGKILL};
  constexpr std::array<int, 4> kCodes{0, 128 + SIGHUP, 128 + SIGINT, 128 + SIGTERM};
  if (exit.start_errno != 0) return false;
  if (exit.signal != 0) return std::find(kSignals.begin(), kSignals.end(), exit.signal) != kSignals.end();
  return std::find(kCodes.begin(), kCodes.end(), exit.code) != kCodes.end();
}

std::string HookRun::Impl::stderr_tail() const {
  const std::uint64_t size = stderr_file.size();
  return stderr_file.read_at(size > kStderrTail ? size - kStderrTail : 0, kStderrTail);
}

// Of the limits that the shim watches.
void HookRun::Impl::note_excess(const process::Exit& exit) {
  if (!limit_error.empty() || exit.exceeded == process::TreeLimit::none) return;
  if (exit.exceeded == process::TreeLimit::memory)
    limit_error = "memory exceeded " + base::format_size(limits.process.tree_memory_bytes.value_or(0));
  else
    limit_error = "had more than " + std::to_string(limits.process.tree_processes.value_or(0)) + " processes";
}

std::string HookRun::Impl::failure_text(const process::Exit& exit) const {
  if (!limit_error.empty()) return limit_error;
  if (timed_out) return "timed out after " + in_seconds(limits.timeout);
  if (exit.start_errno != 0) return exit.describe();
  if (result && result->status == Status::failed) {
    if (!result->error.empty()) return result->error;
    if (!result->output.empty()) return result->output;
  }
  const std::string line = telling_line(stderr_tail());
  return line.empty() ? exit.describe() : line + " (" + exit.describe() + ")";
}

// Kept only for a hook that failed, and then no longer than allowed.
void HookRun::Impl::settle_logs() {
  remove_quietly(file(".pid"));
  if (outcome.status != Status::failed || outcome.interrupted) {
    remove_quietly(command.stdout_path);
    remove_quietly(command.stderr_path);
    return;
  }
  const auto cut = [](const File& log, std::uint64_t limit) {
    if (log.size() > limit) (void)::ftruncate(log.get(), static_cast<off_t>(limit));
  };
  cut(stdout_file, limits.stdout_bytes);
  cut(stderr_file, limits.stderr_bytes);
  outcome.stdout_log = command.stdout_path;
  outcome.stderr_log = command.stderr_path;
}

void HookRun::Impl::conclude(process::Exit exit) {
  note_excess(exit);
  std::optional<std::string> file_left;
  if (!result) file_left = before->first_output(); // a record makes this unnecessary
  // To be interrupted is a polite end too, for a hook that had said what there is to say.
  const bool asked = polite || (interrupting && result);
  outcome.status = decide_status(exit, result, file_left.has_value(), asked, timed_out);
  if (!limit_error.empty()) outcome.status = Status::failed;
  outcome.timed_out = timed_out;
  outcome.interrupted = interrupting && !result && !timed_out && limit_error.empty() && ended_by_stop(exit);
  if (outcome.interrupted) outcome.status = Status::failed; // a caller that ignores the flag must not see a success
  if (result) {
    outcome.output = result->output;
    outcome.output_json = result->output_json;
  } else if (outcome.status == Status::succeeded && file_left) {
    outcome.output = clean_text(directory.filename().string() + "/" + *file_left, 4096, Lines::one);
  } else if (outcome.status == Status::skipped) {
    outcome.output = telling_line(stderr_tail());
  }
  if (outcome.interrupted) {
    outcome.error = "interrupted (" + exit.describe() + ")";
  } else if (outcome.status == Status::failed) {
    outcome.error = failure_text(exit);
  }
  outcome.discovered = discovered.take();
  outcome.ignored_lines += reader.ignored_lines() + extra_results;
  outcome.dropped_lines += reader.dropped_lines();
  outcome.exit = std::move(exit);
  settle_logs();
}

HookRun::HookRun(process::Launcher& launcher, asio::any_io_executor executor, process::Command command,
                 const Hook& hook, fs::path directory, HookLimits limits)
    : impl_(std::make_shared<Impl>(launcher, std::move(executor), std::move(command), hook, std::move(directory),
                                   limits)) {}

HookRun::~HookRun() {
  // The coroutines keep what they need until the tree is gone, and then clear away the runner files.
  if (impl_->child && !impl_->exited) impl_->child->kill();
}

void HookRun::start() {
  if (impl_->child) throw Error(ErrorClass::bug, "hook " + impl_->hook.name.name + " was started twice");
  impl_->start();
}

awaitable<bool> HookRun::ready(milliseconds limit) {
  const auto impl = impl_;
  const auto deadline = Clock::now() + limit;
  impl->tick.cancel(); // look again now, and from here on more often
  struct Counted {
    explicit Counted(int& the_count) : count(the_count) { ++count; }
    ~Counted() { --count; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    int& count;
  } const counted(impl->waiting_for_readiness);
  Impl::Waiter waiter(*impl, deadline);
  while (!impl->reader.saw_output() && !impl->ended && Clock::now() < deadline)
    co_await waiter.wait();
  if (impl->reader.saw_output()) co_return true;
  co_return impl->ended && !impl->failure && impl->outcome.exit.clean();
}

awaitable<HookOutcome> HookRun::finish() {
  const auto impl = impl_;
  if (!impl->child) throw Error(ErrorClass::bug, "hook " + impl->hook.name.name + " was not started");
  // No deadline of its own: a foreground hook has its timeout, a background hook the ladder that its owner starts.
  Impl::Waiter waiter(*impl, Clock::time_point::max());
  while (!impl->ended)
    co_await waiter.wait();
  if (impl->failure) std::rethrow_exception(impl->failure);
  co_return impl->outcome;
}

void HookRun::end(milliseconds grace, bool interrupting) {
  if (!impl_->child || impl_->exited) return;
  if (interrupting) {
    impl_->interrupting = true;
  } else if (impl_->hook.name.background) {
    impl_->polite = true;
  } else {
    impl_->stopped = true;
  }
  impl_->child->terminate(grace);
}

void HookRun::kill() {
  if (!impl_->child || impl_->exited) return;
  impl_->stopped = true;
  impl_->child->kill();
}

const Hook& HookRun::hook() const noexcept { return impl_->hook; }
Clock::time_point HookRun::started_at() const noexcept { return impl_->started; }
pid_t HookRun::pid() const noexcept { return impl_->child ? impl_->child->pid() : 0; }
milliseconds HookRun::timeout() const noexcept { return impl_->limits.timeout; }

Stillness HookRun::stillness() const noexcept {
  if (!impl_->stalls() || impl_->exited || Clock::now() - impl_->progressed < impl_->limits.stall / kStillShare)
    return {};
  return {impl_->progressed, impl_->limits.stall};
}

} // namespace holdfast::hooks
