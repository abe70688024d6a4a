#include "services/capture/browser/documents.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "services/capture/fetch/egress.hpp"

#include <utility>

namespace holdfast::capture {

using base::text_at;

namespace {

constexpr Seconds kLongestRefresh{3}; // a page that leads on later is the page

std::string cause_of(const std::string& reason) { // of Page.frameRequestedNavigation
  if (reason.find("Refresh") != std::string::npos) return "refresh";
  return reason == "reload" ? "reload" : "script";
}

} // namespace

void Documents::watch(std::string session, std::string frame) {
  session_ = std::move(session);
  frame_ = std::move(frame);
}

Documents::Document* Documents::find(const std::string& request) {
  for (auto document = shown_.rbegin(); document != shown_.rend(); ++document)
    if (document->id == request) return &*document;
  return last_.id == request ? &last_ : nullptr;
}

void Documents::request_sent(const Json& parameters) {
  const auto url = text_at(parameters["request"], "url"), id = text_at(parameters, "requestId");
  if (!base::is_web_url(url)) return;
  const auto cause = std::exchange(led_by_, "");
  error_.clear();
  refused_.clear();
  pending_ = true;
  if (const auto response = parameters.find("redirectResponse"); response != parameters.end() && id == last_.id) {
    last_.steps.push_back({text_at(*response, "url"), url, response->value("status", 0), "http"});
    last_.url = url;
    return;
  }
  last_ = {id, id, url, url, !any() ? "request" : cause.empty() ? "script" : cause, base::utc_timestamp()};
}

void Documents::answered(const Json& response) {
  Json headers = Json::object();
  const auto sent = response.value("headers", Json::object());
  for (const auto& [name, value] : sent.items())
    headers[lower_case(name)] = value;
  refused_ = egress_reason(Headers{{kEgressHeader, text_at(headers, kEgressHeader)}});
  if (!refused_.empty()) return; // no server has sent this
  last_.url = text_at(response, "url");
  last_.status = response.value("status", 0);
  last_.reason = text_at(response, "statusText");
  last_.content_type = headers.value("content-type", "");
  if (media_type(last_.content_type).empty()) last_.content_type = text_at(response, "mimeType");
  last_.headers = std::move(headers);
}

void Documents::failed(const Json& parameters) {
  const auto request = text_at(parameters, "requestId"), error = text_at(parameters, "errorText");
  auto* const document = find(request);
  if (document == nullptr) return;
  if (document != &last_) {
    document->broken = error.empty() ? "broken off" : error;
    return;
  }
  pending_ = false;
  if (error != "net::ERR_ABORTED") error_ = error; // which says nothing
  if (any() && error == "net::ERR_ABORTED") last_ = {};
}

void Documents::committed(const Json& frame) {
  const auto loader = text_at(frame, "loaderId");
  if (!text_at(frame, "unreachableUrl").empty()) return;
  if (loader == last_.id && refused_.empty()) {
    last_.committed = base::utc_timestamp();
    shown_.push_back(std::exchange(last_, {}));
    refresh_due_ = {};
    pending_ = false;
  } else if (any() && loader != last_.id) {
    shown_.back().loader = loader;
  } else {
    pending_ = pending_ && loader != last_.id;
    return;
  }
  parsed_ = loaded_ = false;
}

void Documents::take(const std::string& method, const Json& parameters, const std::string& session, bool held) {
  const auto frame = text_at(parameters, "frameId");
  if (method == "Network.requestWillBeSent") {
    if (!held && frame == frame_ && text_at(parameters, "type") == "Document") request_sent(parameters);
  } else if (method == "Network.responseReceived") {
    if (text_at(parameters, "requestId") == last_.id && text_at(parameters["response"], "url").starts_with("http"))
      answered(parameters["response"]);
  } else if (method == "Network.loadingFailed") {
    failed(parameters);
  } else if (session != session_) {
    return;
  } else if (method == "Page.frameNavigated") {
    if (text_at(parameters["frame"], "id") == frame_) committed(parameters["frame"]);
  } else if (method == "Page.frameRequestedNavigation") {
    if (!held && frame == frame_) led_by_ = cause_of(text_at(parameters, "reason"));
  } else if (method == "Page.frameScheduledNavigation") {
    const Seconds delay(parameters.value("delay", 0.0));
    if (frame == frame_ && delay <= kLongestRefresh)
      refresh_due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(delay);
  } else if (method == "Page.frameClearedScheduledNavigation") {
    if (frame == frame_) refresh_due_ = {};
  } else if (method == "Page.domContentEventFired") {
    parsed_ = any();
  } else if (method == "Page.loadEventFired") {
    loaded_ = any();
  }
}

bool Documents::recorded(const std::string& request, bool whole, std::uint64_t bytes) {
  auto* const document = find(request);
  if (document == nullptr) return false;
  document->whole = whole;
  document->bytes = bytes;
  return document == &shown();
}

std::vector<PageRecord::Redirect> Documents::redirects() const {
  std::vector<PageRecord::Redirect> all;
  const Document* before = nullptr;
  const auto add = [&](const Document& document) {
    if (before != nullptr && before->url != document.asked)
      all.push_back({before->url, document.asked, before->status, document.cause});
    all.insert(all.end(), document.steps.begin(), document.steps.end());
    before = &document;
  };
  for (const auto& document : shown_)
    add(document);
  if (!last_.id.empty()) add(last_); // it failed, or it is a file
  return all;
}

Json Documents::list() const {
  Json list = Json::array();
  for (const auto& document : shown_)
    list.push_back({{"url", document.url},
                    {"status", document.status},
                    {"cause", document.cause},
                    {"asked_at", document.date},
                    {"shown_at", document.committed}});
  return list;
}

} // namespace holdfast::capture
