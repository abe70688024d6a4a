#pragma once
// A conversation with the crawl's browser in Chromium's DevTools protocol, through the socket of the browser hook (see
// browser_host.hpp). Messages are JSON texts that end with a NUL. Used from one thread; the destructor ends the
// conversation, and the host then closes what it had opened.

#include "lib/base/text/json.hpp"
#include "services/capture/hook.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace holdfast::capture {

using base::text_at;

// The page was replaced by another one before it had answered.
struct Replaced : Ending {};
// The browser did not answer in time: a script of the page keeps it busy.
struct Silent : Ending {};

class DevTools {
public:
  using Reply = std::function<void(Json result, const std::string& error)>; // error: empty if it worked
  using Event = std::function<void(const std::string& method, const Json& parameters, const std::string& session)>;

  // `socket`: the path of the host's socket. Throws Ending(skipped) if there is no browser.
  explicit DevTools(const std::filesystem::path& socket);
  explicit DevTools(int connected) : socket_(connected) {}
  ~DevTools();
  DevTools(const DevTools&) = delete;
  DevTools& operator=(const DevTools&) = delete;

  void on_event(Event event) { event_ = std::move(event); }

  // Sends a command; `reply` is called from pump().
  void send(const std::string& method, Json parameters, const std::string& session, Reply reply = {});
  // Sends a command whose answer is put there when it comes; shared, because that may be after the wait is over.
  struct Answer {
    bool there{false};
    Json result;
    std::string error;
  };
  std::shared_ptr<Answer> ask(const std::string& method, Json parameters, const std::string& session);
  // Sends a command and waits. Throws Replaced, Silent if there is no answer by `until`, and Ending(failed): refused,
  // the browser has ended.
  Json call(const std::string& method, Json parameters, const std::string& session, Clock::time_point until);
  // The value of an expression in a page, or of what its promise brings; null if it has failed. `world`: of the page's
  // isolated ones; 0: that of its scripts. Throws as call().
  Json evaluate(const std::string& expression, const std::string& session, Clock::time_point until, int world = 0);
  // An empty page in a browser context: its target. `more`: further parameters. Throws as call().
  std::string open_page(const std::string& context, Clock::time_point until, const Json& more = Json::object());
  // A session of a target. Throws as call().
  std::string attach_to(const std::string& target, Clock::time_point until);

  // Takes messages of the browser until done() or until the time is up; returns true if done. Throws Ending(failed) if
  // the browser has ended.
  bool pump(Clock::time_point until, const std::function<bool()>& done);

  // Also waits in pump() for data to read there; negative: no more.
  void also(int descriptor, std::function<void()> readable) {
    other_ = descriptor;
    other_readable_ = std::move(readable);
  }

private:
  void read_some();
  void take(std::string_view text);

  int socket_{-1}, other_{-1};
  int last_id_{0};
  std::string buffer_;
  std::unordered_map<int, Reply> replies_;
  Event event_;
  std::function<void()> other_readable_;
};

} // namespace holdfast::capture
