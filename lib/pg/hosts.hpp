#pragma once
// The servers that a connection string names, if it names several (host=a,b port=1,2). The one that was last connected
// to is tried first, so that a frozen server costs one session its timeout and not each. Private to lib/pg. Any thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::pg {

struct Host {
  std::size_t place{0};            // in the string
  std::string name, address, port; // as `host`, `hostaddr` and `port` have it; each may be empty
};

// Returns the hosts of a connection string. Empty if it names one server, or none, or lets libpq choose
// (target_session_attrs=prefer-standby).
std::vector<Host> hosts_of(const std::string& dsn);
std::vector<Host> hosts_to_try(const std::string& dsn);
// Returns the string with this host alone. The server must be a primary, unless the string says otherwise.
std::string with_host(const std::string& dsn, const Host& host);

// A session with this one of the string's hosts was made.
void connected_to(const std::string& dsn, const Host& host);
// A string for each host but the one that was last connected to, primary or not.
std::vector<std::string> other_hosts(const std::string& dsn);

// Watches the other servers of a connection string that names several. A worker may hold sessions to an old primary
// that came back after a pause, and would not notice the promotion while they work. A check is a connection: the
// timeline seen there ends all sessions of this process with servers on earlier ones. One thread; the destructor joins
// it, after at most one attempt to connect. Without several hosts it does nothing.
class HostWatch {
public:
  // `superseded` is called on the watch's thread when a newer timeline was found.
  HostWatch(const std::string& dsn, const std::string& label, std::function<void()> superseded);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Distinguishes the primary from an old primary. All servers of a database with standbys share a system identifier; a
// standby that is promoted begins a new timeline, whose number is greater. This process remembers the greatest timeline
// of each system that it has seen. A session whose server is on an earlier one is superseded: the connection refuses to
// use it.
//
// Two standbys that are promoted at the same time may begin the same timeline; nothing here notices that.

// Shares seen timelines with earlier and later processes through `file`. A missing directory is not created: then only
// this process remembers. Any thread.
void remember_timelines(const std::filesystem::path& file);

// The server of one session. A standby, and a server without a timeline, has timeline 0 and is never superseded.
struct SessionTimeline {
  std::uint32_t own{0};
  bool news{false};                                         // the first session of this process that sees it
  std::shared_ptr<const std::atomic<std::uint32_t>> newest; // seen of its system

  bool superseded() const noexcept { return newest && own < newest->load(std::memory_order_relaxed); }
};

// Notes that a server of this system is on this timeline.
SessionTimeline see_timeline(const std::string& system, std::uint32_t timeline);

// The file in which timelines are remembered; empty if there is none. Any thread.
std::filesystem::path timelines_file();

} // namespace holdfast::pg
