#include "services/capture/extract/gate.hpp"

#include "services/capture/browser/page_record.hpp"

namespace holdfast::capture {

namespace {

constexpr std::size_t kMostLinks = 500, kMostHeld = 100;

} // namespace

void Gate::attach(const std::string& frame, const std::string& host) {
  frame_ = frame;
  host_ = host;
}

void Gate::take(const std::string& method, const Json& parameters) {
  if (method == "Network.requestWillBeSent" && pressed_ == Pressed::nothing)
    known_hosts_.insert(host_in(text_at(parameters["request"], "url")));
  else if (method == "Page.windowOpen" && holding_)
    lead(text_at(parameters, "url"));
}

void Gate::lead(const std::string& url) {
  ++left_;
  if (led_to_.size() < kMostLinks && url.starts_with("http")) led_to_.insert(url);
}

void Gate::hold_back(const std::string& what, const std::string& url, std::string_view why) {
  ++stopped_;
  if (held_.size() < kMostHeld)
    held_.push_back({{"what", what}, {"url", url.substr(0, 1000)}, {"why", why}, {"pressed", ""}});
}

void Gate::note(const std::string& what, const std::string& url) {
  if (what == "WINDOW")
    lead(url);
  else
    hold_back(what, url, "only GET follows such a press");
}

void Gate::name(std::size_t since, const std::string& press) {
  for (; since < held_.size(); ++since)
    held_[since]["pressed"] = press;
}

bool Gate::stop(const Json& paused, const std::string& session, bool ours) {
  if (paused.contains("responseStatusCode") || paused.contains("responseErrorReason")) return false;
  const auto& sent = paused["request"];
  Request request{text_at(sent, "method"), text_at(sent, "url"), text_at(paused, "resourceType"),
                  text_at(sent, "postData"), false};
  request.known_host = ours || known_hosts_.contains(host_in(request.url));
  const bool document = request.type == "Document", leads = document && text_at(paused, "frameId") == frame_ && holds();
  auto why = why_held(pressed_, request, host_);
  if (why.empty() && document && request.method == "POST" && (leads || holding_)) why = "a form";
  if (!leads && why.empty()) {
    let_.insert(request.url);
    return false;
  }
  if (leads && why.empty())
    lead(request.url);
  else
    hold_back(request.method, request.url, why);
  browser_.send("Fetch.failRequest", {{"requestId", paused["requestId"]}, {"errorReason", "Aborted"}}, session);
  return true;
}

} // namespace holdfast::capture
