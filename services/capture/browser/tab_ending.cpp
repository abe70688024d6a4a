#include "lib/base/text/text.hpp"
#include "services/capture/browser/browser_page.hpp"
#include "services/capture/browser/page_file.hpp"
#include "services/capture/browser/tab.hpp"
#include "services/capture/fetch/egress.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr Seconds kAnswer{3};        // a page that works answers within it
constexpr std::string_view kNamers = // elements that name files which a page shows
    "img,link[rel~=stylesheet],frame,iframe,embed,object,audio,video,source[src],track,input[type=image],"
    "script[src]:not([nomodule])";
constexpr std::size_t kManyMissing = 10;

} // namespace

Clock::time_point Tab::answer_by() const {
  return std::min(job_.deadline(), Clock::now() + std::chrono::duration_cast<Clock::duration>(kAnswer));
}

// Returns why the egress proxy did not fetch the last requested document; empty: it did.
std::string Tab::not_fetched(const std::string& error) const {
  if (error == "net::ERR_TUNNEL_CONNECTION_FAILED") return egress_reason(documents_.last_url());
  return documents_.refused();
}

// A page can lead on, by script or refresh, to where there is nothing. Chromium then shows a page of its own in the
// main frame, which must not be taken for the page.
void Tab::refuse_error_page() {
  const auto until = answer_by();
  const auto led = error_page_shown(browser_, session_, until);
  if (led.empty()) return;
  if (!refused_.empty()) throw failed(refused_);
  throw failed(led +
               (documents_.error().empty() ? reason_on_error_page(browser_, session_, until) : documents_.error()));
}

// Returns files that the document names now and that were not requested, such as types without a viewer in Chromium.
std::vector<std::string> Tab::not_asked_for(std::string_view elements) {
  constexpr std::string_view kNamed = R"((elements => {
    const named = new Set();
    for (const e of document.querySelectorAll(elements)) {
      const url = e.currentSrc || e.src || e.data || e.href;
      const script = e.localName !== 'script' || /^(|module|.*(java|ecma)script)$/i.test(e.type);
      if (script && /^https?:/.test(url)) named.add(url.split('#')[0]);
      if (named.size >= 5000) break;
    }
    return [...named];
  }))";
  std::vector<std::string> found;
  std::set<std::string> forbidden; // frames that the page's own policy keeps out
  const auto tree = call("Page.getFrameTree", nullptr, answer_by())["frameTree"];
  for (const auto& child : tree.value("childFrames", Json::array()))
    forbidden.insert(text_at(child["frame"], "unreachableUrl"));
  const auto expression = std::string(kNamed) + "('" + std::string(elements) + "')";
  for (const auto& url : browser_.evaluate(expression, session_, answer_by()))
    if (url.is_string() && !recorder_.has_asked_for(url.get<std::string>()) &&
        !forbidden.contains(url.get<std::string>()))
      found.push_back(url.get<std::string>());
  return found;
}

// Refuses a page that is shown without a login. The worker gets a report: it waits for a new session.
void Tab::refuse_signed_out() {
  if (source_ != nullptr) return;
  const auto reason =
      persona_.why_signed_out(context_, session_, job_.url(), page_.url, page_.status, kept_ == nullptr, answer_by());
  if (reason.empty()) return;
  emit({{"type", "SignedOut"}, {"reason", one_line(reason, 250)}});
  throw unreachable("signed out: " + reason);
}

void Tab::judge_kept() {
  refuse_signed_out();
  if (!crashed_.empty()) throw failed(crashed_);
  if (!kept_->over) recorder_.finish("time");
  if (recorder_.full())
    throw failed("the page is larger than BROWSER_MAX_SIZE (" + std::to_string(limit_) + " bytes); kept its beginning");
  if (!kept_->whole) throw failed("the file did not arrive whole; kept " + std::to_string(kept_->bytes) + " bytes");
  page_.complete = page_.finished = true;
  throw no_results(not_page_);
}

// Decides the outcome. Throws if there is no page to look at.
void Tab::judge() {
  if (page_.status >= kFirstError) refuse_signed_out();
  if (!crashed_.empty()) throw failed(crashed_);
  if (const auto reason = not_fetched(documents_.error()); !reason.empty()) {
    if (page_.status == 0 && page_.redirects.empty()) throw egress_ending(reason);
    throw failed("the page led to " + documents_.last_url().substr(0, 500) + ": " + reason);
  }
  bool busy = false; // a script does not end
  const auto ask = [&](const auto& question) {
    try {
      if (!busy) question();
    } catch (const Silent&) {
      busy = true;
    }
  };
  const auto& document = shown();
  if (document.broken.empty()) ask([this] { refuse_error_page(); });
  if (page_.status >= kFirstError)
    throw failed("HTTP " + std::to_string(page_.status) + (page_.doubt.empty() ? "" : ": " + page_.doubt));
  if (const auto why = not_a_page(page_.content_type, ""); !why.empty()) throw no_results(why);
  ask([&] {
    const auto until = answer_by();
    const auto state = browser_.evaluate("document.readyState", session_, until);
    const bool parsed = state.is_string() && state != "loading";
    // A script that does not come keeps a document that has come from being read on.
    page_.complete = (parsed || document.whole) && document.broken.empty();
  });
  page_.finished = documents_.loaded() && !documents_.stayed();
  if (busy) {
    recorder_.finish("time");
    page_.complete = document.whole;
    page_.cut.emplace_back("script");
  } else if (!page_.finished) {
    page_.cut.emplace_back("load");
  }
}

// Compares the record with the requests and the URLs in the document.
void Tab::count_resources() {
  page_.missing = recorder_.missing();
  auto count = recorder_.requests();
  if (!page_.ending && crashed_.empty() && page_.cut.empty()) try {
      for (auto& url : not_asked_for(kNamers)) {
        page_.missing.emplace_back(std::move(url), "not asked for");
        ++count;
      }
    } catch (const Ending&) { // the page does not answer
    }
  job_.report_resources(count, page_.missing);
  Json facts = {{"type", "Facts"}};
  if (!page_.cut.empty()) facts["cut"] = page_.cut;
  if (!page_.doubt.empty()) facts["doubt"] = page_.doubt.starts_with(kChallenge) ? "challenge" : "unfinished";
  if (documents_.count() > 1) facts["documents"] = documents_.count();
  if (facts.size() > 1) emit(facts);
}

// Ends the record, and removes files that only the hooks of this page read.
Result Tab::close() {
  recorder_.finish("time");
  warc_.close();
  if (source_ == nullptr) count_resources();
  page_.held = reading_.held(); // with what was stopped later
  for (const char* name : {kSource, kRead, "icon"})
    ::unlink(name);
  auto kept = page_;
  kept.read.clear();
  if (kept.source == kSource) kept.source.clear();
  kept.icon.clear();
  kept.target.clear();
  save_page_record(job_, kept);
  auto about = page_.about();
  about["requests"] = warc_.exchanges();
  about["failed_requests"] = recorder_.failed_requests();
  about["bytes"] = warc_.bytes();
  if (page_.ending && page_.ending->status == Status::noresults) // nothing to show, and all of it kept
    return {kept.source.empty() ? kWarc : kept.source, about};
  if (page_.ending) {
    auto ending = *page_.ending;
    ending.detail = about;
    throw ending;
  }
  if (recorder_.full())
    throw failed("the page is larger than BROWSER_MAX_SIZE (" + std::to_string(limit_) + " bytes); kept its beginning",
                 about);
  if (!page_.broken.empty()) throw failed("the page broke off: " + page_.broken + what_came(), about);
  if (!page_.complete) throw failed("the page did not arrive whole within the time limit" + what_came(), about);
  if (source_ == nullptr && !shown().whole) throw failed("the record of the page is not whole" + what_came(), about);
  if (!page_.doubt.empty()) throw failed(page_.doubt, about);
  if (const auto lacking = page_.missing.size(), all = recorder_.requests();
      !page_.finished && lacking >= kManyMissing && 2 * lacking > all)
    throw failed("the page did not load within the time limit: " + std::to_string(lacking) + " of " +
                     std::to_string(all) + " files are missing",
                 about);
  return {kWarc, about};
}

} // namespace holdfast::capture
