#include "services/capture/browser/tab.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "services/capture/browser/browser_page.hpp"
#include "services/capture/browser/page_file.hpp"
#include "services/capture/embedded.hpp"
#include "services/capture/extract/icon.hpp"
#include "services/capture/fetch/egress.hpp"
#include "services/capture/fetch/fetch.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::size_t kLargestSource = 8u << 20; // of a document that other hooks read
constexpr int kMostReplaced = 3;                 // documents that scripts make while the page is looked at
constexpr std::size_t kMostSteps = 20;           // documents that lead to others; as many redirects a browser follows

constexpr Seconds kForEver{1e6};

// Errors that are not the page's.
constexpr std::string_view kOwnTrouble[] = {"net::ERR_ABORTED", "net::ERR_BLOCKED_BY_CLIENT",
                                            "net::ERR_INSUFFICIENT_RESOURCES", "net::ERR_INTERNET_DISCONNECTED",
                                            "net::ERR_NETWORK_CHANGED"};

volatile sig_atomic_t told_to_end = 0;

Clock::time_point after(Seconds seconds) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds); }

Json context_like() {
  Json wanted = {{"disposeOnDetach", true}};
  if (const auto proxy = egress_proxy(); !proxy.empty()) // the page's own, not that of the browser
    wanted.update({{"proxyServer", proxy}, {"proxyBypassList", "<-loopback>"}});
  return wanted;
}

} // namespace

Tab::Tab(Job& job, ReplaySource* source)
    : job_(job), source_(source),
      give_up_(job.deadline() -
               std::chrono::duration_cast<Clock::duration>(Seconds(std::min(15.0, 0.25 * job.timeout())))),
      limit_(Job::size("BROWSER_MAX_SIZE", "1g")), browser_(browser_socket()), persona_(browser_),
      warc_(kWarc,
            {{"date", base::utc_timestamp()},
             {"software", "Holdfast"},
             {"format", "WARC File Format 1.1"},
             {"isPartOf", job.url()}},
            warc::OmittedHeaders(Job::setting("WARC_OMIT_HEADERS"))),
      recorder_(browser_, warc_, rules()), reading_(browser_, recorder_, effort_of(job, persona_.signs_in()), give_up_,
                                                    [this](auto until, const auto& done) {
                                                      return wait(until, [&] { return !crashed_.empty() || done(); });
                                                    }) {
  page_.url = job.url();
}

Recorder::Rules Tab::rules() {
  Recorder::Rules rules;
  rules.most_bytes = limit_;
  rules.source = source_;
  rules.refuse = [this](const auto& url, const auto& type, const auto& frame) { return refuse(url, type, frame); };
  rules.keep_from_browser = [this](const Json& paused) { return keep_from_browser(paused); };
  rules.login = [this](const auto& origin) { return persona_.login(origin); };
  rules.headers = [this](const auto& url, const Json& own) { return persona_.headers(url, own); };
  rules.finished = [this](const Recorder::Finished& exchange) { finished(exchange); };
  return rules;
}

// Returns why a request is refused. A page on the internet must not read machines inside through our browser. If the
// page itself is inside, the operator has allowed that. Names are resolved for the page itself only. The egress proxy
// checks all connections.
std::string Tab::refuse(const std::string& url, const std::string& type, const std::string& frame) {
  if (source_ != nullptr) return {}; // nothing is connected to
  const auto host = host_in(url);
  if (host.empty() || host == site() || !egress_proxy().empty()) return {};
  const bool main = type == "Document" && frame == frame_;
  if (!main && !base::is_private_host(host)) return {};
  if (!page_is_private_) page_is_private_ = is_private(site());
  if (*page_is_private_ || !(main ? is_private(host) : true)) return {};
  if (main) refused_ = "refused: " + site() + " points to the private address " + host;
  return "a private address";
}

// Records content without the browser if the browser would not show it. It is the page if the frame shows none yet,
// else a file beside.
bool Tab::keep_from_browser(const Json& paused) {
  if (text_at(paused, "frameId") != frame_) return false;
  Json headers = Json::object();
  for (const auto& item : paused.value("responseHeaders", Json::array()))
    headers[lower_case(text_at(item, "name"))] = text_at(item, "value");
  const int status = paused.value("responseStatusCode", 0);
  if (status >= 300) return false;
  auto why = not_a_page(headers.value("content-type", ""), headers.value("content-disposition", ""));
  if (why.empty() && downloads_) why = kDownload;
  if (why.empty()) return false;
  const auto url = text_at(paused["request"], "url");
  auto& kept = files_[Recorder::request_of(paused)] = {url};
  if (documents_.any()) return true;
  kept_ = &kept;
  not_page_ = why;
  documents_.answered({{"url", url},
                       {"status", status},
                       {"statusText", text_at(paused, "responseStatusText")},
                       {"headers", std::move(headers)}});
  return true;
}

void Tab::take(const std::string& method, const Json& parameters, const std::string& session) {
  if (persona_.take(method, parameters, session)) return;
  reading_.take(method, parameters, session);
  if (method == "Target.attachedToTarget" && !identity_.is_null()) // a frame or worker, before it runs
    browser_.send("Emulation.setUserAgentOverride", identity_, text_at(parameters, "sessionId"));
  if (method == "Fetch.requestPaused" && reading_.stop(parameters, session)) return;
  close_dialog(browser_, method, parameters, session);
  documents_.take(method, parameters, session, reading_.holds());
  if (documents_.count() > kMostSteps && !reading_.holds()) {
    reading_.hold();
    page_.doubt = "the page leads on without end; kept the page after " + std::to_string(kMostSteps) + " steps";
  }
  if (method == "Inspector.targetCrashed" && session == session_) crashed_ = "the page crashed the browser";
  recorder_.take(method, parameters, session);
}

void Tab::finished(const Recorder::Finished& ended) {
  const auto& exchange = ended.exchange;
  const bool whole = exchange.truncated.empty();
  const bool succeeded = exchange.status >= 200 && exchange.status < 300;
  if (const auto file = files_.find(ended.request_id); file != files_.end()) {
    auto& kept = file->second;
    kept = {kept.url, true, whole, ended.body.size()};
    const auto name = whole && succeeded ? keep_file(job_, kept.url, ended.body, file_names_) : "";
    if (&kept == kept_)
      page_.source = name;
    else if (!name.empty())
      page_.files.emplace_back(kept.url, name);
  }
  if (documents_.recorded(ended.request_id, whole, ended.body.size()) && succeeded && kept_ == nullptr) {
    const auto source = ended.body.head(kLargestSource);
    job_.write(kSource, source);
    page_.source = kSource;
    page_.ends_within = source.size() < kLargestSource && !base::trimmed(source).ends_with('>') &&
                        !header_of(exchange.response_headers, "content-encoding").empty() &&
                        header_of(exchange.response_headers, "content-type").find("html") != std::string::npos;
  }
  if (ended.type != "Other" || exchange.status != 200 || !whole || ended.body.size() > kLargestIcon) return;
  const auto bytes = ended.body.head(kLargestIcon);
  if (icon_kind(bytes).empty()) return;
  job_.write("icon", bytes);
  page_.icon = "icon";
  page_.icon_url = exchange.url;
}

Json Tab::call(const std::string& method, Json parameters, std::optional<Clock::time_point> until) {
  return browser_.call(method, std::move(parameters), session_, until.value_or(job_.deadline()));
}

// Waits like pump(), but ends the hook on request.
bool Tab::wait(Clock::time_point until, const std::function<bool()>& done) {
  const bool is_done = browser_.pump(until, [&] { return told_to_end != 0 || done(); });
  if (told_to_end != 0) ::_exit(128 + SIGTERM);
  return is_done;
}

void Tab::open() {
  browser_.on_event(
      [this](const auto& method, const Json& parameters, const auto& session) { take(method, parameters, session); });
  const auto context = browser_.call("Target.createBrowserContext", context_like(), "", give_up_);
  context_ = text_at(context, "browserContextId");
  persona_.give(context_, job_.deadline());
  const auto [width, height] = resolution(job_);
  page_.target = browser_.open_page(context_, give_up_, {{"width", width}, {"height", height}});
  session_ = browser_.attach_to(page_.target, give_up_);
  browser_.send("Page.enable", {}, session_);
  browser_.send("Inspector.enable", {}, session_);
  recorder_.watch(session_, true);
  browser_.send("Emulation.setDeviceMetricsOverride", device_metrics({width, height}), session_);
  identity_ = identity(text_at(browser_.call("Browser.getVersion", nullptr, "", give_up_), "userAgent"));
  page_.user_agent = text_at(identity_, "userAgent");
  browser_.send("Emulation.setUserAgentOverride", identity_, session_);
  if (!Job::flag("CHECK_SSL_VALIDITY", true))
    browser_.send("Security.setIgnoreCertificateErrors", {{"ignore", true}}, session_);
  frame_ = text_at(call("Page.getFrameTree")["frameTree"]["frame"], "id");
  documents_.watch(session_, frame_);
  reading_.attach(session_, frame_, site());
}

void Tab::navigate() {
  const auto answer = browser_.ask("Page.navigate", {{"url", job_.url()}}, session_);
  wait(give_up_, [&] { return answer->there || kept_over() || !crashed_.empty(); });
  describe();
  if (kept_ != nullptr || !crashed_.empty()) return;
  if (!answer->there) throw unreachable(site() + ": no answer in time");
  const auto error = answer->error.empty() ? text_at(answer->result, "errorText") : answer->error;
  if (error.empty()) return;
  if (!refused_.empty()) throw failed(refused_);
  if (answer->result.value("isDownload", false)) return take_download();
  if (const auto reason = not_fetched(error); !reason.empty()) throw egress_ending(reason);
  if (has_no_content(page_.status))
    throw failed("the server sent no content (HTTP " + std::to_string(page_.status) + ")");
  if (error == "net::ERR_HTTP_RESPONSE_CODE_FAILURE") // an error status without a body
    throw failed("HTTP " + std::to_string(page_.status));
  if (std::find(std::begin(kOwnTrouble), std::end(kOwnTrouble), error) != std::end(kOwnTrouble))
    throw failed(site() + ": " + error);
  throw unreachable(site() + ": " + error);
}

// Handles a page that Chromium treats as a download after its first bytes. It is requested once more and kept from
// Chromium.
void Tab::take_download() {
  if (source_ != nullptr) throw no_results(kDownload); // its bytes are those of the record
  if (std::exchange(downloads_, true)) throw failed("the server sent a download, then another that could not be kept");
  documents_.forget();
  navigate();
}

// Describes the page by the document that is shown.
void Tab::describe() {
  const auto& document = shown();
  if (!document.url.empty()) page_.url = document.url;
  page_.document = document.loader;
  page_.status = document.status;
  page_.reason = document.reason;
  page_.content_type = document.content_type;
  page_.headers = document.headers;
  page_.redirects = documents_.redirects();
  page_.documents = documents_.list();
  page_.broken = document.broken;
}

// Waits until the page has loaded, until nothing has come for a while and it answers, or until it has been parsed for
// long: one file that never comes, or drips, must not keep us from reading the page. False: it cannot be read.
bool Tab::arrive() {
  auto parsed = Clock::time_point::max();
  bool released = false;
  const auto done = [this] { return over() && (!documents_.leads_on() || !crashed_.empty()); };
  for (auto now = Clock::now(); now < give_up_ && !done(); now = Clock::now()) {
    const auto since = [](Clock::time_point when, Seconds silence) {
      return when == Clock::time_point::max() ? when : when + std::chrono::duration_cast<Clock::duration>(silence);
    };
    if (documents_.parsed()) parsed = std::min(parsed, now);
    const auto silent = std::min(since(recorder_.last_change(), kPatience), since(parsed, kLongestSilence));
    if (!documents_.any()) {
      wait(give_up_, [this] { return over() || documents_.any(); });
    } else if (documents_.leads_on()) {
      if (wait(std::min(give_up_, after(kLongestSilence)), [&] { return !documents_.leads_on() || done(); })) continue;
      // Until then Chromium passes no command on to the page. What is asked for now is stopped at the gate.
      reading_.hold();
      documents_.stay();
      const auto stopped = browser_.ask("Page.navigate", {{"url", documents_.last_url()}}, session_);
      wait(give_up_, [&] { return stopped->there; });
    } else if (now < silent || recorder_.open_styles(kLongestSilence) > 0) {
      wait(std::min(give_up_, std::max(silent, after(Seconds(0.5)))), [this] { return over(); });
    } else {
      const bool blocked = !released && recorder_.open_styles(kForEver) > 0;
      const auto answer =
          browser_.ask("Runtime.evaluate",
                       {{"expression", std::string(blocked ? std::string_view(embedded::release_js) : "0")}}, session_);
      wait(give_up_, [&] { return over() || answer->there; });
      released = released || blocked;
      if (answer->there && !blocked && (recorder_.last_change() < now || now >= since(parsed, kLongestSilence)))
        return true;
    }
  }
  return documents_.loaded();
}

// Until the page rests and leads nowhere: it is that page from now on.
void Tab::settle() {
  std::size_t seen = 0;
  bool silent = false;
  do {
    seen = documents_.count();
    try {
      reading_.settle();
      silent = false;
    } catch (const Silent&) { // as long as another document is awaited
      if (!documents_.leads_on()) throw;
      silent = true;
    }
    if (reading_.holds() && !silent) return; // it leads on without end, or to where there is no answer
    wait(std::min(give_up_, documents_.refresh_due() + std::chrono::seconds(1)),
         [&] { return documents_.leads_on() || documents_.refresh_due() == Clock::time_point(); });
    if (documents_.leads_on()) arrive();
  } while ((silent || documents_.leads_on() || documents_.count() > seen) && Clock::now() < give_up_);
  reading_.hold();
}

// Reads the page. Optional: a page that does not answer in time is kept unchanged.
void Tab::read() {
  try {
    settle();
    describe();
    refuse_signed_out();
    if (crashed_.empty()) reading_.read();
    reading_.leave(job_.url());
    const auto blink = [] { return after(Seconds(0.2)); };
    while (Clock::now() < give_up_ && crashed_.empty() && recorder_.open_files() > 0)
      wait(std::min(give_up_, blink()), [this] { return recorder_.open_files() == 0; });
  } catch (const Silent&) {
    page_.cut.emplace_back("script");
  }
  page_.cut.insert(page_.cut.end(), reading_.cut().begin(), reading_.cut().end());
  page_.steps = reading_.steps();
  page_.held = reading_.held();
  if (page_.doubt.empty()) page_.doubt = reading_.doubt();
  if (media_type(page_.content_type) != "text/html" && media_type(page_.content_type) != "application/xhtml+xml")
    return;
  if (reading_.text().empty()) return;
  job_.write(kRead, reading_.text());
  page_.read = kRead;
}

void Tab::load() {
  navigate();
  if (kept_ != nullptr) {
    wait(give_up_, [this] { return kept_over() || !crashed_.empty(); });
    return judge_kept();
  }
  for (int left = kMostReplaced;; --left) {
    page_.cut.clear();
    try {
      if (arrive()) read();
      describe();
      return judge();
    } catch (const Replaced&) { // a script has made another document in its place
      if (left == 0) throw;
    }
  }
}

Result Tab::run() {
  try {
    open();
    load();
    if (source_ == nullptr) persona_.keep(context_, page_.url, job_.deadline());
  } catch (const Ending& ending) {
    page_.ending = ending;
  }
  stop_alarm();
  save_page_record(job_, page_);
  page_.report(job_);
  if (page_.ending) return close();
  // The records were the sign that the hooks which follow may begin.
  const auto never = Clock::time_point::max() - std::chrono::hours(24);
  try {
    while (told_to_end == 0)
      browser_.pump(std::min(never, after(Seconds(600))), [] { return told_to_end != 0; });
  } catch (const Ending&) {
    crashed_ = "the browser ended before the page's hooks had";
  }
  return close();
}

namespace {

Result run_with(Job& job, ReplaySource* source) {
  struct sigaction action {};
  action.sa_handler = [](int) { told_to_end = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  return Tab(job, source).run();
}

} // namespace

Result run_tab(Job& job) { return run_with(job, nullptr); }
Result replay_tab(Job& job, ReplaySource& source) { return run_with(job, &source); }

} // namespace holdfast::capture
