#include "lib/pg/hosts.hpp"

#include "lib/base/file.hpp"
#include "lib/pg/conninfo.hpp"
#include "lib/pg/session.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

namespace holdfast::pg {

namespace {

struct LastHosts {
  std::mutex mutex;
  std::map<std::string, std::size_t> last; // connection string -> place of the host in it

  static LastHosts& instance() {
    static LastHosts hosts;
    return hosts;
  }

  std::size_t of(const std::string& dsn) {
    const std::lock_guard lock(mutex);
    const auto found = last.find(dsn);
    return found == last.end() ? 0 : found->second;
  }
};

// "a,,b" has three parts: an empty host is the default one.
std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= text.size() && !text.empty();) {
    const auto end = std::min(text.find(',', begin), text.size());
    all.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

constexpr std::chrono::milliseconds kBetweenLooks{3000};
constexpr std::chrono::milliseconds kTimeout{2000};

} // namespace

std::vector<Host> hosts_of(const std::string& dsn) {
  if (dsn.find(',') == std::string::npos) return {};
  auto values = parse_conninfo(dsn);
  if (values["target_session_attrs"] == "prefer-standby") return {};
  const auto names = parts(values["host"]), addresses = parts(values["hostaddr"]), ports = parts(values["port"]);
  const auto count = std::max(names.size(), addresses.size());
  if (count < 2) return {};
  const auto one = [](const std::vector<std::string>& list, std::size_t at) {
    return at < list.size() ? list[at] : std::string();
  };
  std::vector<Host> hosts;
  for (std::size_t at = 0; at < count; ++at)
    hosts.push_back({at, one(names, at), one(addresses, at), one(ports, ports.size() == 1 ? 0 : at)});
  return hosts;
}

std::vector<Host> hosts_to_try(const std::string& dsn) {
  auto hosts = hosts_of(dsn);
  const auto last = LastHosts::instance().of(dsn);
  if (last < hosts.size()) std::rotate(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(last), hosts.end());
  return hosts;
}

std::string with_host(const std::string& dsn, const Host& host) {
  auto values = parse_conninfo(dsn);
  if (values.contains("host")) values["host"] = host.name;
  if (values.contains("hostaddr")) values["hostaddr"] = host.address;
  if (values.contains("port")) values["port"] = host.port;
  values.try_emplace("target_session_attrs", "read-write");
  return join_conninfo(values);
}

void connected_to(const std::string& dsn, const Host& host) {
  auto& all = LastHosts::instance();
  const std::lock_guard lock(all.mutex);
  all.last[dsn] = host.place;
}

std::vector<std::string> other_hosts(const std::string& dsn) {
  const auto last = LastHosts::instance().of(dsn);
  std::vector<std::string> others;
  for (const auto& host : hosts_of(dsn))
    if (host.place != last) others.push_back(with_host(dsn, host) + "target_session_attrs=any");
  return others;
}

struct HostWatch::Impl {
  Impl(std::string dsn_in, const std::string& label, std::function<void()> superseded_in)
      : dsn(std::move(dsn_in)), superseded(std::move(superseded_in)) {
    options.application_name = label + " watch";
    options.connect_timeout = options.statement_timeout = options.answer_timeout = kTimeout;
    options.lock_timeout = kTimeout;
    thread = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    halt.notify_all();
    thread.join();
  }

  void run() {
    pthread_setname_np(pthread_self(), "hf-hosts");
    while (!stopped_after(kBetweenLooks)) {
      for (const auto& other : other_hosts(dsn)) {
        if (stopped_after({})) return;
        const auto timeline = look_at_server(other, options);
        if (timeline && timeline->news) superseded();
      }
    }
  }

  bool stopped_after(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex);
    return halt.wait_for(lock, pause, [this] { return stopping; });
  }

  const std::string dsn;
  const std::function<void()> superseded;
  ConnectionOptions options;
  std::mutex mutex;
  std::condition_variable halt;
  bool stopping{false};
  std::thread thread; // last: it uses everything above
};

HostWatch::HostWatch(const std::string& dsn, const std::string& label, std::function<void()> superseded) {
  if (hosts_of(dsn).size() > 1) impl_ = std::make_unique<Impl>(dsn, label, std::move(superseded));
}

HostWatch::~HostWatch() = default;

namespace {

constexpr std::size_t kMostBytes = 4096; // of the file: a line for each system

using Counter = std::shared_ptr<std::atomic<std::uint32_t>>;

class Timelines {
public:
  static Timelines& instance() {
    static Timelines timelines;
    return timelines;
  }

  void remember(const std::filesystem::path& file) {
    const std::lock_guard lock(mutex_);
    file_ = file;
    stored_ = false;
    store();
  }

  SessionTimeline see(const std::string& system, std::uint32_t timeline) {
    const std::lock_guard lock(mutex_);
    const bool raised = raise(system, timeline);
    stored_ = stored_ && !raised;
    if (!stored_) store();
    return {timeline, raised, newest_.at(system)};
  }

  std::filesystem::path file() {
    const std::lock_guard lock(mutex_);
    return file_;
  }

private:
  bool raise(const std::string& system, std::uint32_t timeline) {
    auto& newest = newest_[system];
    if (!newest) newest = std::make_shared<std::atomic<std::uint32_t>>(0);
    if (newest->load() >= timeline) return false;
    newest->store(timeline);
    return true;
  }

  // Merges the file with the timelines known now, under the file's lock. Failures are ignored: the process itself
  // remembers.
  void store() {
    if (file_.empty()) return;
    const base::Fd file(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file || ::flock(file.get(), LOCK_EX) != 0) return;
    std::array<char, kMostBytes> bytes{};
    const auto size = ::pread(file.get(), bytes.data(), bytes.size(), 0);
    std::istringstream lines(std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
    std::string system;
    for (std::uint32_t timeline = 0; lines >> system >> timeline;)
      raise(system, timeline);
    std::string text;
    for (const auto& [name, newest] : newest_)
      text += name + ' ' + std::to_string(newest->load()) + '\n';
    stored_ = ::pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
              ::ftruncate(file.get(), static_cast<off_t>(text.size())) == 0 && ::fdatasync(file.get()) == 0;
  }

  std::mutex mutex_;
  std::map<std::string, Counter> newest_; // by system identifier
  std::filesystem::path file_;
  bool stored_{false};
};

} // namespace

void remember_timelines(const std::filesystem::path& file) { Timelines::instance().remember(file); }

SessionTimeline see_timeline(const std::string& system, std::uint32_t timeline) {
  return Timelines::instance().see(system, timeline);
}

std::filesystem::path timelines_file() { return Timelines::instance().file(); }

} // namespace holdfast::pg
