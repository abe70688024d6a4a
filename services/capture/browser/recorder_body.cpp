// How the bodies of a page's requests and responses come.

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/time.hpp"
#include "services/capture/browser/recorder.hpp"
#include "services/capture/browser/wire.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::size_t kReadAtOnce = 1u << 19;

} // namespace

// The body of a request with files, which Chromium reads only if it is asked to.
void Recorder::ask_request_body(const std::shared_ptr<Entry>& entry) {
  ++awaited_;
  entry->asking = true;
  browser_.send("Network.getRequestPostData", {{"requestId", entry->request_id}}, entry->session,
                [this, entry](const Json& result, const std::string& error) {
                  --awaited_;
                  const auto text = text_at(result, "postData");
                  auto& exchange = entry->exchange;
                  exchange.request_body = result.value("base64Encoded", false) ? base::base64_decode(text) : text;
                  exchange.request_cut = !error.empty();
                  entry->asking = false;
                  if (entry->ended) end(entry);
                });
}

// From now on the bytes come as they arrive, behind those that have. A document is known to its renderer only when its
// response has come, and can be asked for no more once its frame goes elsewhere. `awaited`: before the record ends.
void Recorder::stream(const std::shared_ptr<Entry>& entry, bool awaited) {
  awaited_ += awaited;
  browser_.send("Network.streamResourceContent", {{"requestId", entry->request_id}}, entry->session,
                [this, entry, awaited](const Json& result, const std::string& error) {
                  awaited_ -= awaited;
                  const auto before = base::base64_decode(text_at(result, "bufferedData"));
                  entry->streaming = error.empty() && before.size() == entry->announced && entry->body.size() == 0;
                  if (entry->streaming) add_bytes(*entry, before);
                });
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

// Fetches Chromium's copy of a body: the bytes before any interpretation.
void Recorder::fetch_body(const std::shared_ptr<Entry>& entry, std::function<void()> then) {
  entry->fetching = true;
  ++awaited_;
  browser_.send("Network.getResponseBody", {{"requestId", entry->request_id}}, entry->session,
                [this, entry, then = std::move(then)](const Json& result, const std::string& error) {
                  --awaited_;
                  const auto text = text_at(result, "body");
                  const auto bytes = result.value("base64Encoded", false) ? base::base64_decode(text) : text;
                  if (error.empty() && bytes.size() > entry->body.size())
                    add_bytes(*entry, std::string_view(bytes).substr(entry->body.size()));
                  then();
                });
}

// Keeps a document from the browser: what it cannot show would become a download.
void Recorder::take_body(const Json& parameters, const std::string& session) {
  const auto id = request_of(parameters);
  const auto found = entries_.find(id);
  const auto taking = std::make_shared<Taking>();
  takings_.push_back(taking);
  taking->session = session;
  taking->paused = text_at(parameters, "requestId");
  taking->entry = found == entries_.end() ? std::make_shared<Entry>() : found->second;
  auto& entry = *taking->entry;
  entry.request_id = id;
  entry.type = "Document";
  if (entry.exchange.url.empty()) entry.exchange.url = text_at(parameters["request"], "url");
  taken_.insert(entry.exchange.url);
  asked_.insert(entry.exchange.url);
  if (entry.exchange.date.empty()) entry.exchange.date = base::utc_timestamp();
  entry.responded = true;
  entry.exchange.status = parameters.value("responseStatusCode", 0);
  entry.exchange.reason = text_at(parameters, "responseStatusText");
  if (entry.exchange.reason.empty()) entry.exchange.reason = reason_of(entry.exchange.status);
  entry.exchange.response_headers = headers_from_list(parameters.value("responseHeaders", Json::array()));
  browser_.send("Fetch.takeResponseBodyAsStream", {{"requestId", taking->paused}}, session,
                [this, taking](const Json& result, const std::string& error) {
                  taking->stream = text_at(result, "stream");
                  if (error.empty())
                    read_stream(taking);
                  else
                    end_taking(*taking, false);
                });
}

void Recorder::read_stream(const std::shared_ptr<Taking>& taking) {
  browser_.send("IO.read", {{"handle", taking->stream}, {"size", kReadAtOnce}}, taking->session,
                [this, taking](const Json& result, const std::string& error) {
                  if (taking->over) return;
                  last_change_ = taking->entry->last = Clock::now();
                  const auto data = result.find("data");
                  if (error.empty() && data != result.end()) {
                    const auto& text = data->get_ref<const std::string&>();
                    add_bytes(*taking->entry, result.value("base64Encoded", false) ? base::base64_decode(text) : text);
                  }
                  if (!error.empty() || full_)
                    end_taking(*taking, false);
                  else if (result.value("eof", true))
                    end_taking(*taking, true);
                  else
                    read_stream(taking);
                });
}

void Recorder::end_taking(Taking& taking, bool ended) {
  auto& entry = *taking.entry;
  const bool whole = ended && compared(entry.exchange, entry.body.size()) != Length::wrong;
  if (!whole && entry.exchange.truncated.empty()) entry.exchange.truncated = "disconnect";
  taking.over = true;
  if (!taking.stream.empty()) browser_.send("IO.close", {{"handle", taking.stream}}, taking.session);
  browser_.send("Fetch.failRequest", {{"requestId", taking.paused}, {"errorReason", "Aborted"}}, taking.session);
  end(taking.entry);
}

} // namespace holdfast::capture
