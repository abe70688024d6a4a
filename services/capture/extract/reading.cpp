#include "services/capture/extract/reading.hpp"

#include "lib/formats/html.hpp"
#include "services/capture/browser/page_record.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr Seconds kBlink{0.05};      // after a step: the page draws, observers are called
constexpr Seconds kStreamQuiet{1.2}; // while a stream speaks: until its next word
constexpr Seconds kLongestAfterStep{1}, kLongestAfterPress{3};
constexpr Seconds kPlayed{0.7};        // until a film's player has asked for what it needs
constexpr Seconds kUsualAnswer{0.008}; // of a page, on a machine that is not busy
constexpr double kSlowest = 8;
constexpr int kLongTimer = 3000, kShortTimer = 500; // milliseconds
constexpr std::size_t kMostWindows = 20, kMostFiles = 1500;
constexpr int kBoxSteps = 60; // in one box of the page

Clock::time_point after(Clock::time_point now, Seconds seconds) {
  return now + std::chrono::duration_cast<Clock::duration>(seconds);
}

} // namespace

Reading::Reading(DevTools& browser, Recorder& recorder, Effort effort, Clock::time_point give_up, Frames::Wait wait)
    : browser_(browser), recorder_(recorder), effort_(std::move(effort)), give_up_(give_up), wait_(wait),
      frames_(browser, std::move(wait), effort_.acts), gate_(browser) {}

void Reading::attach(const std::string& session, const std::string& frame, const std::string& host) {
  gate_.attach(frame, host);
  frames_.attach(session, frame);
}

void Reading::take(const std::string& method, const Json& parameters, const std::string& session) {
  frames_.take(method, parameters, session);
  gate_.take(method, parameters);
  // One that has just been opened is about to speak.
  const bool opens = method == "Network.webSocketHandshakeResponseReceived" ||
                     (method == "Network.responseReceived" && text_at(parameters, "type") == "EventSource");
  if (opens || method == "Network.eventSourceMessageReceived" || method == "Network.webSocketFrameReceived")
    stream_spoke_ = Clock::now();
}

Clock::time_point Reading::in(Seconds seconds) const { return capture::after(Clock::now(), seconds * frames_.slow); }

Clock::time_point Reading::limit() const {
  return std::min(give_up_, capture::after(step_began_, step_longest_ * frames_.slow));
}

// Returns the changes in the page since the last call.
Reading::Pulse Reading::pulse(int longest) {
  frames_.find();
  const auto asked = recorder_.urls_asked();
  const auto expression = "reader.pulse(" + std::to_string(longest) + ", " + (asked > asked_ ? "true" : "false") + ")";
  Pulse all;
  if (asked > asked_) ++all.added;
  asked_ = asked;
  for (auto& frame : frames_.known()) {
    const auto begin = Clock::now();
    const auto answer = frames_.ask(frame, expression);
    const double times = (Clock::now() - begin) / kUsualAnswer;
    frames_.slow = std::clamp(0.9 * frames_.slow + 0.1 * times, 1.0, kSlowest);
    if (!answer || !answer->is_object()) continue;
    all.added += answer->value("added", 0);
    all.timers = all.timers || answer->value("timers", false);
    for (const auto& note : answer->value("notes", Json::array()))
      gate_.note(note[0].get<std::string>(), note[1].get<std::string>());
  }
  return all;
}

// Waits until nothing has happened for a moment; false: time ended it.
bool Reading::rest(Seconds quiet, int longest_timer, bool pictures, Clock::time_point until) {
  auto last = Clock::now();
  for (;;) {
    const auto seen = pulse(longest_timer);
    const auto now = Clock::now();
    if (seen.added > 0) last = now;
    if (pictures) last = std::max(last, recorder_.last_change());
    const bool speaks = now < capture::after(stream_spoke_, kStreamQuiet * 2);
    const auto least = capture::after(last, pictures && speaks ? kStreamQuiet : quiet * std::min(frames_.slow, 3.0));
    const bool busy = recorder_.open_requests(pictures) > 0 || seen.timers;
    if (!busy && now >= least) return true;
    if (now >= until || over()) return false;
    auto next = capture::after(now, busy || seen.added > 0 ? kBlink : std::max(kBlink, quiet / 4));
    if (!busy && least < next) next = least;
    wait_(std::min({next, until, limit()}), [] { return false; });
  }
}

void Reading::step(const char* name, Seconds longest, const std::function<std::string()>& work) {
  step_began_ = Clock::now();
  step_longest_ = longest;
  const auto asked = recorder_.urls_asked();
  std::string ended = "the page does not answer";
  const auto note = [&] {
    steps_.push_back({{"step", name},
                      {"seconds", std::round(Seconds(Clock::now() - step_began_).count() * 100) / 100},
                      {"requests", recorder_.urls_asked() - asked},
                      {"ended", ended}});
  };
  try {
    ended = work();
  } catch (const Silent&) { // the next step may still be answered
    note();
    cut_.emplace_back(name);
    if (++silent_ > 1 || std::string_view(name) == "wait") throw;
    return;
  } catch (const Ending&) {
    note();
    throw;
  }
  if (ended == "time") cut_.emplace_back(name);
  note();
}

void Reading::settle() {
  frames_.changed();
  cut_.clear();
  steps_.clear();
  step("wait", effort_.wait, [this]() -> std::string {
    if (!effort_.acts) return rest(effort_.quiet, 0, true, limit()) ? "quiet" : "time";
    for (bool quiet = true; (quiet = rest(effort_.quiet, kLongTimer, true, limit())) || !over();) {
      if (!quiet || frames_.known().empty()) break;
      const auto seen = frames_.ask(frames_.known().front(), "reader.look()");
      if (!seen || !seen->is_object()) return "quiet";
      shown_at_first_ = seen->value("size", std::size_t{0});
      Shown now;
      now.title = seen->value("title", "");
      now.words = seen->value("words", "");
      now.size = shown_at_first_;
      now.pictures = seen->value("pictures", false);
      now.scripts = seen->value("scripts", 0) > 0;
      if (frames_.known().size() > 1 || !looks_unfinished(now)) return "quiet";
      if (over()) break;
      pause(effort_.quiet);
    }
    return "time";
  });
}

std::string Reading::accept() {
  std::string accepted;
  for (int times = 0; times < 3 && !over(); ++times) {
    const auto before = accepted.size();
    for (auto& frame : frames_.find())
      if (const auto answer = frames_.ask(frame, "reader.consent()"); answer && answer->is_string()) {
        accepted += (accepted.empty() ? "" : ", ") + answer->get<std::string>();
        break;
      }
    if (accepted.size() == before) break;
    rest(Seconds(0.2), kShortTimer, false, in(kLongestAfterPress));
  }
  return accepted.empty() ? "nothing asks" : "accepted: " + accepted;
}

std::string Reading::scroll() {
  const auto expression =
      "reader.scroll(" +
      json_text(
          {{"share", effort_.share}, {"height", effort_.height}, {"longest", kBoxSteps}, {"small", !effort_.acts}}) +
      ")";
  auto bottom = Clock::time_point::max(); // since when it has been at its end and nothing has come
  bool moved = false;
  int idle = 0; // steps whose timers have brought nothing
  while (!over()) {
    std::string how;
    int added = 0;
    auto& frames = frames_.find();
    for (auto frame = frames.rbegin(); frame != frames.rend() && how != "moved"; ++frame) {
      const auto answer = frames_.ask(*frame, expression);
      if (!answer && frames_.is_main(*frame)) return "the page does not answer";
      if (!answer || !answer->is_object()) continue;
      const auto did = text_at(*answer, "how");
      added += answer->value("added", 0);
      if (did == "moved" || did == "box" || frames_.is_main(*frame)) how = did;
      if (how == "box") break;
    }
    if (how == "height" || how == "still") return how == "height" ? how : "end";
    if (how == "bottom" && (!moved || !effort_.acts)) return "end"; // it has one window's height
    moved = moved || how == "moved";
    // Waits for requests of the step: not for images.
    const bool asks = recorder_.open_requests(false) > 0 || recorder_.urls_asked() > asked_;
    if (effort_.acts && how == "moved" && added == 0 && !asks && idle >= 4) continue;
    const auto longest = in(kLongestAfterStep);
    bool came = added > 0, timed = false;
    for (bool first = true; effort_.acts; first = false) {
      const auto seen = pulse(idle < 4 ? kShortTimer : 0);
      came = came || seen.added > 0;
      timed = timed || seen.timers;
      const bool busy = recorder_.open_requests(false) > 0 || seen.timers;
      if ((!busy && (!first || !came)) || Clock::now() >= longest) break;
      pause(kBlink);
    }
    idle = came ? 0 : idle + 1;
    if (how == "bottom") pause(std::max(kBlink, effort_.quiet / 4));
    if (how != "bottom" || came) {
      bottom = Clock::time_point::max();
    } else {
      bottom = std::min(bottom, Clock::now());
      if (Clock::now() >= capture::after(bottom, (effort_.quiet - kBlink) * std::min(frames_.slow, 3.0))) return "end";
    }
  }
  return "time";
}

// Sets the limits of what the page may send from now on.
void Reading::press_on(Pressed pressed) {
  gate_.press(pressed);
  if (gate_.pressed() >= Pressed::shows) frames_.hold();
}

// Returns the effect of the last press, for the reader.
Json Reading::after(std::size_t let, std::size_t held) const {
  return {{"asked", gate_.let() > let}, {"held", gate_.stopped() > held}};
}

// Runs a step of click.js or hands.js to its end in each frame; `left`: presses that may still be made.
std::string Reading::press(const char* which, int& left) {
  int count = 0;
  const auto places = frames_.find(); // a press may add frames: they are read when the others have been
  for (auto frame : places) {
    Json then = after(gate_.let(), gate_.stopped());
    while (!over()) {
      if (gate_.left() > kMostWindows) return "leads away too often, after " + std::to_string(count) + " presses";
      const auto let = gate_.let(), held = gate_.stopped(), noted = gate_.held().size();
      const auto done = frames_.ask(frame, std::string("reader.go('") + which + "', " + json_text(then) + ")");
      if (!done || done->is_null()) break;
      if (done->is_object()) // movements of the pointer, the wheel or keys
        for (const auto& event : done->value("hand", Json::array())) {
          const auto taken =
              browser_.ask("Input.dispatch" + event[0].get<std::string>() + "Event", event[1], frames_.session());
          wait_(in(kLongestAfterPress), [&] { return taken->there; });
        }
      const auto what = done->is_object() ? text_at(*done, "what") : done->get<std::string>();
      if (what != "look" && what != "rest" && what != "again" && ++count > 0 && --left <= 0)
        return std::to_string(count) + " presses, which are enough";
      pause(what == "rest" ? Seconds(0.4) : kBlink);
      // The next press may take away a picture that is still to come.
      const bool pictures = what.starts_with("next") || what.starts_with("over") || what.starts_with("choice");
      rest(Seconds(0), kShortTimer, pictures, in(pictures ? kLongestAfterStep : kLongestAfterPress));
      then = after(let, held);
      gate_.name(noted, what);
    }
    if (over()) return "time";
  }
  return "end, after " + std::to_string(count) + " presses";
}

// Runs a behavior of the operator, and returns why it ended.
std::string Reading::own(const std::string& source) {
  auto& main = frames_.find().front();
  std::string notes;
  bool brought = false;
  for (int count = 0; !over(); ++count) {
    const auto asked = recorder_.urls_asked();
    const auto next = frames_.ask(main, "reader.own(" + (count == 0 ? "(" + source + ")" : "null") +
                                            (brought ? ", true)" : ", false)"));
    if (!next)
      return "failed: " + one_line(frames_.error().empty() ? "the page does not answer" : frames_.error(), 300);
    if (!next->is_object()) return "end, after " + std::to_string(count) + " steps" + notes;
    if (const auto note = text_at(*next, "note"); !note.empty() && notes.size() < 1000) notes += "; " + note;
    if (const auto wait = next->find("wait"); wait != next->end() && wait->is_number())
      pause(Seconds(wait->get<double>()));
    if (const auto urls = next->find("fetch"); urls != next->end())
      fetch(main, {{"files", *urls}, {"films", Json::array()}, {"lists", Json::array()}, {"most", effort_.media}});
    pause(kBlink);
    rest(Seconds(0), kShortTimer, false, in(kLongestAfterPress));
    brought = recorder_.urls_asked() > asked;
  }
  return "time";
}

// Fetches files; returns false if time ended it. The page then has a moment to end its requests.
bool Reading::fetch(Frame& frame, const Json& what) {
  const auto left = std::max<long>(0, static_cast<long>(Seconds(limit() - Clock::now()).count() * 1000));
  try {
    const Recorder::Fetching ours(recorder_);
    frames_.ask(frame,
                "Promise.race([reader.fetch_all(" + json_text(what) + "), new Promise(end => setTimeout(() => { " +
                    "reader.stop(); end(false); }, " + std::to_string(left) + "))])",
                capture::after(limit(), Seconds(2)));
  } catch (const Silent&) {
    return false;
  }
  return !over();
}

std::string Reading::fetch() {
  int films = 0;
  auto& frames = frames_.find();
  if (effort_.acts)
    for (auto& frame : frames)
      if (const auto count = frames_.ask(frame, "reader.play()"); count && count->is_number_integer())
        films += count->get<int>();
  if (films > 0) pause(kPlayed);
  std::size_t left = kMostFiles, fetched = 0;
  for (auto& frame : frames) {
    auto named = frames_.ask(frame, std::string("reader.named(") + (effort_.every ? "true" : "false") + ")");
    if (!named || !named->is_object()) continue;
    Json files = Json::array();
    std::set<std::string> whole;
    for (const auto& url : (*named)["files"])
      if (const auto text = url.get<std::string>();
          files.size() < left && (!recorder_.has_asked_for(text) || gate_.led_to().contains(text)))
        files.push_back(url);
    if (frames_.is_main(frame)) whole = recorder_.dropped();
    for (const auto& url : (*named)["films"])
      if (effort_.acts && !recorder_.has_whole(url.get<std::string>())) whole.insert(url);
    const auto lists = effort_.acts ? (*named)["lists"] : Json::array();
    if (files.empty() && whole.empty() && lists.empty()) continue;
    left -= std::min(left, files.size());
    fetched += files.size() + whole.size() + lists.size();
    const Json what = {
        {"files", files}, {"films", whole}, {"lists", lists}, {"most", effort_.media}, {"height", effort_.quality}};
    if (!fetch(frame, what)) return "time";
  }
  if (films > 0)
    for (auto& frame : frames)
      frames_.ask(frame, "reader.pause()");
  return fetched == 0 ? "nothing is left" : "end";
}

void Reading::read() {
  const bool scrolls = Job::flag("BROWSER_SCROLL", true);
  int left = effort_.clicks;
  if (effort_.acts) step("consent", Seconds(5), [this] { return accept(); });
  if (scrolls) step("scroll", effort_.scroll, [this] { return scroll(); });
  if (!effort_.own.empty()) { // whose author knows the page
    press_on(Pressed::more);
    step("own", effort_.click, [this] { return own(effort_.own); });
  }
  if (effort_.acts) {
    const bool all = effort_.presses == Presses::all;
    press_on(all ? Pressed::more : Pressed::unknown);
    step("more", effort_.click, [&] { return press("more", left); });
    press_on(Pressed::shows);
    step("shows", effort_.click, [&] { return press("shows", left); });
    press_on(Pressed::unknown);
    if (all) step("tries", effort_.click, [&] { return press("tries", left); });
    step("hands", effort_.click, [&] { return press("hands", left); });
    bool more = false;
    for (auto& frame : frames_.find())
      if (const auto grown = frames_.ask(frame, "reader.grown()"); grown && grown->is_boolean())
        more = more || grown->get<bool>();
    if (more && scrolls) step("scroll again", effort_.scroll, [this] { return scroll(); });
  }
  step("files", effort_.files, [this] { return fetch(); });
}

void Reading::leave(const std::string& asked) {
  step_began_ = Clock::now();
  step_longest_ = Seconds(5);
  for (auto& frame : frames_.find())
    frames_.ask(frame, "reader.leave()");
  rest(Seconds(0.1), 0, true, in(Seconds(3)));
  look(asked);
}

// Reads the content, and checks whether it is the requested page.
void Reading::look(const std::string& asked) {
  Shown now;
  now.asked = asked;
  text_.clear();
  for (auto& frame : frames_.known()) {
    const auto seen = frames_.ask(frame, "reader.look()");
    if (!seen || !seen->is_object()) continue;
    if (frames_.is_main(frame)) {
      now.title = seen->value("title", "");
      now.words = seen->value("words", "");
      now.language = seen->value("lang", "");
      now.scripts = seen->value("scripts", 0) > 0;
      now.login = seen->value("login", false);
      now.login_alone = seen->value("alone", false);
      now.url = seen->value("url", "");
    }
    now.size += seen->value("size", std::size_t{0});
    now.pictures = now.pictures || seen->value("pictures", false);
    const auto html = frames_.ask(frame, "reader.text()");
    if (html && html->is_string()) text_ += html->get<std::string>() + "\n";
  }
  if (!text_.empty()) {
    for (const auto& url : gate_.led_to())
      if (url != now.url) // a page that loads itself again leads nowhere
        text_ += "<a href=\"" + formats::escape_html(url) + "\"></a>\n";
    text_ = "<!doctype html><html lang=\"" + formats::escape_html(now.language) +
            "\"><head><meta charset=\"utf-8\"><title>" + formats::escape_html(now.title) + "</title></head>\n" + text_;
  }
  doubt_ = doubt_about(now, shown_at_first_);
  if (!doubt_.empty() && gate_.stopped() > 0)
    doubt_ += "; " + std::to_string(gate_.stopped()) + " requests of presses were held back";
}

} // namespace holdfast::capture
