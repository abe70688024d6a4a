#include "lib/pg/hosts.hpp"

#include "lib/pg/conninfo.hpp"
#include "lib/pg/session.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
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

} // namespace holdfast::pg
