#pragma once
// Reads a loaded page as a patient user does: waits until it rests, accepts cookie dialogs, scrolls, clicks controls
// inside the page, and fetches the files that it names. Its scripts are in reader/ (see reader.js), in a world of their
// own in each frame; this class calls them step by step and waits between the steps for their effects. While it reads,
// the page stays where it is: navigations of its main frame are stopped and kept as links. Each step has a limit of its
// own, and reports why it ended. Owned by the tab, used from its thread.

#include "services/capture/browser/devtools.hpp"
#include "services/capture/browser/recorder.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::capture {

struct Effort {
  bool acts{true};                                   // clicks and lets films run; waits for timers
  bool every{false};                                 // each size of each picture too
  Seconds quiet{0.5};                                // without requests or changes: the page rests
  Seconds wait{8}, scroll{12}, click{12}, files{15}; // the longest
  double share{0.75}, height{40'000};                // of a window in one step; pixels
  int clicks{150};
  std::uint64_t media{100u << 20}; // bytes of one film
  std::string own{};               // a behavior of the operator for this host
  int quality{720};                // lines of a film that comes in several
};
// BROWSER_EFFORT and the options beside it. Throws Ending if they make no sense.
Effort effort_of(const Job& job);

class Reading {
public:
  // Waits until done() or the time is up; also ends if there is nothing to read any more.
  using Wait = std::function<bool(Clock::time_point until, const std::function<bool()>& done)>;

  Reading(DevTools& browser, Recorder& recorder, Effort effort, Clock::time_point give_up, Wait wait);

  // Before the page is loaded.
  void attach(const std::string& session, const std::string& frame);
  void take(const std::string& method, const Json& parameters, const std::string& session);
  // Stops a request that would lead away from the page; returns true if it did.
  bool stop(const Json& paused, const std::string& session);
  // From now on the main frame stays where it is.
  void hold() { holding_ = true; }
  bool holds() const { return holding_; }

  // Waits until the page rests.
  void settle();
  // Scrolls, clicks, fetches, in a page that is held; throws Silent if the page does not answer.
  void read();
  // Goes back to the top, and reads the content.
  void leave();

  const Json& steps() const { return steps_; }
  const std::vector<std::string>& cut() const { return cut_; } // steps that time ended
  // Returns the content as HTML; empty if the page did not answer.
  const std::string& text() const { return text_; }
  // Returns why the page is probably not the requested one: a challenge, nothing but "Loading", or less than it showed
  // at first.
  const std::string& doubt() const { return doubt_; }

private:
  struct Frame {
    std::string session, id, loader;
    int context{0};
    bool silent{false};
  };
  struct Pulse {
    int added{0};
    bool timers{false};
  };

  std::optional<Json> ask(Frame& frame, const std::string& expression, std::optional<Clock::time_point> until = {});
  Json reply_to(const std::string& method, Json parameters, Frame& frame, Clock::time_point until);
  void find_frames();
  Pulse pulse(int longest);
  bool is_main(const Frame& frame) const { return frame.session == session_ && frame.id == frame_; }
  bool rest(Seconds quiet, Clock::time_point until, int longest_timer, bool pictures);
  void step(const char* name, Seconds longest, const std::function<std::string(Clock::time_point until)>& work);
  std::string accept(Clock::time_point until);
  std::string scroll(Clock::time_point until);
  std::string click(Clock::time_point until);
  std::string own(const std::string& source, Clock::time_point until);
  std::string fetch(Clock::time_point until);
  bool fetch(Frame& frame, const Json& what, Clock::time_point until);
  void look();
  bool looks_unfinished();

  DevTools& browser_;
  Recorder& recorder_;
  const Effort effort_;
  const Clock::time_point give_up_;
  const Wait wait_;
  const std::string name_; // of the event that asks for timers
  std::string session_, frame_;
  std::set<std::string> sessions_; // of frames in other processes
  std::vector<Frame> frames_;      // the main one first
  bool frames_changed_{true}, holding_{false};
  int silent_{0}; // steps that the page did not answer
  Clock::time_point stream_spoke_{};
  std::size_t asked_{0}, left_{0}; // left: how often it would have led away
  std::size_t shown_at_first_{0};  // characters
  std::set<std::string> led_to_;
  Json steps_ = Json::array();
  std::vector<std::string> cut_;
  std::string text_, doubt_, error_; // error: of the last answer
};

} // namespace holdfast::capture
