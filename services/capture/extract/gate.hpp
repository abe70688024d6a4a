#pragma once
// Stops requests of a page that would lead away from it, or that a press of the reader must not send (manners.hpp), and
// keeps what was stopped. Owned by Reading, used from its thread.

#include "services/capture/browser/devtools.hpp"
#include "services/capture/extract/manners.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace holdfast::capture {

class Gate {
public:
  explicit Gate(DevTools& browser) : browser_(browser) {}

  // Before the page is loaded: its main frame and host.
  void attach(const std::string& frame, const std::string& host);
  // From now on the main frame stays where it is.
  void hold() { holding_ = true; }
  bool holds() const { return holding_ || pressed_ != Pressed::nothing; }
  // Raises the limits: something of this kind is pressed next.
  void press(Pressed pressed) { pressed_ = std::max(pressed_, pressed); }
  Pressed pressed() const { return pressed_; }

  void take(const std::string& method, const Json& parameters);
  // Stops a request that waits in Fetch; returns true if it did. `ours`: the reader itself fetches files, also of sites
  // that the page has not asked.
  bool stop(const Json& paused, const std::string& session, bool ours);
  // Notes what before.js has stopped in a page.
  void note(const std::string& what, const std::string& url);

  std::size_t let() const { return let_.size(); } // different addresses that were asked
  std::size_t left() const { return left_; }      // how often the page would have led away
  std::size_t stopped() const { return stopped_; }
  const std::set<std::string>& led_to() const { return led_to_; }
  const Json& held() const { return held_; }
  // Names the press that has led to what was held since there were `since` of them.
  void name(std::size_t since, const std::string& press);

private:
  void hold_back(const std::string& what, const std::string& url, std::string_view why);
  void lead(const std::string& url);

  DevTools& browser_;
  std::string frame_, host_;
  Pressed pressed_{Pressed::nothing};
  std::set<std::string> known_hosts_, led_to_, let_; // known: those that the page has asked before the first press
  bool holding_{false};
  std::size_t left_{0}, stopped_{0};
  Json held_ = Json::array();
};

} // namespace holdfast::capture
