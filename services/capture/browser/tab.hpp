#pragma once
// The snapshot hook of the browser plugin.

#include "services/capture/browser/documents.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/browser/persona.hpp"
#include "services/capture/browser/recorder.hpp"
#include "services/capture/extract/reading.hpp"
#include "services/capture/hook.hpp"
#include "services/capture/replay/replay_source.hpp"

#include <map>
#include <set>

namespace holdfast::capture {

// Loads the page once, in a browser context of its own, records its traffic into page.warc.gz, prints that it is ready,
// and keeps the tab until SIGTERM. tab.cpp leads to the page and reads it; tab_ending.cpp decides what became of it.
class Tab {
public:
  // `source`: answers in place of the network, or null.
  Tab(Job& job, ReplaySource* source);
  // Throws Ending when there is nothing to keep.
  Result run();

private:
  static constexpr const char* kWarc = "page.warc.gz";
  static constexpr const char* kSource = "source";
  static constexpr const char* kRead = "read"; // what there is to read, for other hooks
  struct Kept {                                // a response that is no page for a browser
    std::string url;
    bool over{false}, whole{false};
    std::uint64_t bytes{0};
  };

  Recorder::Rules rules();
  std::string refuse(const std::string& url, const std::string& type, const std::string& frame);
  bool keep_from_browser(const Json& paused);
  void finished(const Recorder::Finished& exchange);
  void take(const std::string& method, const Json& parameters, const std::string& session);
  Json call(const std::string& method, Json parameters = nullptr, std::optional<Clock::time_point> until = {});
  bool wait(Clock::time_point until, const std::function<bool()>& done);
  void open();
  void load();
  Clock::time_point answer_by() const;
  std::string not_fetched(const std::string& error) const;
  void navigate();
  void take_download();
  void describe();
  bool arrive();
  void settle();
  void read();
  std::string what_came() const { return shown().bytes > 0 ? "; kept what there was" : "; nothing of it came"; }
  void refuse_signed_out();
  void judge();
  void judge_kept();
  void refuse_error_page();
  std::vector<std::string> not_asked_for(std::string_view elements);
  void count_resources();
  Result close();
  const Documents::Document& shown() const { return documents_.shown(); }
  // The page is none for a browser, and all of it has come that will.
  bool kept_over() const { return kept_ != nullptr && kept_->over; }
  bool over() const { return documents_.loaded() || !shown().broken.empty() || kept_over() || !crashed_.empty(); }
  std::string site() const { return host_in(job_.url()); }

  Job& job_;
  ReplaySource* const source_;      // null: the network
  const Clock::time_point give_up_; // then only the time to save the page is left
  const std::uint64_t limit_;
  DevTools browser_;
  Persona persona_;
  warc::Writer warc_;
  Recorder recorder_;
  Reading reading_;
  Documents documents_;
  PageRecord page_;
  Json identity_; // what the browser says of itself
  std::string session_, frame_, context_;
  std::map<std::string, Kept> files_; // by request
  std::set<std::string> file_names_;
  Kept* kept_{nullptr}; // the page itself is one of them
  std::string not_page_, crashed_, refused_;
  bool downloads_{false};
  std::optional<bool> page_is_private_;
};

Result run_tab(Job& job);
// Captures a page with answers of `source` in place of the network.
Result replay_tab(Job& job, ReplaySource& source);

} // namespace holdfast::capture
