#pragma once
// Records what a page's sessions exchange with the network, as Chromium tells it, into a WARC.
//
// Every request is held (Fetch) until Chromium has agreed to hand over the response's bytes as they arrive
// (Network.streamResourceContent). They are the bytes after decoding of the content coding, in the page's own charset,
// and pass through a Spool, so that memory stays bounded whatever the page loads. Documents are asked for when their
// response is announced; if that comes too late, the body is fetched from Chromium's buffer as text.

#include "lib/warc/writer.hpp"
#include "services/capture/devtools.hpp"
#include "services/capture/replay_source.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::capture {

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
    // Why a request must not be sent ("" : it may), in words for people.
    std::function<std::string(const std::string& url, const std::string& type, const std::string& frame)> refuse;
    // A document's response has come; true: it is taken here instead of being shown (see take_body).
    std::function<bool(const Json& paused)> keep_from_browser;
    std::function<void(const Finished&)> finished;
  };

  Recorder(DevTools& browser, warc::Writer& warc, Rules rules);

  // Begins to record a session, and later those of its frames and workers.
  void watch(const std::string& session, bool is_page);
  // Takes an event of any session; false if it is none of the recorder's.
  bool take(const std::string& method, const Json& parameters, const std::string& session);

  // Requests whose answers a person would wait for.
  std::size_t open_requests() const;
  Clock::time_point last_change() const { return last_change_; }
  // The body of a document that was kept from the browser has arrived, or will not.
  bool taken() const { return !taking_ || taking_->over; }
  bool taken_whole() const { return taking_ && taking_->whole; }
  std::uint64_t taken_bytes() const { return taking_ && taking_->entry ? taking_->entry->body.size() : 0; }
  bool full() const { return full_; }
  std::size_t failed_requests() const { return failed_; }

  // Lets requests go that were held for too long. A page that waits for a synchronous request answers no command.
  void let_go_of_old();
  // Writes what has not ended, as truncated.
  void finish(const std::string& why);

private:
  struct Entry {
    warc::Exchange exchange;
    warc::Spool body;
    std::string request_id, type, frame, session, charset;
    std::size_t hop{0};         // of its redirects
    std::uint64_t announced{0}; // bytes that Chromium said have come
    bool asked{false}, streaming{false}, responded{false}, overfull{false}, skip{false};
  };
  struct Taking { // a document's body by Fetch
    std::shared_ptr<Entry> entry;
    std::string session, paused, stream;
    bool over{false}, whole{false};
  };
  struct Held {
    std::string session, pause;
    Clock::time_point since;
  };
  struct Extra {
    std::deque<Headers> request, response;
  };

  void log_in(const Json& parameters, const std::string& session);
  void request_sent(const Json& parameters, const std::string& session);
  void response_received(const Json& parameters);
  void data_received(const Json& parameters);
  void loading_finished(const Json& parameters);
  void loading_failed(const Json& parameters);
  void paused(const Json& parameters, const std::string& session);
  void ask_for_bytes(const std::shared_ptr<Entry>& entry);
  void let_go(const std::string& request_id);
  void take_body(const Json& paused, const std::string& session);
  void read_stream();
  void end_taking(bool whole);
  void add_bytes(Entry& entry, std::string_view bytes);
  void fetch_body(const std::shared_ptr<Entry>& entry);
  void end(const std::shared_ptr<Entry>& entry);
  void take_response(Entry& entry, const Json& response);
  void write(Entry& entry);

  DevTools& browser_;
  warc::Writer& warc_;
  const Rules rules_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_; // by request
  // Documents that the browser has dropped, such as downloads. They are written at the end, unless one has been asked
  // for again and taken.
  std::vector<std::shared_ptr<Entry>> dropped_;
  std::unordered_map<std::string, Held> held_;   // by request
  std::unordered_map<std::string, Extra> extra_; // by request
  std::set<std::string> logged_in_;              // requests that a proxy has been given a login for
  std::optional<Taking> taking_;
  std::uint64_t kept_{0};
  std::size_t failed_{0};
  bool full_{false};
  Clock::time_point last_change_{Clock::now()};
};

} // namespace holdfast::capture
