#include "services/capture/extract/reading.hpp"

#include "lib/formats/html.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/embedded.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>

namespace holdfast::capture {

namespace {

constexpr Seconds kFrameAnswer{2};   // a frame that works answers within it
constexpr Seconds kBlink{0.05};      // after a step: the page draws, observers are called
constexpr Seconds kStreamQuiet{1.2}; // while a stream speaks: until its next word
constexpr Seconds kLongestAfterStep{1};
constexpr Seconds kLongestAfterClick{3};
constexpr Seconds kPlayed{0.7};                     // until a film's player has asked for what it needs
constexpr int kLongTimer = 3000, kShortTimer = 500; // milliseconds
constexpr std::size_t kMostFrames = 40, kMostWindows = 20, kMostLinks = 500;
constexpr int kBoxSteps = 60; // in one box of the page
constexpr std::size_t kMostFiles = 1500;

Clock::time_point after(Clock::time_point now, Seconds seconds) {
  return now + std::chrono::duration_cast<Clock::duration>(seconds);
}
Clock::time_point in(Seconds seconds) { return after(Clock::now(), seconds); }

std::string random_name() {
  std::random_device source;
  std::string name = "e";
  for (int i = 0; i < 12; ++i)
    name += static_cast<char>('a' + source() % 26);
  return name;
}

// Titles and words of pages that stand in front of others.
const std::regex& challenge() {
  static const std::regex pattern(
      "just a moment\\.\\.\\.|attention required!|checking (if the site connection|your browser)|"
      "verify(ing)? (that )?you are (a )?human|are you a (human|robot)|not a robot|security check|ddos.guard|"
      "pardon our interruption|access (to this page )?(has been |is )?(denied|blocked)|unusual traffic|"
      "request (was |has been )?blocked|you have been blocked|robot check|captcha|enable javascript and cookies|"
      "bot (detection|protection)|please turn javascript on",
      std::regex::icase);
  return pattern;
}
const std::regex& loading() {
  static const std::regex pattern(
      "^\\W*(page |please |is |now |still )*(loading|wait|one moment|wird geladen|chargement|"
      "cargando|caricamento|laden|carregando|загрузка)\\b.{0,40}$",
      std::regex::icase);
  return pattern;
}
const std::regex& checking() { // a challenge that may end by itself
  static const std::regex pattern("just a moment|checking (if|your)|verifying|ddos.guard|enable javascript and cookies",
                                  std::regex::icase);
  return pattern;
}
constexpr std::size_t kShortPage = 1500, kNearlyEmpty = 60; // characters

// The behavior for the host of the page: HOST.js, or that of a domain that the host belongs to; any.js is for all.
std::string behavior_for(const std::string& host) {
  constexpr std::size_t kLargest = 256u << 10;
  const std::filesystem::path directory = Job::setting("BROWSER_BEHAVIORS_DIR");
  if (directory.empty() || host.find('/') != std::string::npos) return {};
  if (!std::filesystem::is_directory(directory))
    throw failed("BROWSER_BEHAVIORS_DIR=" + directory.string() + " is no directory that hooks can read");
  for (auto domain = host; !domain.empty(); domain.erase(0, std::min(domain.find('.'), domain.size() - 1) + 1))
    if (auto source = read_file(directory / (domain + ".js"), kLargest); !source.empty()) return source;
  return read_file(directory / "any.js", kLargest);
}

// Returns the source of `reader` for a frame's world, run once.
std::string reader_source(const std::string& name) {
  auto source = "'use strict'; if (!globalThis.reader) {\nconst name = '" + name +
                "', words_of = " + std::string(embedded::words_json) + ";\n";
  for (const auto part :
       {embedded::page_js, embedded::scroll_js, embedded::labels_js, embedded::click_js, embedded::own_js,
        embedded::consent_js, embedded::files_js, embedded::streams_js, embedded::text_js, embedded::reader_js})
    source.append(part).append("\n");
  return source + "} null";
}

} // namespace

Effort effort_of(const Job& job) {
  Effort effort;
  const auto name = Job::setting("BROWSER_EFFORT", "normal");
  if (name == "quick") {
    effort = {false, false, Seconds(0.25), Seconds(8), Seconds(8), Seconds(0), Seconds(8), 1, 16'000, 0};
  } else if (name == "thorough") {
    const Seconds most(std::max(job.timeout() / 5, 20.0));
    effort = {true, true, Seconds(1), most, most, most, most, 0.6, 0, 2000};
  } else if (name != "normal") {
    throw failed("BROWSER_EFFORT='" + name + "' is not quick, normal or thorough");
  }
  const double height = Job::number("BROWSER_SCROLL_HEIGHT", 40'000);
  effort.height = name == "quick" ? std::min(height, effort.height) : name == "thorough" ? 5 * height : height;
  effort.own = behavior_for(host_in(job.url()));
  effort.media = Job::size("BROWSER_MEDIA_SIZE", "100m");
  effort.quality = static_cast<int>(Job::number("BROWSER_MEDIA_HEIGHT", effort.quality));
  return effort;
}

Reading::Reading(DevTools& browser, Recorder& recorder, Effort effort, Clock::time_point give_up, Wait wait)
    : browser_(browser), recorder_(recorder), effort_(effort), give_up_(give_up), wait_(std::move(wait)),
      name_(random_name()) {}

void Reading::attach(const std::string& session, const std::string& frame) {
  session_ = session;
  frame_ = frame;
  if (effort_.acts)
    browser_.send("Page.addScriptToEvaluateOnNewDocument",
                  {{"source", std::string(embedded::before_js) + "('" + name_ + "')"}}, session_);
}

void Reading::take(const std::string& method, const Json& parameters, const std::string& session) {
  if (method == "Network.eventSourceMessageReceived" || method == "Network.webSocketFrameReceived") {
    stream_spoke_ = Clock::now();
  } else if (method.starts_with("Page.frame")) {
    frames_changed_ = true;
  } else if (method == "Target.attachedToTarget" && text_at(parameters["targetInfo"], "type") == "iframe") {
    sessions_.insert(text_at(parameters, "sessionId"));
    browser_.send("Page.enable", {}, text_at(parameters, "sessionId"));
    frames_changed_ = true;
  } else if (method == "Target.detachedFromTarget") {
    sessions_.erase(text_at(parameters, "sessionId"));
    frames_changed_ = true;
  } else if (method == "Page.windowOpen" && holding_ && session == session_) {
    ++left_;
    if (led_to_.size() < kMostLinks) led_to_.insert(text_at(parameters, "url"));
  }
}

bool Reading::stop(const Json& paused, const std::string& session) {
  if (!holding_ || paused.contains("responseStatusCode") || paused.contains("responseErrorReason")) return false;
  const auto method = text_at(paused["request"], "method");
  const bool document = text_at(paused, "resourceType") == "Document";
  const bool leads = document && text_at(paused, "frameId") == frame_;
  // A reader's click must not change the site, nor send a form from a frame.
  if (!leads && !(document && method == "POST") && method != "PUT" && method != "PATCH" && method != "DELETE")
    return false;
  browser_.send("Fetch.failRequest", {{"requestId", paused["requestId"]}, {"errorReason", "Aborted"}}, session);
  if (leads) ++left_;
  if (leads && method == "GET" && led_to_.size() < kMostLinks) led_to_.insert(text_at(paused["request"], "url"));
  return true;
}

// The answer of a frame's session, or null. Throws Silent if the main one does not answer.
Json Reading::reply_to(const std::string& method, Json parameters, Frame& frame, Clock::time_point until) {
  const auto answer = browser_.ask(method, std::move(parameters), frame.session);
  wait_(until, [&] { return answer->there; });
  if (!answer->there) {
    frame.silent = !is_main(frame);
    if (is_main(frame)) throw Silent{failed("the page did not answer in time")};
    return nullptr;
  }
  if (answer->error.empty()) return std::move(answer->result);
  frame.context = 0; // it shows another document now
  frames_changed_ = true;
  return nullptr;
}

// Returns the value of an expression in the reader's world of a frame; nothing if the frame was removed or its reader
// has failed.
std::optional<Json> Reading::ask(Frame& frame, const std::string& expression, std::optional<Clock::time_point> until) {
  if (frame.silent) return std::nullopt;
  const auto longest = until.value_or(in(is_main(frame) ? Seconds(3) : kFrameAnswer));
  if (frame.context == 0) {
    const auto world = reply_to("Page.createIsolatedWorld", {{"frameId", frame.id}}, frame, longest);
    if (!world.is_object()) return std::nullopt;
    frame.context = world.value("executionContextId", 0);
    reply_to("Runtime.evaluate", {{"expression", reader_source(name_)}, {"contextId", frame.context}}, frame, longest);
    if (frame.context == 0) return std::nullopt;
  }
  const auto answer = reply_to("Runtime.evaluate",
                               {{"expression", expression},
                                {"contextId", frame.context},
                                {"returnByValue", true},
                                {"awaitPromise", true},
                                {"userGesture", effort_.acts}},
                               frame, longest);
  error_.clear();
  if (!answer.is_object()) return std::nullopt;
  if (const auto error = answer.find("exceptionDetails"); error != answer.end()) {
    error_ = text_at(error->value("exception", Json::object()), "description");
    return std::nullopt;
  }
  return answer.value("result", Json::object()).value("value", Json());
}

void Reading::find_frames() {
  if (!std::exchange(frames_changed_, false)) return;
  std::vector<Frame> found;
  const std::function<void(const std::string&, const Json&)> add = [&](const std::string& session, const Json& tree) {
    const auto frame = tree.value("frame", Json::object());
    const auto id = text_at(frame, "id"), loader = text_at(frame, "loaderId");
    const auto before = std::find_if(frames_.begin(), frames_.end(),
                                     [&](const Frame& one) { return one.id == id && one.session == session; });
    if (found.size() >= kMostFrames) return;
    if (before != frames_.end() && before->loader == loader)
      found.push_back(*before);
    else
      found.push_back({session, id, loader});
    for (const auto& child : tree.value("childFrames", Json::array()))
      add(session, child);
  };
  Frame main{session_, frame_, ""};
  const auto tree = reply_to("Page.getFrameTree", {}, main, in(Seconds(3)));
  if (tree.is_object()) add(session_, tree["frameTree"]);
  for (const auto& session : std::set<std::string>(sessions_)) {
    Frame other{session, "", ""};
    const auto below = reply_to("Page.getFrameTree", {}, other, in(kFrameAnswer));
    if (below.is_object()) add(session, below["frameTree"]);
  }
  if (!found.empty()) frames_ = std::move(found);
}

// Returns the changes in the page since the last call.
Reading::Pulse Reading::pulse(int longest) {
  find_frames();
  const auto asked = recorder_.urls_asked();
  const auto expression = "reader.pulse(" + std::to_string(longest) + ", " + (asked > asked_ ? "true" : "false") + ")";
  Pulse all;
  if (asked > asked_) ++all.added;
  asked_ = asked;
  for (auto& frame : frames_) {
    const auto answer = ask(frame, expression);
    if (!answer || !answer->is_object()) continue;
    all.added += answer->value("added", 0);
    all.timers = all.timers || answer->value("timers", false);
  }
  return all;
}

// Waits until nothing has happened for a moment; false: time ended it.
bool Reading::rest(Seconds quiet, Clock::time_point until, int longest_timer, bool pictures) {
  auto last = Clock::now();
  for (;;) {
    const auto seen = pulse(longest_timer);
    const auto now = Clock::now();
    if (seen.added > 0) last = now;
    if (pictures) last = std::max(last, recorder_.last_change());
    const bool speaks = now < after(stream_spoke_, kStreamQuiet * 2);
    const auto least = after(last, pictures && speaks ? kStreamQuiet : quiet);
    const bool busy = recorder_.open_requests(pictures) > 0 || seen.timers;
    if (!busy && now >= least) return true;
    if (now >= until) return false;
    auto next = after(now, busy || seen.added > 0 ? kBlink : std::max(kBlink, quiet / 4));
    if (!busy && least < next) next = least;
    wait_(std::min(next, until), [] { return false; });
  }
}

void Reading::step(const char* name, Seconds longest, const std::function<std::string(Clock::time_point until)>& work) {
  const auto begin = Clock::now();
  const auto asked = recorder_.urls_asked();
  std::string ended = "the page does not answer";
  const auto note = [&] {
    steps_.push_back({{"step", name},
                      {"seconds", std::round(Seconds(Clock::now() - begin).count() * 100) / 100},
                      {"requests", recorder_.urls_asked() - asked},
                      {"ended", ended}});
  };
  try {
    ended = work(std::min(give_up_, after(begin, longest)));
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

// Returns true for a nearly empty page whose text announces more.
bool Reading::looks_unfinished() {
  const auto seen = ask(frames_.front(), "reader.look()");
  if (!seen || !seen->is_object()) return false;
  shown_at_first_ = seen->value("size", std::size_t{0});
  if (seen->value("pictures", false) || seen->value("scripts", 0) == 0) return false;
  if (frames_.size() > 1) return false;
  const auto words = seen->value("words", "");
  if (seen->value("size", kShortPage) < kShortPage &&
      std::regex_search(seen->value("title", "") + "\n" + words, checking()))
    return true;
  return words.empty() || (words.size() < kNearlyEmpty && std::regex_search(words, loading()));
}

void Reading::settle() {
  frames_changed_ = true;
  cut_.clear();
  steps_.clear();
  step("wait", effort_.wait, [this](Clock::time_point until) -> std::string {
    if (!effort_.acts) return rest(effort_.quiet, until, 0, true) ? "quiet" : "time";
    for (bool quiet = true; (quiet = rest(effort_.quiet, until, kLongTimer, true)) || Clock::now() < until;) {
      if (!quiet || frames_.empty()) break;
      if (!looks_unfinished()) return "quiet";
      if (Clock::now() >= until) break;
      wait_(std::min(until, in(effort_.quiet)), [] { return false; });
    }
    return "time";
  });
}

std::string Reading::accept(Clock::time_point until) {
  std::string accepted;
  for (int times = 0; times < 3 && Clock::now() < until; ++times) {
    find_frames();
    bool again = false;
    for (auto& frame : frames_) {
      const auto answer = ask(frame, "reader.consent()");
      if (!answer || !answer->is_string()) continue;
      accepted += (accepted.empty() ? "" : ", ") + answer->get<std::string>();
      again = true;
      break;
    }
    if (!again) break;
    rest(Seconds(0.2), std::min(until, in(kLongestAfterClick)), kShortTimer, false);
  }
  return accepted.empty() ? "nothing asks" : "accepted: " + accepted;
}

std::string Reading::scroll(Clock::time_point until) {
  const auto expression = "reader.scroll(" +
                          json_text({{"share", effort_.share}, {"height", effort_.height}, {"longest", kBoxSteps}}) +
                          ")";
  auto bottom = Clock::time_point::max(); // since when it has been at its end and nothing has come
  bool moved = false;
  int idle = 0; // steps whose timers have brought nothing
  while (Clock::now() < until) {
    find_frames();
    std::string how;
    for (auto frame = frames_.rbegin(); frame != frames_.rend() && how != "moved"; ++frame) {
      const auto answer = ask(*frame, expression);
      if (!answer && is_main(*frame)) return "the page does not answer";
      if (answer && answer->is_string() && (*answer == "moved" || *answer == "box" || is_main(*frame)))
        how = answer->get<std::string>();
      if (how == "box") break;
    }
    if (how == "height") return "height";
    if (how == "bottom") {
      if (!moved) return "end"; // it has one window's height
      if (!effort_.acts) return "end";
    }
    moved = moved || how == "moved";
    wait_(std::min(until, in(how == "bottom" ? std::max(kBlink, effort_.quiet / 4) : kBlink)), [] { return false; });
    if (!effort_.acts) continue;
    // Waits for requests of the step: not for images.
    const auto longest = std::min(until, in(kLongestAfterStep));
    bool came = false, timed = false;
    for (;;) {
      const auto seen = pulse(idle < 4 ? kShortTimer : 0);
      came = came || seen.added > 0;
      timed = timed || seen.timers;
      if ((recorder_.open_requests(false) == 0 && !seen.timers) || Clock::now() >= longest) break;
      wait_(std::min(longest, in(kBlink)), [] { return false; });
    }
    idle = came ? 0 : timed ? idle + 1 : idle;
    if (how != "bottom" || came) {
      bottom = Clock::time_point::max();
    } else {
      bottom = std::min(bottom, Clock::now());
      if (Clock::now() >= after(bottom, effort_.quiet - kBlink)) return "end";
    }
  }
  return "time";
}

std::string Reading::click(Clock::time_point until) {
  int count = 0;
  find_frames();
  const auto places = frames_; // a click may add frames: they are read when the others have been
  for (auto frame : places) {
    bool brought = false;
    while (Clock::now() < until) {
      if (left_ > kMostWindows) return "leads away too often, after " + std::to_string(count) + " clicks";
      const auto left = left_, asked = recorder_.urls_asked();
      const auto pressed = ask(frame, std::string("reader.click(") + (brought ? "true" : "false") + ", " +
                                          std::to_string(effort_.clicks - count) + ")");
      if (!pressed || !pressed->is_string()) break;
      if (++count >= effort_.clicks) return std::to_string(count) + " clicks, which are enough";
      wait_(std::min(until, in(kBlink)), [] { return false; });
      rest(Seconds(0), std::min(until, in(kLongestAfterClick)), kShortTimer, false);
      brought = recorder_.urls_asked() > asked + (left_ - left);
    }
    if (Clock::now() >= until) return "time";
  }
  return "end, after " + std::to_string(count) + " clicks";
}

// Runs a behavior of the operator, and returns why it ended.
std::string Reading::own(const std::string& source, Clock::time_point until) {
  find_frames();
  auto& main = frames_.front();
  std::string notes;
  bool brought = false;
  for (int count = 0; Clock::now() < until; ++count) {
    const auto asked = recorder_.urls_asked();
    const auto next =
        ask(main, "reader.own(" + (count == 0 ? "(" + source + ")" : "null") + (brought ? ", true)" : ", false)"));
    if (!next) return "failed: " + one_line(error_.empty() ? "the page does not answer" : error_, 300);
    if (!next->is_object()) return "end, after " + std::to_string(count) + " steps" + notes;
    if (const auto note = text_at(*next, "note"); !note.empty() && notes.size() < 1000) notes += "; " + note;
    if (const auto wait = next->find("wait"); wait != next->end() && wait->is_number())
      wait_(std::min(until, in(Seconds(wait->get<double>()))), [] { return false; });
    if (const auto urls = next->find("fetch"); urls != next->end())
      fetch(main, {{"files", *urls}, {"films", Json::array()}, {"lists", Json::array()}, {"most", effort_.media}},
            until);
    wait_(std::min(until, in(kBlink)), [] { return false; });
    rest(Seconds(0), std::min(until, in(kLongestAfterClick)), kShortTimer, false);
    brought = recorder_.urls_asked() > asked;
  }
  return "time";
}

// Fetches files; returns false if time ended it. The page then has a moment to end its requests.
bool Reading::fetch(Frame& frame, const Json& what, Clock::time_point until) {
  const auto left = std::max<long>(0, static_cast<long>(Seconds(until - Clock::now()).count() * 1000));
  try {
    ask(frame,
        "Promise.race([reader.fetch_all(" + json_text(what) + "), new Promise(end => setTimeout(() => { " +
            "reader.stop(); end(false); }, " + std::to_string(left) + "))])",
        after(until, Seconds(2)));
  } catch (const Silent&) {
    return false;
  }
  return Clock::now() < until;
}

std::string Reading::fetch(Clock::time_point until) {
  find_frames();
  int films = 0;
  if (effort_.acts)
    for (auto& frame : frames_)
      if (const auto count = ask(frame, "reader.play()"); count && count->is_number_integer())
        films += count->get<int>();
  if (films > 0) wait_(std::min(until, in(kPlayed)), [] { return false; });
  std::size_t left = kMostFiles, fetched = 0;
  for (auto& frame : frames_) {
    auto named = ask(frame, std::string("reader.named(") + (effort_.every ? "true" : "false") + ")");
    if (!named || !named->is_object()) continue;
    Json files = Json::array(), whole = Json::array();
    for (const auto& url : (*named)["files"])
      if (const auto text = url.get<std::string>();
          files.size() < left && (!recorder_.has_asked_for(text) || led_to_.contains(text)))
        files.push_back(url);
    if (is_main(frame))
      for (const auto& url : recorder_.dropped())
        files.push_back(url);
    for (const auto& url : (*named)["films"])
      if (effort_.acts && !recorder_.has_whole(url.get<std::string>())) whole.push_back(url);
    const auto lists = effort_.acts ? (*named)["lists"] : Json::array();
    if (files.empty() && whole.empty() && lists.empty()) continue;
    left -= std::min(left, files.size());
    fetched += files.size() + whole.size() + lists.size();
    const Json what = {
        {"files", files}, {"films", whole}, {"lists", lists}, {"most", effort_.media}, {"height", effort_.quality}};
    if (!fetch(frame, what, until)) return "time";
  }
  if (films > 0)
    for (auto& frame : frames_)
      ask(frame, "reader.pause()");
  return fetched == 0 ? "nothing is left" : "end";
}

void Reading::read() {
  if (effort_.acts) step("consent", Seconds(5), [this](auto until) { return accept(until); });
  if (Job::flag("BROWSER_SCROLL", true)) step("scroll", effort_.scroll, [this](auto until) { return scroll(until); });
  if (effort_.acts) step("click", effort_.click, [this](auto until) { return click(until); });
  if (!effort_.own.empty()) step("own", effort_.click, [this](auto until) { return own(effort_.own, until); });
  step("files", effort_.files, [this](auto until) { return fetch(until); });
}

void Reading::leave() {
  find_frames();
  for (auto& frame : frames_)
    ask(frame, "reader.leave()");
  rest(Seconds(0.1), std::min(give_up_, in(Seconds(3))), 0, true);
  look();
}

// Reads the content, and checks whether it is the requested page.
void Reading::look() {
  std::string title, words, language;
  std::size_t size = 0;
  bool pictures = false, scripts = false;
  text_.clear();
  for (auto& frame : frames_) {
    const auto seen = ask(frame, "reader.look()");
    if (!seen || !seen->is_object()) continue;
    if (is_main(frame)) {
      title = seen->value("title", "");
      words = seen->value("words", "");
      language = seen->value("lang", "");
      scripts = seen->value("scripts", 0) > 0;
    }
    size += seen->value("size", std::size_t{0});
    pictures = pictures || seen->value("pictures", false);
    const auto html = ask(frame, "reader.text()");
    if (html && html->is_string()) text_ += html->get<std::string>() + "\n";
  }
  if (!text_.empty()) {
    for (const auto& url : led_to_)
      text_ += "<a href=\"" + formats::escape_html(url) + "\"></a>\n";
    text_ = "<!doctype html><html lang=\"" + formats::escape_html(language) +
            "\"><head><meta charset=\"utf-8\"><title>" + formats::escape_html(title) + "</title></head>\n" + text_;
  }
  std::smatch found;
  const auto all = title + "\n" + words;
  if (size < kShortPage && std::regex_search(all, found, challenge()))
    doubt_ = "the site shows a challenge or a block (\"" + found.str() + "\"), not the page";
  else if (size < kNearlyEmpty && !pictures && shown_at_first_ > 5 * kNearlyEmpty)
    doubt_ = "the page hid what it had shown when it was read";
  else if (size < kNearlyEmpty && !pictures && scripts && (size == 0 || std::regex_search(words, loading())))
    doubt_ = size == 0 ? "the page stayed empty" : "the page shows only \"" + words + "\"";
}

} // namespace holdfast::capture
