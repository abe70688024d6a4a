#include "services/capture/browser/recorder.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "services/capture/fetch/egress.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::uint64_t kBuffered = 64u << 20; // bytes that Chromium keeps for a page
constexpr std::chrono::seconds kLastAnswer{3}; // a browser that works answers within it

// A name and a password in a URL are sent in a header.
std::string without_login(std::string url) {
  const auto authority = base::split_url(url).authority;
  if (const auto login = authority.rfind('@'); login != std::string_view::npos)
    url.erase(static_cast<std::size_t>(authority.data() - url.data()), login + 1);
  return url;
}

} // namespace

Recorder::Recorder(DevTools& browser, warc::Writer& warc, Rules rules)
    : browser_(browser), warc_(warc), rules_(std::move(rules)) {}

void Recorder::watch(const std::string& session, bool holds) {
  browser_.send("Network.enable", {{"maxTotalBufferSize", kBuffered}, {"enableDurableMessages", true}}, session);
  if (holds)
    browser_.send(
        "Fetch.enable",
        {{"patterns", Json::array({{{"urlPattern", "*"}, {"requestStage", "Request"}},
                                   {{"urlPattern", "*"}, {"resourceType", "Document"}, {"requestStage", "Response"}}})},
         {"handleAuthRequests", true}},
        session);
  browser_.send("Target.setAutoAttach", {{"autoAttach", true}, {"waitForDebuggerOnStart", true}, {"flatten", true}},
                session);
}

bool Recorder::take(const std::string& method, const Json& parameters, const std::string& session) {
  if (method == "Network.requestWillBeSent") {
    request_sent(parameters, session);
  } else if (method == "Network.responseReceived") {
    response_received(parameters, session);
  } else if (method == "Network.dataReceived") {
    data_received(parameters);
  } else if (method == "Network.loadingFinished") {
    loading_finished(parameters);
  } else if (method == "Network.loadingFailed") {
    loading_failed(parameters);
  } else if (method == "Network.requestWillBeSentExtraInfo") {
    extra_[text_at(parameters, "requestId")].request.push_back(as_sent(headers_from(parameters["headers"])));
  } else if (method == "Network.responseReceivedExtraInfo") {
    extra_[text_at(parameters, "requestId")].response.push_back(sent_response(parameters));
  } else if (method == "Network.requestServedFromCache") {
    if (const auto found = entries_.find(text_at(parameters, "requestId")); found != entries_.end())
      found->second->skip = true; // nothing was sent
  } else if (method.starts_with("Network.webSocket")) {
    sockets_.take(method, parameters);
  } else if (method == "Page.frameNavigated") {
    left(text_at(parameters["frame"], "id"), text_at(parameters["frame"], "loaderId"));
  } else if (method == "Fetch.requestPaused") {
    paused(parameters, session);
  } else if (method == "Fetch.authRequired") {
    log_in(parameters, session);
  } else if (method == "Target.attachedToTarget") {
    const auto child = text_at(parameters, "sessionId");
    const auto type = text_at(parameters["targetInfo"], "type");
    watch(child, type != "worker"); // whose requests pass through its page's session
    if (type == "shared_worker")    // of which DevTools does not tell what the cache has answered
      browser_.send("Network.setCacheDisabled", {{"cacheDisabled", true}}, child);
    browser_.send("Runtime.runIfWaitingForDebugger", {}, child);
  } else {
    return false;
  }
  return true;
}

// Answers a site that requires a password with that of the persona, and a proxy with that of the environment; each
// once.
void Recorder::log_in(const Json& parameters, const std::string& session) {
  Json answer{{"response", "CancelAuth"}};
  const auto& challenge = parameters["authChallenge"];
  const bool first = logged_in_.insert(text_at(parameters, "requestId")).second;
  const auto login = text_at(challenge, "source") != "Proxy" && rules_.login
                         ? rules_.login(text_at(challenge, "origin"))
                         : std::nullopt;
  if (first && login)
    answer = {{"response", "ProvideCredentials"}, {"username", login->first}, {"password", login->second}};
  if (first && text_at(challenge, "source") == "Proxy") answer = proxy_login(text_at(challenge, "origin"));
  browser_.send("Fetch.continueWithAuth",
                {{"requestId", parameters["requestId"]}, {"authChallengeResponse", std::move(answer)}}, session);
}

std::string Recorder::request_of(const Json& paused) {
  const auto id = text_at(paused, "networkId"); // a download that a link asks for has none
  return id.empty() ? text_at(paused, "requestId") : id;
}

std::size_t Recorder::open_requests(bool pictures) const {
  return count_open(kPatience, [pictures](const std::string& type) {
    if (!pictures && (type == "Image" || type == "Font")) return false;
    return type != "EventSource" && type != "Ping" && type != "Media" && type != "Other";
  });
}

std::size_t Recorder::open_files() const {
  return count_open(kLongestSilence, [](const std::string& type) {
    return type == "Image" || type == "Font" || type == "Stylesheet" || type == "Script" || type == "Document";
  });
}

std::size_t Recorder::open_styles(Seconds patience) const {
  return count_open(patience, [](const std::string& type) { return type == "Stylesheet"; });
}

std::size_t Recorder::count_open(Seconds patience, const std::function<bool(const std::string& type)>& counts) const {
  const auto since = Clock::now() - std::chrono::duration_cast<Clock::duration>(patience);
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return !entry.second->replaced && entry.second->last > since && counts(entry.second->type);
  }));
}

void Recorder::request_sent(const Json& parameters, const std::string& session) {
  const auto id = text_at(parameters, "requestId");
  const auto& request = parameters["request"];
  const auto url = text_at(request, "url");
  last_change_ = Clock::now();
  std::size_t hop = 0;
  if (const auto before = entries_.find(id); before != entries_.end()) {
    const auto entry = before->second;
    if (parameters.contains("redirectResponse")) {
      take_response(*entry, parameters["redirectResponse"]);
      // Chromium reads no body of a redirect.
      if (compared(entry->exchange, 0) != Length::right) entry->exchange.truncated = "unspecified";
    }
    entry->redirected = true;
    hop = entry->hop + 1;
    end(entry);
  }
  if (!base::is_web_url(url)) return;
  const auto entry = std::make_shared<Entry>();
  entry->ours = fetches_;
  entry->request_id = id;
  entry->session = session;
  entry->hop = hop;
  entry->type = text_at(parameters, "type");
  entry->frame = text_at(parameters, "frameId");
  entry->exchange.url = without_login(url);
  entry->exchange.method = request.value("method", "GET");
  entry->exchange.date = base::utc_timestamp();
  entry->exchange.request_headers = headers_from(request.value("headers", Json::object()));
  entries_[id] = entry;
  asked_.insert(url.substr(0, url.find('#')));
  if (auto body = request_body(request))
    entry->exchange.request_body = std::move(*body);
  else
    ask_request_body(entry);
  if (entry->type != "Document") stream(entry);
}

void Recorder::paused(const Json& parameters, const std::string& session) {
  const auto pause = text_at(parameters, "requestId");
  const auto type = text_at(parameters, "resourceType");
  if (parameters.contains("responseStatusCode") || parameters.contains("responseErrorReason")) {
    if (parameters.contains("responseStatusCode") && rules_.keep_from_browser && rules_.keep_from_browser(parameters))
      take_body(parameters, session);
    else
      browser_.send("Fetch.continueRequest", {{"requestId", pause}}, session);
    return;
  }
  const auto url = text_at(parameters["request"], "url");
  const auto why = full_           ? std::string("the limit of the page's size is reached")
                   : rules_.refuse ? rules_.refuse(url, type, text_at(parameters, "frameId"))
                                   : std::string();
  if (!why.empty()) {
    browser_.send("Fetch.failRequest", {{"requestId", pause}, {"errorReason", "BlockedByClient"}}, session);
    return;
  }
  if (rules_.source != nullptr && base::is_web_url(url))
    return answer_from(*rules_.source, browser_, parameters, session);
  Json send = {{"requestId", pause}};
  if (rules_.headers)
    if (auto all = rules_.headers(url, parameters["request"]["headers"]); !all.is_null())
      send["headers"] = std::move(all);
  browser_.send("Fetch.continueRequest", std::move(send), session);
}

void Recorder::take_response(Entry& entry, const Json& response) {
  entry.responded = true;
  entry.exchange.status = response.value("status", 0);
  entry.exchange.reason = text_at(response, "statusText");
  if (entry.exchange.reason.empty()) entry.exchange.reason = reason_of(entry.exchange.status);
  entry.exchange.response_headers = headers_from(response.value("headers", Json::object()));
  if (egress_proxy().empty()) entry.exchange.remote_address = text_at(response, "remoteIPAddress"); // else the proxy's
  entry.exchange.protocol = text_at(response, "protocol");
  entry.from_cache = response.value("fromDiskCache", false);
  if (response.value("fromServiceWorker", false)) entry.skip = true; // what the worker itself fetched is recorded
}

void Recorder::response_received(const Json& parameters, const std::string& session) {
  const auto found = entries_.find(text_at(parameters, "requestId"));
  if (found == entries_.end() || found->second->finished) return;
  last_change_ = found->second->last = Clock::now();
  const auto entry = found->second;
  const bool is_first = !entry->responded;
  take_response(*entry, parameters["response"]);
  entry->session = session; // of a frame in another process, its own
  if (entry->type != "Document") return;
  if (is_first && !entry->skip) stream(entry, false); // its script may keep the renderer busy for ever
  left(entry->frame, entry->request_id);
}

// A frame shows another document: the end of the one before is not told.
void Recorder::left(const std::string& frame, const std::string& document) {
  for (const auto& [id, other] : entries_)
    if (id != document && other->frame == frame && other->type == "Document" && other->responded)
      other->replaced = true;
}

void Recorder::data_received(const Json& parameters) {
  const auto found = entries_.find(text_at(parameters, "requestId"));
  // Chromium reports the document that a "javascript:" address makes as more bytes of the one that has come.
  if (found == entries_.end() || found->second->finished) return;
  auto& entry = *found->second;
  entry.last = Clock::now();
  if (entry.type != "EventSource" && entry.type != "Media") last_change_ = Clock::now(); // which may never end
  entry.announced += parameters.value("dataLength", std::uint64_t{0});
  if (const auto data = parameters.find("data"); entry.streaming && data != parameters.end() && data->is_string())
    add_bytes(entry, base::base64_decode(data->get_ref<const std::string&>()));
}

void Recorder::loading_finished(const Json& parameters) {
  const auto found = entries_.find(text_at(parameters, "requestId"));
  if (found == entries_.end() || std::exchange(found->second->finished, true)) return;
  last_change_ = Clock::now();
  const auto entry = found->second;
  const auto ended = [this, entry] {
    take_sent(*entry);
    const auto& exchange = entry->exchange;
    const bool is_short =
        entry->body.size() < entry->announced || compared(exchange, entry->body.size()) == Length::wrong;
    if (!entry->skip && !entry->overfull && is_short) entry->exchange.truncated = "unspecified";
    // Chromium shows the body of a file that it fetches ahead to no page: the reader asks for it once more.
    const bool hidden = !exchange.truncated.empty() && entry->body.size() == 0 && exchange.method == "GET";
    hidden && entry->type != "Media" && !entry->ours ? drop(entry) : end(entry);
  };
  // Chromium tells no length of what is for a cache: a prefetched file, or one that a service worker keeps.
  const bool is_short = entry->body.size() < entry->announced || entry->body.size() == 0 ||
                        compared(entry->exchange, entry->body.size()) == Length::wrong;
  if (entry->skip || entry->overfull || !is_short) return ended();
  fetch_body(entry, ended);
}

void Recorder::loading_failed(const Json& parameters) {
  const auto found = entries_.find(text_at(parameters, "requestId"));
  if (found == entries_.end()) return;
  last_change_ = Clock::now();
  const auto entry = found->second;
  if (std::any_of(takings_.begin(), takings_.end(), [&](const auto& one) { return one->entry == entry && !one->over; }))
    return; // we take its body ourselves
  ++failed_;
  entry->error = text_at(parameters, "errorText");
  const auto blocked = text_at(parameters, "blockedReason");
  // By the rules of the page, of the other site or of its cache, and not by us.
  entry->forbidden = (!blocked.empty() && blocked != "inspector") || parameters.contains("corsErrorStatus") ||
                     entry->error == "net::ERR_BLOCKED_BY_ORB" || entry->error == "net::ERR_CACHE_MISS";
  const bool dropped = entry->type == "Document" && parameters.value("canceled", false);
  if (!entry->responded) return end(entry);
  fetch_body(entry, [this, entry, dropped] {
    if (entry->exchange.truncated.empty() && compared(entry->exchange, entry->body.size()) != Length::right)
      entry->exchange.truncated = "disconnect";
    const bool piece = entry->exchange.status == kPartialContent && !entry->exchange.truncated.empty();
    dropped || piece ? drop(entry) : end(entry);
  });
}

void Recorder::drop(const std::shared_ptr<Entry>& entry) {
  entries_.erase(entry->request_id);
  dropped_.push_back(entry);
}

// A piece is only another's if that one is whole.
bool Recorder::is_taken(const Entry& entry) const {
  return (entry.exchange.status == kPartialContent ? whole_ : taken_).contains(entry.exchange.url);
}

std::set<std::string> Recorder::dropped() const {
  auto urls = pieces_;
  for (const auto& entry : dropped_)
    if (!entry->exchange.truncated.empty() && !is_taken(*entry)) urls.insert(entry->exchange.url);
  std::erase_if(urls, [this](const auto& url) { return whole_.contains(url); });
  return urls;
}

void Recorder::end(const std::shared_ptr<Entry>& entry) {
  entry->ended = true;
  if (entry->asking) return;
  if (const auto found = entries_.find(entry->request_id); found != entries_.end() && found->second == entry)
    entries_.erase(found);
  write(*entry);
  if (entry->responded && entry->exchange.truncated.empty()) taken_.insert(entry->exchange.url);
  if (entry->exchange.status == kPartialContent && entry->exchange.method == "GET") pieces_.insert(entry->exchange.url);
  if (entry->exchange.status == 200 && entry->exchange.truncated.empty()) whole_.insert(entry->exchange.url);
  if (rules_.finished) rules_.finished({entry->exchange, entry->body, entry->request_id, entry->type, entry->frame});
}

// Counts a request, and its answer if the record lacks it. A request that the page has cancelled or forbidden itself is
// not missing, nor is a piece that a player did not request.
void Recorder::count(const Entry& entry) {
  if (entry.skip || entry.forbidden || entry.type == "Preflight" || entry.type == "Ping") return;
  const bool whole = entry.exchange.truncated.empty() || entry.redirected;
  if (entry.error == "net::ERR_ABORTED" && !entry.ours && (entry.type != "Document" || !entry.responded)) return;
  std::string why;
  if (const auto refused = egress_reason(entry.exchange.response_headers); !refused.empty())
    why = refused.starts_with("refused:") ? "refused" : "not reached";
  else if (entry.responded)
    why = whole || entry.type == "Media" ? "" : "cut (" + entry.exchange.truncated + ")";
  else
    why = entry.error == "net::ERR_BLOCKED_BY_CLIENT" ? "refused" : entry.error.empty() ? "no answer" : entry.error;
  ++requests_;
  if (!why.empty()) missing_.emplace_back(entry.exchange.url, why);
}

// Takes the heads as they were sent, which come beside what the page is shown of them.
void Recorder::take_sent(Entry& entry) {
  if (const auto found = extra_.find(entry.request_id); found != extra_.end()) {
    auto& [request, response] = found->second;
    if (entry.hop < request.size()) entry.exchange.request_headers = request[entry.hop];
    if (entry.hop < response.size()) {
      auto& sent = response[entry.hop];
      entry.from_cache = false;
      if (!sent.reason.empty()) entry.exchange.reason = sent.reason;
      entry.exchange.response_headers = sent.headers;
      if (sent.status == kNotModified && entry.exchange.status != kNotModified) {
        entry.exchange.status = kNotModified;
        entry.exchange.truncated.clear();
        if (sent.reason.empty()) entry.exchange.reason = reason_of(kNotModified);
      }
    }
  }
}

void Recorder::write(Entry& entry) {
  take_sent(entry);
  auto& exchange = entry.exchange;
  if (exchange.truncated.empty() && !entry.redirected && compared(exchange, entry.body.size()) == Length::wrong)
    exchange.truncated = "unspecified";
  // Chromium gives no files of a form that leads to another page.
  const auto length = header_of(exchange.request_headers, "content-length");
  if (!length.empty() && length != std::to_string(exchange.request_body.size())) exchange.request_cut = true;
  entry.skip = entry.skip || entry.from_cache; // nothing was sent
  count(entry);
  if (!entry.responded || entry.skip || entry.exchange.status == 0) return;
  if (!egress_reason(entry.exchange.response_headers).empty()) return;
  static const warc::Spool kNone;
  warc_.add(entry.exchange, entry.exchange.status == kNotModified ? kNone : entry.body);
}

void Recorder::finish(const std::string& why) {
  for (const auto& taking : takings_) {
    if (taking->over) continue;
    taking->entry->exchange.truncated = why;
    end_taking(*taking, false);
  }
  try { // what has come of those that have not ended
    for (const auto& [id, entry] : entries_)
      if (entry->responded && !entry->skip && !entry->overfull && !entry->streaming && !entry->fetching)
        fetch_body(entry, [this, entry = entry] {
          if (entry->body.size() == 0) stream(entry);
        });
    browser_.pump(Clock::now() + kLastAnswer, [this] { return awaited_ == 0; });
  } catch (const Ending&) { // the browser is gone
  }
  const auto entries = entries_;
  for (const auto& [id, entry] : entries) {
    if (entry->exchange.truncated.empty() && compared(entry->exchange, entry->body.size()) != Length::right)
      entry->exchange.truncated = entry->replaced ? "disconnect" : why;
    entry->exchange.request_cut = std::exchange(entry->asking, false);
    end(entry);
  }
  sockets_.finish();
  for (const auto& entry : std::exchange(dropped_, {}))
    if (!is_taken(*entry)) write(*entry);
}

} // namespace holdfast::capture
