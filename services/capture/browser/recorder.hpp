#pragma once
// Records the network traffic of a page's sessions, as Chromium reports it, into a WARC.
//
// Bodies come as bytes, after the content coding, before any interpretation. Those of a page's files are streamed as
// they arrive (Network.streamResourceContent) and pass through a Spool, so that memory stays bounded. Documents, and
// other bodies without a stream, are fetched when they have ended, from the copy that Chromium's network service keeps
// of received data (durable messages), also of downloads and of broken responses.
//
// CPU for a page of 14 requests, Chromium included (debug build, medians): 355 ms with each request held until its
// stream was agreed on, 369 ms so; if all bodies were fetched at their end, 422 ms beside 385 ms. Taking documents at
// their response and handing them on (Fetch.fulfillRequest) was not measured: it would show a page only when all of it
// has come, and hide from Chromium the facts that it finds about the type. A proxy with a certificate authority would
// also see wget's traffic, but ends TLS and HTTP/2 itself.

#include "lib/warc/writer.hpp"
#include "services/capture/browser/devtools.hpp"
#include "services/capture/browser/sockets.hpp"
#include "services/capture/browser/wire.hpp"
#include "services/capture/replay/replay_source.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::capture {

// A request that brings nothing for so long no longer holds up the reading of the page, or its end.
inline constexpr Seconds kPatience{4}, kLongestSilence{15};

class Recorder {
public:
  struct Finished { // one exchange that has ended
    const warc::Exchange& exchange;
    const warc::Spool& body;
    const std::string& request_id;
    const std::string& type;  // of Chromium: "Document", "Image", ...
    const std::string& frame; // its id
  };
  struct Rules {
    std::uint64_t most_bytes{0};
    ReplaySource* source{nullptr}; // answers in place of the network; null: the network does
    // Returns why a request must not be sent ("" : it may), in words for users.
    std::function<std::string(const std::string& url, const std::string& type, const std::string& frame)> refuse;
    // A document's response has come; true: it is taken here instead of being shown (see take_body).
    std::function<bool(const Json& paused)> keep_from_browser;
    // Returns user and password for a server that requires them.
    std::function<std::optional<std::pair<std::string, std::string>>(const std::string& origin)> login;
    // Returns the headers to send to a URL in place of its own; null: those.
    std::function<Json(const std::string& url, const Json& own)> headers;
    std::function<void(const Finished&)> finished;
  };

  Recorder(DevTools& browser, warc::Writer& warc, Rules rules);

  // Begins to record a session, and later those of its frames and workers. `holds`: its requests pass through here.
  void watch(const std::string& session, bool holds);
  // Takes an event of any session; false if it is none of the recorder's.
  bool take(const std::string& method, const Json& parameters, const std::string& session);

  // The id of a request that Fetch holds, by which Finished names it.
  static std::string request_of(const Json& paused);
  // Requests whose answers a person would wait for; without pictures, those that may bring more requests.
  std::size_t open_requests(bool pictures = true) const;
  // Files of the page that may still come.
  std::size_t open_files() const;
  // Style sheets that have been asked for, and of which something has come within `patience`.
  std::size_t open_styles(Seconds patience) const;
  std::size_t urls_asked() const { return asked_.size(); }
  Clock::time_point last_change() const { return last_change_; }
  bool full() const { return full_; }
  std::size_t failed_requests() const { return failed_; }
  // Returns requests that are not in the record, or not complete: URL and reason. `requests`: all of them.
  const std::vector<std::pair<std::string, std::string>>& missing() const { return missing_; }
  // URLs of documents that the browser has dropped before they were whole, and of files of which it has only pieces.
  std::set<std::string> dropped() const;
  std::size_t requests() const { return requests_; }
  bool has_asked_for(const std::string& url) const { return asked_.contains(url); }
  bool has_whole(const std::string& url) const { return whole_.contains(url); }

  // While one lives, requests are of the reader and not of the page.
  class Fetching {
  public:
    explicit Fetching(Recorder& recorder) : recorder_(recorder) { recorder_.fetches_ = true; }
    ~Fetching() { recorder_.fetches_ = false; }
    Fetching(const Fetching&) = delete;
    Fetching& operator=(const Fetching&) = delete;

  private:
    Recorder& recorder_;
  };
  bool fetches() const { return fetches_; }
  // Writes what has not ended, as truncated.
  void finish(const std::string& why);

private:
  struct Entry {
    warc::Exchange exchange;
    warc::Spool body;
    std::string request_id, type, frame, session, error;
    std::size_t hop{0};                   // of its redirects
    std::uint64_t announced{0};           // bytes that Chromium said have come
    Clock::time_point last{Clock::now()}; // when something of it was told
    bool streaming{false}, fetching{false}, responded{false}, overfull{false}, skip{false}, redirected{false},
        replaced{false};                                                 // another document has come in its place
    bool asking{false};                                                  // for the body of the request
    bool finished{false};                                                // Chromium has told its end
    bool ended{false}, forbidden{false}, from_cache{false}, ours{false}; // ours: the reader requested it
  };
  struct Taking { // a document's body by Fetch
    std::shared_ptr<Entry> entry;
    std::string session, paused, stream;
    bool over{false};
  };
  struct Extra {
    std::deque<Headers> request;
    std::deque<SentResponse> response;
  };

  std::size_t count_open(Seconds patience, const std::function<bool(const std::string& type)>& counts) const;
  void log_in(const Json& parameters, const std::string& session);
  void request_sent(const Json& parameters, const std::string& session);
  void response_received(const Json& parameters, const std::string& session);
  void data_received(const Json& parameters);
  void loading_finished(const Json& parameters);
  void loading_failed(const Json& parameters);
  void paused(const Json& parameters, const std::string& session);
  void take_body(const Json& paused, const std::string& session);
  void read_stream(const std::shared_ptr<Taking>& taking);
  void end_taking(Taking& taking, bool ended);
  void left(const std::string& frame, const std::string& document);
  void add_bytes(Entry& entry, std::string_view bytes);
  void stream(const std::shared_ptr<Entry>& entry, bool awaited = true);
  void ask_request_body(const std::shared_ptr<Entry>& entry);
  void fetch_body(const std::shared_ptr<Entry>& entry, std::function<void()> then);
  void end(const std::shared_ptr<Entry>& entry);
  void drop(const std::shared_ptr<Entry>& entry);
  bool is_taken(const Entry& entry) const;
  void take_response(Entry& entry, const Json& response);
  void take_sent(Entry& entry);
  void write(Entry& entry);
  void count(const Entry& entry);

  DevTools& browser_;
  warc::Writer& warc_;
  const Rules rules_;
  Sockets sockets_{warc_};
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_; // by request
  // Documents that the browser has dropped, such as downloads, pieces of a film that broke off, and what it fetched
  // ahead for itself. They are written at the end, unless their URL has been taken: asked for again, or recorded whole.
  // That may be known before they end.
  std::vector<std::shared_ptr<Entry>> dropped_;
  std::set<std::string> taken_;                  // URLs
  std::unordered_map<std::string, Extra> extra_; // by request
  std::set<std::string> logged_in_;              // requests that have been given a login
  std::vector<std::shared_ptr<Taking>> takings_;
  std::uint64_t kept_{0};
  std::set<std::string> asked_;          // URLs
  std::set<std::string> whole_, pieces_; // of them, those whose whole body, or a part of it, is in the record
  std::vector<std::pair<std::string, std::string>> missing_;
  std::size_t requests_{0};
  std::size_t failed_{0}, awaited_{0}; // awaited: answers that bring bytes
  bool full_{false}, fetches_{false};
  Clock::time_point last_change_{Clock::now()};
};

} // namespace holdfast::capture
