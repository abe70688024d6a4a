#include "lib/hooks/hook_run.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/time.hpp"
#include "lib/hooks/progress.hpp"
#include "lib/hooks/record_sink.hpp"
#include "lib/hooks/runner_files.hpp"
#include "lib/hooks/text.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>

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
constexpr std::size_t kEntriesAtOnce = 500;
constexpr std::size_t kReadAtOnce = 1u << 20; // then other coroutines have their turn
constexpr std::uint64_t kLargestUrlsFile = 64u << 20;

} // namespace

// State shared with its two coroutines, so that a HookRun may be destroyed while its process is still being killed.
struct HookRun::Impl : std::enable_shared_from_this<HookRun::Impl> {
  Impl(process::Launcher& the_launcher, asio::any_io_executor the_executor, process::Command the_command,
       const Hook& the_hook, fs::path the_directory, HookLimits the_limits)
      : launcher(the_launcher), executor(std::move(the_executor)), command(std::move(the_command)), hook(the_hook),
        directory(std::move(the_directory)), limits(the_limits), files(directory, hook.name.name), tick(executor),
        changed(executor, Clock::time_point::max()), meter(directory), temporary_meter(command.sandbox.temporary) {}

  void start();
  void poll();
  bool read_stdout(); // true if there is more to read at once
  void check_limits();
  void check_progress(const DirectoryState& state);
  void check_log_sizes();
  void hold_to(std::uint64_t size, std::uint64_t limit, const char* what);
  milliseconds next_poll();
  std::string failure_text(const process::Exit& exit) const;
  void settle_logs();
  static awaitable<void> change(std::shared_ptr<Impl> self);
  static awaitable<void> follow(std::shared_ptr<Impl> self);
  static awaitable<void> supervise(std::shared_ptr<Impl> self);
  static awaitable<void> read_urls_file(std::shared_ptr<Impl> self);
  void conclude(process::Exit exit);

  bool stalls() const { return limits.stall.count() > 0 && !hook.name.background; }

  process::Launcher& launcher;
  asio::any_io_executor executor;
  process::Command command;
  const Hook hook; // a copy: the plugin set may be replaced while we run
  const fs::path directory;
  const HookLimits limits;
  RunnerFiles files;
  std::shared_ptr<const std::string> started_with;

  std::unique_ptr<process::Child> child;
  Clock::time_point started{};
  std::chrono::system_clock::time_point started_wall{};
  std::optional<FilesBefore> before;
  std::uint64_t stdout_read{0};
  RecordReader reader;
  HookOutcome outcome;
  RecordSink records{outcome};

  asio::steady_timer tick, changed; // changed: never expires; cancel() wakes those who wait
  std::size_t polls{0};
  DirectoryMeter meter;
  DirectoryMeter temporary_meter; // of the /tmp that the page's hooks share
  Clock::time_point next_measure{}, next_measure_temporary{};
  Progress progress;
  bool more_stdout{false};
  int waiting_for_readiness{0};

  bool exited{false}; // the process tree has ended
  bool ended{false};  // and the outcome is there
  bool interrupting{false}, polite{false}, stopped{false}, timed_out{false};
  std::string limit_error;
  std::exception_ptr failure;
};

void HookRun::Impl::start() {
  base::remove_no_links(directory); // what another hook may have put in its place; a directory stays
  const auto opened = base::make_directories_no_links(directory);
  if (!opened) throw_cannot_create(directory, errno);
  if (const auto& user = command.sandbox.user) (void)!::fchown(opened.get(), user->uid, user->gid);
  before.emplace(directory);
  command.directory = directory;
  command.limits = limits.process;
  files.make(command);
  started = Clock::now();
  started_wall = std::chrono::system_clock::now();
  next_measure = started + kMeasureEvery;
  progress.start(started);
  if (stalls()) command.watch_cpu = kMeasureEvery;
  try {
    child = launcher.start(command);
  } catch (...) {
    files.remove();
    throw;
  }
  files.write_pid(child->pid(), started_wall);
  asio::co_spawn(executor, follow(shared_from_this()), asio::detached);
  asio::co_spawn(executor, supervise(shared_from_this()), asio::detached);
}

awaitable<void> HookRun::Impl::change(std::shared_ptr<Impl> self) {
  boost::system::error_code ignored;
  co_await self->changed.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

bool HookRun::Impl::read_stdout() {
  if (size_of(files.output()) < stdout_read) stdout_read = 0; // the hook has emptied its own log
  const std::uint64_t allowed = limits.stdout_bytes > stdout_read ? limits.stdout_bytes - stdout_read : 0;
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(kReadAtOnce, allowed));
  if (most == 0) return false;
  const std::uint64_t available = size_of(files.output()) - stdout_read;
  if (available == 0) return false;
  const bool first = !reader.saw_output();
  const std::string bytes =
      bytes_at(files.output(), stdout_read, static_cast<std::size_t>(std::min<std::uint64_t>(most, available)));
  if (bytes.empty()) return false;
  stdout_read += bytes.size();
  records.take(reader.feed(bytes));
  if (first) changed.cancel();
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
  hold_to(size_of(files.output()), limits.stdout_bytes, "standard output");
  hold_to(size_of(files.errors()), limits.stderr_bytes, "standard error");
}

void HookRun::Impl::check_limits() {
  check_log_sizes();
  const auto now = Clock::now();
  if (now >= next_measure) {
    if (const auto state = meter.step(kEntriesAtOnce)) {
      next_measure = now + kMeasureEvery;
      // Its logs are in the same directory, and have limits of their own.
      hold_to(state->bytes - std::min(state->bytes, files.printed()), limits.output_bytes, "output files");
      if (stalls()) check_progress(*state);
    }
  }
  // A browser that serves a whole crawl keeps its cache there.
  if (now >= next_measure_temporary && hook.name.event == Event::snapshot && !command.sandbox.temporary.empty()) {
    if (const auto state = temporary_meter.step(kEntriesAtOnce)) {
      next_measure_temporary = now + kMeasureEvery;
      hold_to(state->bytes, limits.output_bytes, "temporary files");
    }
  }
  if (!hook.name.background && !timed_out && !interrupting && !stopped && limit_error.empty() &&
      now - started >= limits.timeout) {
    timed_out = true;
    child->terminate(limits.kill_grace);
  }
}

void HookRun::Impl::check_progress(const DirectoryState& state) {
  progress.look(meter.round_began(), state, files.printed(), child->cpu_time());
  if (progress.stall() < limits.stall || timed_out || interrupting || stopped || exited || !limit_error.empty()) return;
  limit_error = "made no progress for " + in_seconds(limits.stall);
  child->terminate(limits.kill_grace);
}

void HookRun::Impl::poll() {
  files.write_pid(child->pid(), started_wall);
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
    if (self->waiting_for_readiness > 0) self->changed.cancel(); // one of them may have waited long enough
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
    self->records.take(self->reader.finish());
    // A hook that was quick may have passed a limit between two checks.
    self->check_log_sizes();
    co_await read_urls_file(self);
    self->conclude(exit);
  } catch (...) {
    self->exited = true;
    self->tick.cancel();
    self->failure = std::current_exception();
  }
  self->ended = true;
  self->changed.cancel();
}

// Parsers leave what they found in a file as well; some only there.
awaitable<void> HookRun::Impl::read_urls_file(std::shared_ptr<Impl> self) {
  const fs::path path = self->directory / "urls.jsonl";
  if (!self->before->changed(path)) co_return; // absent, or left by another hook
  const auto urls = base::open_no_links(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (::fstat(urls.get(), &status) != 0 || !S_ISREG(status.st_mode)) co_return;
  RecordReader urls_reader(RecordSource::urls_file);
  for (std::uint64_t offset = 0; offset < kLargestUrlsFile;) {
    const std::string bytes = bytes_at(urls, offset, kReadAtOnce);
    if (bytes.empty()) break;
    offset += bytes.size();
    self->records.take(urls_reader.feed(bytes));
    co_await asio::post(self->executor, asio::use_awaitable);
  }
  self->records.take(urls_reader.finish());
  self->records.count(urls_reader);
}

std::string HookRun::Impl::failure_text(const process::Exit& exit) const {
  if (!limit_error.empty()) return limit_error;
  if (timed_out) return "timed out after " + in_seconds(limits.timeout);
  if (exit.start_errno != 0) return exit.describe();
  const auto& result = records.result();
  if (result && result->status == Status::failed) {
    if (!result->error.empty()) return result->error;
    if (!result->output.empty()) return result->output;
  }
  const std::string line = telling_line(files.errors_tail());
  return line.empty() ? exit.describe() : line + " (" + exit.describe() + ")";
}

// Kept only for a hook that failed, and then no longer than allowed.
void HookRun::Impl::settle_logs() {
  const bool keep = outcome.status == Status::failed && !outcome.interrupted;
  files.settle(keep, limits.stdout_bytes, limits.stderr_bytes);
  if (!keep) return;
  outcome.stdout_log = command.stdout_path;
  outcome.stderr_log = command.stderr_path;
}

void HookRun::Impl::conclude(process::Exit exit) {
  if (limit_error.empty()) limit_error = describe_excess(exit, limits.process);
  const auto& result = records.result();
  std::optional<std::string> file_left;
  if (!result) file_left = before->first_output(); // a record makes this unnecessary
  // An interrupt is a polite end too, for a hook that had reported its result.
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
    outcome.output = telling_line(files.errors_tail());
  }
  if (outcome.interrupted) {
    outcome.error = "interrupted (" + exit.describe() + ")";
  } else if (outcome.status == Status::failed) {
    outcome.error = failure_text(exit);
  }
  records.finish();
  records.count(reader);
  if (const auto unread = records.unread(); !unread.empty())
    outcome.error += (outcome.error.empty() ? "" : "; ") + unread;
  outcome.exit = exit;
  settle_logs();
}

HookRun::HookRun(process::Launcher& launcher, asio::any_io_executor executor, process::Command command,
                 const Hook& hook, fs::path directory, HookLimits limits)
    : impl_(std::make_shared<Impl>(launcher, std::move(executor), std::move(command), hook, std::move(directory),
                                   limits)) {}

HookRun::~HookRun() {
  // The coroutines keep their state until the tree has ended, and then remove the runner's files.
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
  ++impl->waiting_for_readiness;
  while (!impl->reader.saw_output() && !impl->ended && Clock::now() < deadline)
    co_await Impl::change(impl);
  --impl->waiting_for_readiness;
  if (impl->reader.saw_output()) co_return true;
  co_return impl->ended && !impl->failure && impl->outcome.exit.clean();
}

awaitable<HookOutcome> HookRun::finish() {
  const auto impl = impl_;
  if (!impl->child) throw Error(ErrorClass::bug, "hook " + impl->hook.name.name + " was not started");
  // No deadline here: a foreground hook has its timeout, the owner of a background hook ends it.
  while (!impl->ended)
    co_await Impl::change(impl);
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

std::shared_ptr<const std::string> HookRun::started_with(const PluginSet& plugin_set) const {
  auto& text = impl_->started_with;
  if (!text)
    text = std::make_shared<const std::string>(hooks::started_with(plugin_set, impl_->command, impl_->directory));
  return text;
}

Stall HookRun::stall() const noexcept {
  if (!impl_->stalls() || impl_->exited || Clock::now() - impl_->progress.since() < impl_->limits.stall / kStillShare)
    return {};
  return {impl_->progress.since(), impl_->limits.stall};
}

} // namespace holdfast::hooks
