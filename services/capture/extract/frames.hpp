#pragma once
// The frames of a page and the reader in each of them: JavaScript of reader/ in a world of its own, which the page's
// scripts do not see. Frames of other processes have a session of their own. Owned by Reading, used from its thread.

#include "services/capture/browser/devtools.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::capture {

class Frames {
public:
  // Waits until done() or the time is up; also ends if there is nothing to read any more.
  using Wait = std::function<bool(Clock::time_point until, const std::function<bool()>& done)>;
  struct Frame {
    std::string session, id, loader;
    int context{0};
    bool silent{false};
  };

  // `acts`: presses things, so that it must know what the page's scripts wait for.
  Frames(DevTools& browser, Wait wait, bool acts);

  // Before the page is loaded.
  void attach(const std::string& session, const std::string& frame);
  void take(const std::string& method, const Json& parameters, const std::string& session);
  // Frames have come or gone: find() looks again.
  void changed() { changed_ = true; }
  // How many times longer the page takes to answer than on a quiet machine; limits of answers grow with it.
  double slow{1};
  // The frames of now, the main one first. Throws Silent if the page does not answer.
  std::vector<Frame>& find();
  std::vector<Frame>& known() { return frames_; }
  bool is_main(const Frame& frame) const { return frame.session == session_ && frame.id == frame_; }
  const std::string& session() const { return session_; }
  const std::string& main() const { return frame_; }

  // The value of an expression in the reader's world of a frame; nothing if the frame has gone or its reader has
  // failed. Throws Silent if the main one does not answer.
  std::optional<Json> ask(Frame& frame, const std::string& expression, std::optional<Clock::time_point> until = {});
  const std::string& error() const { return error_; } // of the last answer

  // From now on, in frames and workers of now and later, nothing leaves by ways that DevTools does not intercept.
  void hold();

private:
  Json reply_to(const std::string& method, Json parameters, Frame& frame, Clock::time_point until);
  void prepare(const std::string& session, bool is_worker);

  DevTools& browser_;
  const Wait wait_;
  const bool acts_;
  const std::string name_; // of the event by which reader and page speak
  std::string session_, frame_, error_;
  std::set<std::string> sessions_, workers_; // of frames and workers in other processes
  std::vector<Frame> frames_;
  bool changed_{true}, held_{false};
};

} // namespace holdfast::capture
