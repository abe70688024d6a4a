#pragma once
// Reads a loaded page as a patient user does: waits until it rests, accepts cookie dialogs, scrolls, presses controls
// that show more, tries others with the pointer, and fetches the files that it names. Its scripts are in reader/ (see
// reader.js); this class calls them step by step and waits between the steps for their effects. manners.hpp decides
// which requests a press may send. While it reads, the page stays where it is: navigations of its main frame are
// stopped and kept as links. Each step has a limit of its own, and reports why it ended. Owned by the tab, used from
// its thread.

#include "services/capture/browser/recorder.hpp"
#include "services/capture/extract/doubt.hpp"
#include "services/capture/extract/effort.hpp"
#include "services/capture/extract/frames.hpp"
#include "services/capture/extract/gate.hpp"

#include <string>
#include <vector>

namespace holdfast::capture {

class Reading {
public:
  Reading(DevTools& browser, Recorder& recorder, Effort effort, Clock::time_point give_up, Frames::Wait wait);

  // Before the page is loaded.
  void attach(const std::string& session, const std::string& frame, const std::string& host);
  void take(const std::string& method, const Json& parameters, const std::string& session);
  // Stops a request that would lead away from the page, or that a press must not send; returns true if it did.
  bool stop(const Json& paused, const std::string& session) { return gate_.stop(paused, session, recorder_.fetches()); }
  // From now on the main frame stays where it is.
  void hold() { gate_.hold(); }
  bool holds() const { return gate_.holds(); }

  // Waits until the page rests.
  void settle();
  // Scrolls, presses, fetches, in a page that is held; throws Silent if the page does not answer.
  void read();
  // Goes back to the top, and reads the content. `asked`: the address of the snapshot.
  void leave(const std::string& asked);

  const Json& steps() const { return steps_; }
  const Json& held() const { return gate_.held(); }            // what presses wanted to send and was stopped
  const std::vector<std::string>& cut() const { return cut_; } // steps that time ended
  // Returns the content as HTML; empty if the page did not answer.
  const std::string& text() const { return text_; }
  // Returns why the page is probably not the requested one; empty if nothing says so.
  const std::string& doubt() const { return doubt_; }

private:
  using Frame = Frames::Frame;
  struct Pulse {
    int added{0};
    bool timers{false};
  };

  Pulse pulse(int longest);
  bool rest(Seconds quiet, int longest_timer, bool pictures, Clock::time_point until);
  void pause(Seconds seconds) {
    wait_(std::min(limit(), in(seconds)), [] { return false; });
  }
  // Returns the end of a wait for answers of the page, which is longer on a busy machine.
  Clock::time_point in(Seconds seconds) const;
  Clock::time_point limit() const; // of the step
  bool over() const { return Clock::now() >= limit(); }
  void step(const char* name, Seconds longest, const std::function<std::string()>& work);
  void press_on(Pressed pressed);
  Json after(std::size_t let, std::size_t held) const;
  std::string accept();
  std::string scroll();
  std::string press(const char* which, int& left);
  std::string own(const std::string& source);
  std::string fetch();
  bool fetch(Frame& frame, const Json& what);
  void look(const std::string& asked);

  DevTools& browser_;
  Recorder& recorder_;
  const Effort effort_;
  const Clock::time_point give_up_;
  const Frames::Wait wait_;
  Frames frames_;
  Gate gate_;
  Clock::time_point stream_spoke_{}, step_began_{};
  Seconds step_longest_{0};
  int silent_{0}; // steps that the page did not answer
  std::size_t asked_{0};
  std::size_t shown_at_first_{0}; // characters
  Json steps_ = Json::array();
  std::vector<std::string> cut_;
  std::string text_, doubt_;
};

} // namespace holdfast::capture
