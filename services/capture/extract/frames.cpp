#include "services/capture/extract/frames.hpp"

#include "services/capture/embedded.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr Seconds kFrameAnswer{2}, kMainAnswer{3}; // what works answers within it
constexpr std::size_t kMostFrames = 40;

Clock::time_point in(Seconds seconds) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds); }

std::string random_name() {
  std::random_device source;
  std::string name = "e";
  for (int i = 0; i < 12; ++i)
    name += static_cast<char>('a' + source() % 26);
  return name;
}

// Returns the source of `reader` for a frame's world, run once.
std::string reader_source(const std::string& name) {
  auto source = "'use strict'; if (!globalThis.reader) {\nconst name = '" + name +
                "', words_of = " + std::string(embedded::words_json) + ";\n";
  for (const auto part : {embedded::page_js, embedded::scroll_js, embedded::labels_js, embedded::click_js,
                          embedded::hands_js, embedded::own_js, embedded::consent_js, embedded::files_js,
                          embedded::streams_js, embedded::text_js, embedded::reader_js})
    source.append(part).append("\n");
  return source + "} null";
}

} // namespace

Frames::Frames(DevTools& browser, Wait wait, bool acts)
    : browser_(browser), wait_(std::move(wait)), acts_(acts), name_(random_name()) {}

void Frames::attach(const std::string& session, const std::string& frame) {
  session_ = session;
  frame_ = frame;
  prepare(session, false);
}

// Puts before.js into what begins in a session.
void Frames::prepare(const std::string& session, bool is_worker) {
  if (!acts_) return;
  auto source = std::string(embedded::before_js) + "('" + name_ + "');";
  if (held_) source += "dispatchEvent(new CustomEvent('" + name_ + "', {detail: '{\"hold\":true}'}))";
  if (is_worker)
    browser_.send("Runtime.evaluate", {{"expression", source}}, session);
  else
    browser_.send("Page.addScriptToEvaluateOnNewDocument", {{"source", source}}, session);
}

void Frames::take(const std::string& method, const Json& parameters, const std::string&) {
  if (method.starts_with("Page.frame")) {
    changed_ = true;
  } else if (method == "Target.detachedFromTarget") {
    sessions_.erase(text_at(parameters, "sessionId"));
    workers_.erase(text_at(parameters, "sessionId"));
    changed_ = true;
  } else if (method == "Target.attachedToTarget") { // it waits, so that this comes before its scripts
    const auto child = text_at(parameters, "sessionId"), type = text_at(parameters["targetInfo"], "type");
    if (type == "iframe") {
      sessions_.insert(child);
      browser_.send("Page.enable", {}, child);
      changed_ = true;
    } else {
      workers_.insert(child);
    }
    prepare(child, type != "iframe");
  }
}

void Frames::hold() {
  if (std::exchange(held_, true)) return;
  const auto source = "dispatchEvent(new CustomEvent('" + name_ + "', {detail: '{\"hold\":true}'}))";
  auto sessions = sessions_;
  sessions.insert(session_);
  for (const auto& session : sessions)
    browser_.send("Page.addScriptToEvaluateOnNewDocument", {{"source", source}}, session);
  for (const auto& session : workers_)
    browser_.send("Runtime.evaluate", {{"expression", source}}, session);
  for (auto& frame : find())
    ask(frame, "reader.hold()");
}

Json Frames::reply_to(const std::string& method, Json parameters, Frame& frame, Clock::time_point until) {
  const auto answer = browser_.ask(method, std::move(parameters), frame.session);
  wait_(until, [&] { return answer->there; });
  if (!answer->there) {
    frame.silent = !is_main(frame);
    if (is_main(frame)) throw Silent{failed("the page did not answer in time")};
    return nullptr;
  }
  if (answer->error.empty()) return std::move(answer->result);
  frame.context = 0; // it shows another document now
  changed_ = true;
  return nullptr;
}

std::optional<Json> Frames::ask(Frame& frame, const std::string& expression, std::optional<Clock::time_point> until) {
  if (frame.silent) return std::nullopt;
  const auto longest = until.value_or(in((is_main(frame) ? kMainAnswer : kFrameAnswer) * slow));
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
                                {"userGesture", acts_}},
                               frame, longest);
  error_.clear();
  if (!answer.is_object()) return std::nullopt;
  if (const auto error = answer.find("exceptionDetails"); error != answer.end()) {
    error_ = text_at(error->value("exception", Json::object()), "description");
    return std::nullopt;
  }
  return answer.value("result", Json::object()).value("value", Json());
}

std::vector<Frames::Frame>& Frames::find() {
  if (!std::exchange(changed_, false)) return frames_;
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
  const auto tree = reply_to("Page.getFrameTree", {}, main, in(kMainAnswer * slow));
  if (tree.is_object()) add(session_, tree["frameTree"]);
  for (const auto& session : std::set<std::string>(sessions_)) {
    Frame other{session, "", ""};
    const auto below = reply_to("Page.getFrameTree", {}, other, in(kFrameAnswer * slow));
    if (below.is_object()) add(session, below["frameTree"]);
  }
  if (!found.empty()) frames_ = std::move(found);
  return frames_;
}

} // namespace holdfast::capture
