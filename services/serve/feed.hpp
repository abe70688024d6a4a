#pragma once
// Sends changes to all watchers: one thread and one database session, used only while clients watch. It polls for new
// events once a second, and less often if a poll takes long: it works at most a quarter of the time, but for new
// clients, which are served at once. Each topic is read once for all of its clients. Owned by the site; the destructor
// closes all watchers and joins the thread.

#include "lib/pg/connection.hpp"
#include "services/serve/connections.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::serve {

class Feed {
public:
  static constexpr std::size_t kMostWatchers = 600;
  // The state of a topic as text without line ends.
  using Read = std::function<std::string(pg::Connection&)>;

  explicit Feed(std::string dsn) : dsn_(std::move(dsn)) {}
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Sends the state of a topic whenever it has changed, as messages of the type `event`. Null: there are too many.
  // `token`: by name; the watcher is closed at most 5 s after it has become invalid. Empty: of a guest.
  std::shared_ptr<Watch> watch_state(const std::string& token, const std::string& topic, const std::string& event,
                                     Read read);
  // Sends events of a crawl (empty: of all), those behind the id `after` first; and the state of a topic, if `read`.
  std::shared_ptr<Watch> watch_events(const std::string& token, const std::string& crawl,
                                      std::optional<std::int64_t> after, const std::string& topic, Read read);
  // Watches a token: nothing is sent, the watch is only closed, as above.
  std::shared_ptr<Watch> watch_token(const std::string& token);

private:
  using Clock = std::chrono::steady_clock;
  struct Topic {
    std::string event, last;
    Read read;
    Clock::time_point read_at{};
    std::vector<std::weak_ptr<Watch>> watchers, fresh; // fresh: have not been sent the last state
  };
  struct Listener {
    std::weak_ptr<Watch> watch;
    std::string crawl;
    std::optional<std::int64_t> after; // its first request
  };

  std::shared_ptr<Watch> admit(const std::string& token); // with mutex_
  void run();
  void look(pg::Connection& connection);
  void close_invalid(pg::Connection& connection);
  void send_events(pg::Connection& connection, std::int64_t newest);
  void catch_up(pg::Connection& connection, Listener& listener);
  void send_states(pg::Connection& connection, bool news);
  bool forget_the_gone(); // false: no client watches

  const std::string dsn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Topic>> topics_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::vector<std::weak_ptr<Watch>> watchers_;
  Clock::time_point checked_at_{}; // tokens
  bool stop_{false};
  bool news_{false};
  std::int64_t last_{-1};         // the highest event that was seen; -1: none yet
  std::set<std::int64_t> recent_; // those seen lately: an event may become visible after a later one
  int quiet_{0};                  // looks since the last news
  std::thread thread_;
};

std::string event_message(const std::string& event, const std::string& data, const std::string& id = {});

} // namespace holdfast::serve
