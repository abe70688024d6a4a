#pragma once
// The timeline of a snapshot's main frame: each document that it showed, and how it came to be shown. One of them is
// the page: the last one that the frame committed before it rested. From then on the frame is held (Reading::hold), so
// that every result is of that document. A download, an answer without content and a navigation that another one has
// overtaken are never committed: the frame goes on showing what it showed. What a script makes of the document itself
// (blob:, javascript:) belongs to it. Owned by the tab, used from its thread.

#include "services/capture/browser/page_record.hpp"

#include <string>
#include <vector>

namespace holdfast::capture {

class Documents {
public:
  struct Document {
    std::string id, loader;  // of its request; of what the frame shows for it
    std::string asked, url;  // the URL that was asked for, and the one that answered
    std::string cause;       // "request" (ours), "script", "refresh", "reload"
    std::string date;        // when it was asked for
    std::string committed{}; // and shown; empty: it was not
    std::vector<PageRecord::Redirect> steps{};
    int status{0};
    std::string reason{}, content_type{};
    Json headers = Json::object(); // names in lower case
    bool whole{false};             // in the record
    std::uint64_t bytes{0};        // there
    std::string broken{};          // why it did not arrive whole
  };

  void watch(std::string session, std::string frame);
  // Takes an event of any session. `held`: navigations are stopped.
  void take(const std::string& method, const Json& parameters, const std::string& session, bool held);
  // The body of a document is in the record. False: the main frame shows none with this request.
  bool recorded(const std::string& request, bool whole, std::uint64_t bytes);
  // The answer to the last request has come and is kept from the frame.
  void answered(const Json& response);
  // The document that has been asked for is not waited for any more: the frame shows what it showed.
  void stay() { pending_ = false, stayed_ = true; }
  bool stayed() const { return stayed_; }
  // Before the same page is asked for again.
  void forget() { *this = Documents(session_, frame_); }

  // The document that the frame shows; before the first one, what was asked for.
  const Document& shown() const { return shown_.empty() ? last_ : shown_.back(); }
  bool any() const { return !shown_.empty(); }
  std::size_t count() const { return shown_.size(); }
  // Another document has been asked for, and has neither come nor failed.
  bool leads_on() const { return any() && pending_; }
  Clock::time_point refresh_due() const { return refresh_due_; } // past: none is scheduled
  bool parsed() const { return parsed_; }
  bool loaded() const { return loaded_; }
  const std::string& last_url() const { return last_.url; } // that the frame asked for
  const std::string& error() const { return error_; }       // why that brought no document
  const std::string& refused() const { return refused_; }   // why the egress proxy has answered in place of its server
  std::vector<PageRecord::Redirect> redirects() const;
  Json list() const;

  Documents() = default;

private:
  Documents(std::string session, std::string frame) : session_(std::move(session)), frame_(std::move(frame)) {}
  void request_sent(const Json& parameters);
  void failed(const Json& parameters);
  void committed(const Json& frame);
  Document* find(const std::string& request);

  std::string session_, frame_;
  std::vector<Document> shown_;
  Document last_; // that was asked for
  bool pending_{false}, parsed_{false}, loaded_{false}, stayed_{false};
  Clock::time_point refresh_due_{};
  std::string led_by_, error_, refused_;
};

} // namespace holdfast::capture
