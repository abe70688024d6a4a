#include "services/capture/recorder.hpp"

#include "lib/base/base64.hpp"
#include "lib/base/text.hpp"
#include "services/capture/browser_page.hpp"
#include "services/capture/charset.hpp"
#include "services/capture/egress.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::size_t kReadAtOnce = 1u << 19;
constexpr std::chrono::seconds kLongestHold{1};

bool on_the_network(const std::string& url) { return url.starts_with("http://") || url.starts_with("https://"); }

// Values that were sent under one name are joined by line ends.
Headers headers_from(const Json& object) {
  Headers headers;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) continue;
    const auto& all = value.get_ref<const std::string&>();
    for (std::size_t begin = 0; begin <= all.size();) {
      const auto end = std::min(all.find('\n', begin), all.size());
      headers.emplace_back(name, all.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return headers;
}

Headers headers_from_list(const Json& list) {
  Headers headers;
  for (const auto& item : list)
    headers.emplace_back(text_of(item, "name"), text_of(item, "value"));
  return headers;
}

std::string reason_of(int status) {
  switch (status) {
  case 200:
    return "OK";
  case 206:
    return "Partial Content";
  case 301:
    return "Moved Permanently";
  case 302:
    return "Found";
  case 304:
    return "Not Modified";
  case 307:
    return "Temporary Redirect";
  case 308:
    return "Permanent Redirect";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  default:
    return "";
  }
}

} // namespace

Recorder::Recorder(DevTools& browser, warc::Writer& warc, Rules rules)
    : browser_(browser), warc_(warc), rules_(std::move(rules)) {}

void Recorder::watch(const std::string& session, bool is_page) {
  browser_.send("Network.enable", {{"maxTotalBufferSize", 64 << 20}, {"maxResourceBufferSize", 16 << 20}}, session);
  if (is_page)
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
    response_received(parameters);
  } else if (method == "Network.dataReceived") {
    data_received(parameters);
  } else if (method == "Network.loadingFinished") {
    loading_finished(parameters);
  } else if (method == "Network.loadingFailed") {
    loading_failed(parameters);
  } else if (method == "Network.requestWillBeSentExtraInfo") {
    extra_[text_of(parameters, "requestId")].request.push_back(headers_from(parameters["headers"]));
  } else if (method == "Network.responseReceivedExtraInfo") {
    extra_[text_of(parameters, "requestId")].response.push_back(headers_from(parameters["headers"]));
  } else if (method == "Network.requestServedFromCache") {
    if (const auto found = entries_.find(text_of(parameters, "requestId")); found != entries_.end())
      found->second->skip = true; // nothing was sent
  } else if (method == "Fetch.requestPaused") {
    paused(parameters, session);
  } else if (method == "Fetch.authRequired") {
    log_in(parameters, session);
  } else if (method == "Target.attachedToTarget") {
    const auto child = text_of(parameters, "sessionId");
    const auto type = text_of(parameters["targetInfo"], "type");
    watch(child, type == "iframe" || type == "page");
    browser_.send("Runtime.runIfWaitingForDebugger", {}, child);
  } else {
    return false;
  }
  return true;
}

// A site that asks for a password gets none; a proxy gets that of the environment, once.
void Recorder::log_in(const Json& parameters, const std::string& session) {
  Json answer{{"response", "CancelAuth"}};
  if (text_of(parameters["authChallenge"], "source") == "Proxy" &&
      logged_in_.insert(text_of(parameters, "requestId")).second)
    for (const auto& proxy : other_proxies())
      if (!proxy.user.empty())
        answer = {{"response", "ProvideCredentials"}, {"username", proxy.user}, {"password", proxy.password}};
  browser_.send("Fetch.continueWithAuth",
                {{"requestId", parameters["requestId"]}, {"authChallengeResponse", std::move(answer)}}, session);
}

std::size_t Recorder::open_requests() const {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    const auto& type = entry.second->type;
    return type != "EventSource" && type != "Ping" && type != "Media" && type != "Other";
  }));
}

void Recorder::request_sent(const Json& parameters, const std::string& session) {
  const auto id = text_of(parameters, "requestId");
  const auto& request = parameters["request"];
  const auto url = text_of(request, "url");
  last_change_ = Clock::now();
  std::size_t hop = 0;
  if (const auto before = entries_.find(id); before != entries_.end()) {
    const auto entry = before->second;
    if (parameters.contains("redirectResponse")) take_response(*entry, parameters["redirectResponse"]);
    hop = entry->hop + 1;
    end(entry);
  }
  if (!on_the_network(url)) return;
  const auto entry = std::make_shared<Entry>();
  entry->request_id = id;
  entry->session = session;
  entry->hop = hop;
  entry->type = text_of(parameters, "type");
  entry->frame = text_of(parameters, "frameId");
  entry->exchange.url = url;
  entry->exchange.method = request.value("method", "GET");
  entry->exchange.date = base::utc_timestamp();
  entry->exchange.request_headers = headers_from(request.value("headers", Json::object()));
  entry->exchange.request_body = text_of(request, "postData");
  entries_[id] = entry;
  if (entry->type != "Document") ask_for_bytes(entry);
}

// A document is known to its renderer only when its response has come.
void Recorder::ask_for_bytes(const std::shared_ptr<Entry>& entry) {
  if (entry->asked) {
    if (entry->streaming) let_go(entry->request_id);
    return;
  }
  entry->asked = true;
  browser_.send("Network.streamResourceContent", {{"requestId", entry->request_id}}, entry->session,
                [this, entry](const Json& result, const std::string& error) {
                  if (error.empty()) {
                    entry->streaming = true;
                    add_bytes(*entry, base::base64_decode(text_of(result, "bufferedData")));
                  }
                  let_go(entry->request_id);
                });
}

void Recorder::let_go(const std::string& request_id) {
  const auto held = held_.find(request_id);
  if (held == held_.end()) return;
  browser_.send("Fetch.continueRequest", {{"requestId", held->second.pause}}, held->second.session);
  held_.erase(held);
}

void Recorder::let_go_of_old() {
  std::vector<std::string> old;
  for (const auto& [id, held] : held_)
    if (Clock::now() - held.since > kLongestHold) old.push_back(id);
  for (const auto& id : old)
    let_go(id);
}

void Recorder::paused(const Json& parameters, const std::string& session) {
  const auto pause = text_of(parameters, "requestId"), id = text_of(parameters, "networkId");
  const auto type = text_of(parameters, "resourceType");
  if (parameters.contains("responseStatusCode") || parameters.contains("responseErrorReason")) {
    if (parameters.contains("responseStatusCode") && rules_.keep_from_browser && rules_.keep_from_browser(parameters))
      take_body(parameters, session);
    else
      browser_.send("Fetch.continueRequest", {{"requestId", pause}}, session);
    return;
  }
  const auto url = text_of(parameters["request"], "url");
  const auto why = full_           ? std::string("the limit of the page's size is reached")
                   : rules_.refuse ? rules_.refuse(url, type, text_of(parameters, "frameId"))
                                   : std::string();
  if (!why.empty()) {
    browser_.send("Fetch.failRequest", {{"requestId", pause}, {"errorReason", "BlockedByClient"}}, session);
    return;
  }
  if (rules_.source != nullptr && on_the_network(url))
    return answer_from(*rules_.source, browser_, parameters, session);
  const auto known = entries_.find(id);
  const bool can_wait =
      type != "Document" && !id.empty() && on_the_network(url) && type != "Ping" && type != "Preflight";
  if (!can_wait || (known != entries_.end() && known->second->asked && known->second->streaming)) {
    browser_.send("Fetch.continueRequest", {{"requestId", pause}}, session);
    return;
  }
  held_[id] = {session, pause, Clock::now()};
  // Chromium's processes speak in any order. A request that its page does not announce is let go when the answer to a
  // command that was sent now has come from the page: what was said before it has been said.
  if (known == entries_.end())
    browser_.send("Runtime.evaluate", {{"expression", "0"}}, session, [this, id](const Json&, const std::string&) {
      const auto announced = entries_.find(id);
      if (announced == entries_.end() || !announced->second->asked) let_go(id);
    });
}

void Recorder::take_response(Entry& entry, const Json& response) {
  entry.responded = true;
  entry.exchange.status = response.value("status", 0);
  entry.exchange.reason = text_of(response, "statusText");
  if (entry.exchange.reason.empty()) entry.exchange.reason = reason_of(entry.exchange.status);
  entry.exchange.response_headers = headers_from(response.value("headers", Json::object()));
  if (egress_proxy().empty()) entry.exchange.remote_address = text_of(response, "remoteIPAddress"); // else the proxy's
  entry.charset = text_of(response, "charset");
  if (response.value("fromServiceWorker", false)) entry.skip = true; // what the worker itself fetched is recorded
}

void Recorder::response_received(const Json& parameters) {
  const auto found = entries_.find(text_of(parameters, "requestId"));
  if (found == entries_.end()) return;
  last_change_ = Clock::now();
  const auto entry = found->second;
  take_response(*entry, parameters["response"]);
  if (entry->type == "Document") ask_for_bytes(entry);
}

void Recorder::add_bytes(Entry& entry, std::string_view bytes) {
  if (entry.overfull || bytes.empty()) return;
  if (rules_.most_bytes > 0 && kept_ + bytes.size() > rules_.most_bytes) {
    bytes = bytes.substr(0, static_cast<std::size_t>(rules_.most_bytes - std::min(kept_, rules_.most_bytes)));
    entry.overfull = full_ = true;
    entry.exchange.truncated = "length";
  }
  kept_ += bytes.size();
  entry.body.add(bytes);
}

void Recorder::data_received(const Json& parameters) {
  const auto found = entries_.find(text_of(parameters, "requestId"));
  if (found == entries_.end()) return;
  last_change_ = Clock::now();
  auto& entry = *found->second;
  entry.announced += parameters.value("dataLength", std::uint64_t{0});
  if (const auto data = parameters.find("data"); data != parameters.end() && data->is_string())
    add_bytes(entry, base::base64_decode(data->get_ref<const std::string&>()));
}

void Recorder::loading_finished(const Json& parameters) {
  const auto found = entries_.find(text_of(parameters, "requestId"));
  if (found == entries_.end()) return;
  last_change_ = Clock::now();
  const auto entry = found->second;
  if (!entry->skip && !entry->overfull && entry->body.size() < entry->announced)
    fetch_body(entry);
  else
    end(entry);
}

// The bytes did not come by themselves: the document was over before it could be asked for. Chromium then gives its
// text, which goes back to the charset that it was read with. What was not valid in that charset, and a byte order
// mark, are lost on the way: the length tells.
void Recorder::fetch_body(const std::shared_ptr<Entry>& entry) {
  if (entry->type == "Document" && entry->charset.empty())
    browser_.send("Runtime.evaluate", {{"expression", "document.characterSet"}, {"returnByValue", true}},
                  entry->session, [entry](const Json& result, const std::string&) {
                    entry->charset = text_of(result.value("result", Json::object()), "value");
                  });
  browser_.send("Network.getResponseBody", {{"requestId", entry->request_id}}, entry->session,
                [this, entry](const Json& result, const std::string& error) {
                  if (error.empty() && entry->body.size() == 0) {
                    const auto text = text_of(result, "body");
                    if (result.value("base64Encoded", false))
                      add_bytes(*entry, base::base64_decode(text));
                    else
                      add_bytes(*entry, encode_text(text, entry->charset));
                    if (!entry->overfull && entry->body.size() != entry->announced)
                      entry->exchange.truncated = "unspecified";
                  } else {
                    entry->exchange.truncated = "disconnect";
                  }
                  end(entry);
                });
}

void Recorder::loading_failed(const Json& parameters) {
  const auto found = entries_.find(text_of(parameters, "requestId"));
  if (found == entries_.end()) return;
  last_change_ = Clock::now();
  const auto entry = found->second;
  if (taking_ && taking_->entry == entry && !taking_->over) return; // we ended it ourselves
  ++failed_;
  if (entry->exchange.truncated.empty()) entry->exchange.truncated = "disconnect";
  if (entry->type != "Document" || !parameters.value("canceled", false)) return end(entry);
  let_go(entry->request_id);
  entries_.erase(found);
  dropped_.push_back(entry);
}

void Recorder::end(const std::shared_ptr<Entry>& entry) {
  let_go(entry->request_id);
  if (const auto found = entries_.find(entry->request_id); found != entries_.end() && found->second == entry)
    entries_.erase(found);
  write(*entry);
  if (rules_.finished) rules_.finished({entry->exchange, entry->body, entry->request_id, entry->type, entry->frame});
}

void Recorder::write(Entry& entry) {
  if (!entry.responded || entry.skip || entry.exchange.status == 0) return;
  if (const auto found = extra_.find(entry.request_id); found != extra_.end()) {
    auto& [request, response] = found->second;
    if (entry.hop < request.size()) entry.exchange.request_headers = request[entry.hop];
    if (entry.hop < response.size()) entry.exchange.response_headers = response[entry.hop];
  }
  if (egress_reason(entry.exchange.response_headers).empty()) warc_.add(entry.exchange, entry.body);
}

// Keeps a document from the browser: what it cannot show would become a download.
void Recorder::take_body(const Json& parameters, const std::string& session) {
  const auto found = entries_.find(text_of(parameters, "networkId"));
  taking_.emplace();
  taking_->session = session;
  taking_->paused = text_of(parameters, "requestId");
  taking_->entry = found == entries_.end() ? std::make_shared<Entry>() : found->second;
  auto& entry = *taking_->entry;
  if (entry.exchange.url.empty()) entry.exchange.url = text_of(parameters["request"], "url");
  std::erase_if(dropped_, [&](const auto& dropped) { return dropped->exchange.url == entry.exchange.url; });
  if (entry.exchange.date.empty()) entry.exchange.date = base::utc_timestamp();
  entry.responded = true;
  entry.exchange.status = parameters.value("responseStatusCode", 0);
  entry.exchange.reason = text_of(parameters, "responseStatusText");
  if (entry.exchange.reason.empty()) entry.exchange.reason = reason_of(entry.exchange.status);
  entry.exchange.response_headers = headers_from_list(parameters.value("responseHeaders", Json::array()));
  browser_.send("Fetch.takeResponseBodyAsStream", {{"requestId", taking_->paused}}, session,
                [this](const Json& result, const std::string& error) {
                  taking_->stream = text_of(result, "stream");
                  if (error.empty())
                    read_stream();
                  else
                    end_taking(false);
                });
}

void Recorder::read_stream() {
  browser_.send("IO.read", {{"handle", taking_->stream}, {"size", kReadAtOnce}}, taking_->session,
                [this](const Json& result, const std::string& error) {
                  if (taking_->over) return;
                  last_change_ = Clock::now();
                  const auto data = result.find("data");
                  if (error.empty() && data != result.end()) {
                    const auto& text = data->get_ref<const std::string&>();
                    add_bytes(*taking_->entry, result.value("base64Encoded", false) ? base::base64_decode(text) : text);
                  }
                  if (!error.empty() || full_)
                    end_taking(false);
                  else if (result.value("eof", true))
                    end_taking(true);
                  else
                    read_stream();
                });
}

void Recorder::end_taking(bool whole) {
  auto& entry = *taking_->entry;
  const auto length = header_of(entry.exchange.response_headers, "content-length");
  const bool coded = !header_of(entry.exchange.response_headers, "content-encoding").empty();
  if (whole && !coded && !length.empty() && length != std::to_string(entry.body.size())) whole = false;
  if (!whole && entry.exchange.truncated.empty()) entry.exchange.truncated = "disconnect";
  taking_->over = true;
  taking_->whole = whole;
  if (!taking_->stream.empty()) browser_.send("IO.close", {{"handle", taking_->stream}}, taking_->session);
  browser_.send("Fetch.failRequest", {{"requestId", taking_->paused}, {"errorReason", "Aborted"}}, taking_->session);
  end(taking_->entry);
}

void Recorder::finish(const std::string& why) {
  if (taking_ && !taking_->over) {
    taking_->entry->exchange.truncated = why;
    end_taking(false);
  }
  const auto entries = entries_;
  for (const auto& [id, entry] : entries) {
    if (entry->exchange.truncated.empty()) entry->exchange.truncated = why;
    end(entry);
  }
  for (const auto& entry : std::exchange(dropped_, {}))
    write(*entry);
}

} // namespace holdfast::capture
