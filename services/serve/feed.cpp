#include "services/serve/feed.hpp"

#include "lib/base/error.hpp"
#include "lib/store/live.hpp"
#include "lib/store/token.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace holdfast::serve {

namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 1000ms;
constexpr int kRest = 3;                   // times as long as it has worked
constexpr auto kStale = 5s;                // states are read again by then, though no event came
constexpr auto kChecked = 3s;              // so that a revoked token sees nothing new after 5 s
constexpr int kQuiet = 3;                  // looks until no event can become visible late
constexpr std::int64_t kBehind = 100;      // events that may become visible after later ones
constexpr std::int64_t kMostEvents = 1000; // of one look

template <class Pointers>
void erase_expired(Pointers& pointers) {
  std::erase_if(pointers, [](const auto& one) { return one.expired(); });
}

} // namespace

std::string event_message(const std::string& event, const std::string& data, const std::string& id) {
  return (id.empty() ? "" : "id: " + id + "\n") + "event: " + event + "\ndata: " + data + "\n\n";
}

Feed::~Feed() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const auto& one : watchers_)
      if (const auto watch = one.lock()) watch->close();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Watch> Feed::admit(const std::string& token) {
  erase_expired(watchers_);
  if (stop_ || watchers_.size() >= kMostWatchers) return nullptr;
  auto watch = std::make_shared<Watch>(token);
  watchers_.push_back(watch);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  news_ = true;
  changed_.notify_all();
  return watch;
}

std::shared_ptr<Watch> Feed::watch_state(const std::string& token, const std::string& topic, const std::string& event,
                                         Read read) {
  const std::lock_guard lock(mutex_);
  auto watch = admit(token);
  if (!watch) return nullptr;
  auto& entry = topics_[topic];
  if (!entry) entry = std::make_shared<Topic>(Topic{event, "", std::move(read), {}, {}, {}});
  entry->fresh.push_back(watch);
  return watch;
}

std::shared_ptr<Watch> Feed::watch_events(const std::string& token, const std::string& crawl,
                                          std::optional<std::int64_t> after, const std::string& topic, Read read) {
  const std::lock_guard lock(mutex_);
  auto watch = admit(token);
  if (!watch) return nullptr;
  listeners_.push_back(std::make_shared<Listener>(Listener{watch, crawl, after}));
  if (read) {
    auto& entry = topics_[topic];
    if (!entry) entry = std::make_shared<Topic>(Topic{"progress", "", std::move(read), {}, {}, {}});
    entry->fresh.push_back(watch);
  }
  return watch;
}

std::shared_ptr<Watch> Feed::watch_token(const std::string& token) {
  const std::lock_guard lock(mutex_);
  return admit(token);
}

bool Feed::forget_the_gone() {
  const std::lock_guard lock(mutex_);
  erase_expired(watchers_);
  for (auto& [name, topic] : topics_) {
    erase_expired(topic->watchers);
    erase_expired(topic->fresh);
  }
  std::erase_if(topics_, [](const auto& one) { return one.second->watchers.empty() && one.second->fresh.empty(); });
  std::erase_if(listeners_, [](const auto& one) { return one->watch.expired(); });
  return !watchers_.empty();
}

void Feed::run() {
  std::unique_ptr<pg::Connection> connection;
  auto rest = Clock::duration(kTick);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      // New watchers are served soon, several at once.
      changed_.wait_for(lock, watchers_.empty() ? Clock::duration(1h) : rest, [&] { return stop_ || news_; });
      if (stop_) return;
      if (news_) changed_.wait_for(lock, 50ms, [&] { return stop_; });
      news_ = false;
    }
    if (!forget_the_gone()) {
      connection.reset();
      last_ = -1;
      recent_.clear();
      continue;
    }
    const auto begin = Clock::now();
    try {
      if (!connection) {
        pg::ConnectionOptions options;
        options.application_name = "holdfast serve feed";
        options.read_only = true;
        options.statement_timeout = 10s;
        connection = std::make_unique<pg::Connection>(dsn_, options);
      }
      look(*connection);
    } catch (const std::exception& error) {
      spdlog::debug("feed: {}", error.what());
      connection.reset(); // tries again
    }
    rest = std::max<Clock::duration>(kTick, kRest * (Clock::now() - begin));
  }
}

void Feed::close_invalid(pg::Connection& connection) {
  std::map<std::string, std::vector<std::shared_ptr<Watch>>> of_token;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : watchers_)
      if (auto watch = one.lock(); watch && !watch->token().empty())
        of_token[watch->token()].push_back(std::move(watch));
  }
  std::vector<std::string> names;
  for (const auto& [name, watches] : of_token)
    names.push_back(name);
  const auto valid = names.empty() ? std::set<std::string>() : store::tokens_valid(connection, names);
  for (const auto& [name, watches] : of_token)
    if (!valid.contains(name))
      for (const auto& watch : watches)
        watch->close();
  checked_at_ = Clock::now();
}

void Feed::look(pg::Connection& connection) {
  if (Clock::now() - checked_at_ >= kChecked) close_invalid(connection);
  const auto newest = store::last_event(connection);
  const bool news = newest != last_;
  quiet_ = news ? 0 : quiet_ + 1;
  // After a failover to an asynchronous standby, the last events are lost and their ids are given again.
  if (newest < last_) recent_.clear();
  if (last_ < 0 || newest < last_) last_ = newest;
  send_events(connection, newest);
  send_states(connection, news);
}

void Feed::catch_up(pg::Connection& connection, Listener& listener) {
  const auto watch = listener.watch.lock();
  if (!watch) return;
  std::string all; // as one message: a client may not take many at once
  for (const auto event : store::events_after(connection, *listener.after, kMostEvents, listener.crawl))
    if (event.integer("id") <= last_) all += event_message("change", event.text("json"), event.text("id"));
  if (!all.empty()) watch->push(std::make_shared<const std::string>(std::move(all)));
}

void Feed::send_events(pg::Connection& connection, std::int64_t newest) {
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    const std::lock_guard lock(mutex_);
    listeners = listeners_;
  }
  if (listeners.empty()) {
    last_ = newest;
    recent_.clear();
    return;
  }
  for (const auto& listener : listeners)
    if (listener->after) {
      catch_up(connection, *listener);
      listener->after.reset();
    }
  if (quiet_ > kQuiet) return;
  const auto seen = last_;
  std::map<std::string, std::string> of_crawl; // by crawl; "": all
  std::set<std::int64_t> now;
  for (const auto event : store::events_after(connection, std::max<std::int64_t>(seen - kBehind, 0), kMostEvents, "")) {
    const auto id = event.integer("id");
    now.insert(id);
    last_ = std::max(last_, id);
    if (recent_.contains(id) || (recent_.empty() && id <= seen)) continue;
    const auto message = event_message("change", event.text("json"), event.text("id"));
    of_crawl[""] += message;
    if (!event.is_null("crawl_id")) of_crawl[event.text("crawl_id")] += message;
  }
  recent_ = std::move(now);
  std::map<std::string, Watch::Message> shared;
  for (auto& [crawl, text] : of_crawl)
    shared[crawl] = std::make_shared<const std::string>(std::move(text));
  for (const auto& listener : listeners)
    if (const auto found = shared.find(listener->crawl); found != shared.end())
      if (const auto watch = listener->watch.lock()) watch->push(found->second);
}

void Feed::send_states(pg::Connection& connection, bool news) {
  std::vector<std::pair<std::shared_ptr<Topic>, bool>> topics; // and whether a new client waits for it
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, topic] : topics_)
      topics.emplace_back(topic, !topic->fresh.empty());
  }
  for (const auto& [topic, wanted] : topics) {
    // The data that a new client has just loaded may be newer than the last state.
    const bool due = news || wanted || topic->read_at == Clock::time_point() || Clock::now() - topic->read_at > kStale;
    if (!due) continue;
    const auto state = topic->read(connection);
    topic->read_at = Clock::now();
    const auto message = std::make_shared<const std::string>(event_message(topic->event, state));
    const std::lock_guard lock(mutex_);
    if (state != topic->last)
      for (const auto& one : topic->watchers)
        if (const auto watch = one.lock()) watch->push(message);
    for (const auto& one : topic->fresh) {
      if (const auto watch = one.lock()) watch->push(message);
      topic->watchers.push_back(one);
    }
    topic->fresh.clear();
    topic->last = state;
  }
}

} // namespace holdfast::serve
