#include "services/capture/browser/tab.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "services/capture/browser/browser_page.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/browser/persona.hpp"
#include "services/capture/browser/recorder.hpp"
#include "services/capture/extract/icon.hpp"
#include "services/capture/extract/reading.hpp"
#include "services/capture/fetch/egress.hpp"
#include "services/capture/fetch/fetch.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::size_t kLargestSource = 8u << 20; // of a document that other hooks read
constexpr Seconds kAnswer{3};                    // a page that works answers within it
constexpr int kMostReplaced = 3;                 // pages that lead on while they are looked at
constexpr const char* kDownload = "not a page for a browser: the server sent a download";
constexpr std::string_view kNamers = // elements that name files which a page shows
    "img,link[rel~=stylesheet],frame,iframe,embed,object,audio,video,source[src],track,input[type=image],"
    "script[src]:not([nomodule])";
constexpr const char* kWarc = "page.warc.gz";
constexpr const char* kSource = "source";
constexpr const char* kRead = "read";  // what there is to read, for other hooks
constexpr const char* kFiles = "file"; // a directory: what a site calls its file must not be one of ours

// Errors that are not the page's.
constexpr std::string_view kOwnTrouble[] = {"net::ERR_ABORTED", "net::ERR_BLOCKED_BY_CLIENT",
                                            "net::ERR_INSUFFICIENT_RESOURCES", "net::ERR_INTERNET_DISCONNECTED",
                                            "net::ERR_NETWORK_CHANGED"};

volatile sig_atomic_t told_to_end = 0;

// The last part of a URL's path, without what means something to a shell or a file system.
std::string file_name(const std::string& url) {
  constexpr std::size_t kLongest = 100; // its end says what it is
  const auto path = url.substr(0, url.find_first_of("?#"));
  auto name = path.substr(path.rfind('/') + 1);
  if (name.size() > kLongest) name.erase(0, name.size() - kLongest);
  name.erase(0, name.find_first_not_of("-."));
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 &&
        std::string_view("%-._~").find(letter) == std::string_view::npos)
      letter = '_';
  return name.empty() ? "file" : name;
}

Clock::time_point after(Seconds seconds) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds); }

// Returns why a browser does not show a type as a page; empty: it does.
std::string not_a_page(const std::string& content_type, const std::string& disposition) {
  const auto type = media_type(content_type);
  if (lower_case(disposition).starts_with("attachment")) return kDownload;
  const bool shown = type.empty() || type.starts_with("text/") || type == "application/xhtml+xml" ||
                     type == "application/xml" || type == "application/json" ||
                     (type.ends_with("+xml") && type != "image/svg+xml");
  return shown ? "" : "not a page for a browser: " + type;
}

Json context_like() {
  Json wanted = {{"disposeOnDetach", true}};
  if (const auto proxy = egress_proxy(); !proxy.empty()) // the page's own, not that of the browser
    wanted.update({{"proxyServer", proxy}, {"proxyBypassList", "<-loopback>"}});
  return wanted;
}

class Tab {
public:
  Tab(Job& job, ReplaySource* source)
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
        recorder_(browser_, warc_, rules()), reading_(browser_, recorder_, effort_of(job, persona_.signs_in()),
                                                      give_up_, [this](auto until, const auto& done) {
                                                        return wait(until, [&] { return !crashed_.empty() || done(); });
                                                      }) {
    page_.url = job.url();
  }
  Result run();

private:
  Recorder::Rules rules();
  std::string refuse(const std::string& url, const std::string& type, const std::string& frame);
  bool keep_from_browser(const Json& paused);
  void finished(const Recorder::Finished& exchange);
  void keep_file(const warc::Spool& body);
  void take(const std::string& method, const Json& parameters, const std::string& session);
  void request_sent(const Json& parameters);
  void answered(const Json& response);
  void document_failed(const Json& parameters);
  Json call(const std::string& method, Json parameters = nullptr, std::optional<Clock::time_point> until = {});
  bool wait(Clock::time_point until, const std::function<bool()>& done);
  void open();
  void load();
  std::string not_fetched(const std::string& error) const;
  void navigate();
  void take_download();
  void read();
  std::string what_came() const { return document_bytes_ > 0 ? "; kept what there was" : "; nothing of it came"; }
  void refuse_signed_out();
  void judge();
  void refuse_error_page();
  std::vector<std::string> not_asked_for(std::string_view elements);
  void count_resources();
  Result close();
  bool over() const { return loaded_ || !broken_.empty() || (kept_ && recorder_.taken()) || !crashed_.empty(); }
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
  PageRecord page_;
  Json identity_; // what the browser says of itself
  std::string session_, frame_, context_;
  std::string navigation_url_, navigation_,
      navigation_error_; // the main frame's last request for a document, and why that brought none
  std::string document_; // the request that brought it
  struct Shown {
    PageRecord page;
    std::string document;
    bool whole;
    std::uint64_t bytes;
  };
  std::optional<Shown> shown_; // the document before, until the next one is shown
  std::size_t steps_{0};       // that led to it
  bool document_whole_{false};
  std::uint64_t document_bytes_{0}; // of it in the record
  std::string proxy_reason_;        // why the egress proxy has answered in place of its server
  std::string led_by_;              // how the document asks for the next one: "script", "refresh"
  std::string not_page_, broken_, crashed_, refused_;
  bool loaded_{false}, kept_{false}, navigating_{false}, downloads_{false};
  std::optional<bool> page_is_private_;
  std::set<std::string> judged_; // hosts
};

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

// Records content without the browser if the browser would not show it as the page.
bool Tab::keep_from_browser(const Json& paused) {
  if (text_at(paused, "frameId") != frame_) return false;
  Headers headers;
  for (const auto& item : paused.value("responseHeaders", Json::array()))
    headers.emplace_back(text_at(item, "name"), text_at(item, "value"));
  const int status = paused.value("responseStatusCode", 0);
  if (status >= 300) return false;
  not_page_ = not_a_page(header_of(headers, "content-type"), header_of(headers, "content-disposition"));
  if (not_page_.empty() && downloads_) not_page_ = kDownload;
  if (not_page_.empty()) return false;
  kept_ = true;
  page_.url = text_at(paused["request"], "url");
  page_.status = status;
  page_.reason = text_at(paused, "responseStatusText");
  page_.content_type = header_of(headers, "content-type");
  page_.headers = Json::object();
  for (const auto& [name, value] : headers)
    page_.headers[lower_case(name)] = value;
  return true;
}

void Tab::request_sent(const Json& parameters) {
  if (text_at(parameters, "type") != "Document" || text_at(parameters, "frameId") != frame_) return;
  navigation_ = text_at(parameters, "requestId");
  navigation_url_ = text_at(parameters["request"], "url");
  navigation_error_.clear();
  const auto how = std::exchange(led_by_, "");
  if (!parameters.contains("redirectResponse")) steps_ = page_.redirects.size();
  if (const auto response = parameters.find("redirectResponse"); response != parameters.end())
    page_.redirects.push_back({text_at(*response, "url"), navigation_url_, response->value("status", 0), "http"});
  else if (!how.empty() && page_.status != 0 && navigation_url_ != page_.url)
    page_.redirects.push_back({page_.url, navigation_url_, page_.status, how});
}

// Takes the response of a document, of the site or of the egress proxy in its place.
void Tab::answered(const Json& response) {
  Json headers = Json::object();
  const auto sent = response.value("headers", Json::object());
  for (const auto& [name, value] : sent.items())
    headers[lower_case(name)] = value;
  proxy_reason_ = egress_reason(Headers{{kEgressHeader, text_at(headers, kEgressHeader)}});
  if (!proxy_reason_.empty()) return; // no server has said this
  page_.url = text_at(response, "url");
  page_.status = response.value("status", 0);
  page_.reason = text_at(response, "statusText");
  page_.content_type = headers.value("content-type", "");
  if (media_type(page_.content_type).empty()) page_.content_type = text_at(response, "mimeType");
  page_.headers = std::move(headers);
}

// A page may lead to a download or to no content: the browser goes on showing the page.
void Tab::document_failed(const Json& parameters) {
  const auto error = text_at(parameters, "errorText");
  if (!shown_ || !parameters.value("canceled", false) || error != "net::ERR_ABORTED") {
    broken_ = error.empty() ? "broken off" : error;
  } else if (document_ == navigation_) { // else the next document has taken its place
    const auto steps = static_cast<std::ptrdiff_t>(steps_);
    const auto& page = shown_->page;
    std::tie(page_.url, page_.status, page_.reason, page_.content_type, page_.headers) =
        std::tie(page.url, page.status, page.reason, page.content_type, page.headers);
    page_.redirects.erase(page_.redirects.begin() + steps, page_.redirects.end());
    document_ = shown_->document;
    document_whole_ = shown_->whole;
    document_bytes_ = shown_->bytes;
    shown_.reset();
  }
}

void Tab::take(const std::string& method, const Json& parameters, const std::string& session) {
  if (persona_.take(method, parameters, session)) return;
  reading_.take(method, parameters, session);
  if (method == "Target.attachedToTarget" && !identity_.is_null()) // a frame or worker, before it runs
    browser_.send("Emulation.setUserAgentOverride", identity_, text_at(parameters, "sessionId"));
  if (method == "Fetch.requestPaused" && reading_.stop(parameters, session)) return;
  if (method == "Network.requestWillBeSent" && !reading_.holds()) request_sent(parameters);
  close_dialog(browser_, method, parameters, session);
  const auto request = text_at(parameters, "requestId");
  if (method == "Network.responseReceived" && text_at(parameters, "type") == "Document" &&
      text_at(parameters, "frameId") == frame_ && text_at(parameters["response"], "url").starts_with("http")) {
    shown_.reset();
    if (!document_.empty()) shown_ = Shown{page_, document_, document_whole_, document_bytes_};
    document_ = request;
    document_whole_ = false;
    answered(parameters["response"]);
  } else if (method == "Page.frameRequestedNavigation" && !reading_.holds() &&
             text_at(parameters, "frameId") == frame_) {
    led_by_ = text_at(parameters, "reason").find("Refresh") == std::string::npos ? "script" : "refresh";
  } else if (method == "Network.loadingFailed") {
    const auto error = text_at(parameters, "errorText");
    if (request == navigation_ && error != "net::ERR_ABORTED") navigation_error_ = error; // which says nothing
    if (request == document_ && session == session_) document_failed(parameters);
  } else if (method == "Page.loadEventFired" && session == session_) {
    loaded_ = navigating_;
  } else if (method == "Inspector.targetCrashed" && session == session_) {
    crashed_ = "the page crashed the browser";
  }
  recorder_.take(method, parameters, session);
}

// Keeps a PDF, image or download as a file, so that users can open it without a replay tool.
void Tab::keep_file(const warc::Spool& body) {
  const auto name = std::string(kFiles) + "/" + file_name(page_.url);
  ::mkdir(kFiles, 0777); // if it fails, the file cannot be written either
  job_.write_pieces(name, [&](const auto& take) { body.read(take); });
  page_.source = name;
  page_.complete = page_.finished = true;
}

void Tab::finished(const Recorder::Finished& ended) {
  const auto& exchange = ended.exchange;
  if (ended.request_id == document_) {
    document_whole_ = exchange.truncated.empty();
    document_bytes_ = ended.body.size();
  } else if (shown_ && ended.request_id == shown_->document) {
    shown_->whole = exchange.truncated.empty();
    shown_->bytes = ended.body.size();
  }
  if (ended.frame == frame_ && ended.type == "Document" && exchange.status >= 200 && exchange.status < 300) {
    if (!kept_) {
      const auto source = ended.body.head(kLargestSource);
      job_.write(kSource, source);
      page_.source = kSource;
      page_.ends_within = source.size() < kLargestSource && !base::trimmed(source).ends_with('>') &&
                          !header_of(exchange.response_headers, "content-encoding").empty() &&
                          header_of(exchange.response_headers, "content-type").find("html") != std::string::npos;
    } else if (exchange.truncated.empty()) {
      keep_file(ended.body);
    }
  }
  if (ended.type != "Other" || exchange.status != 200 || !exchange.truncated.empty() ||
      ended.body.size() > kLargestIcon)
    return;
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
  reading_.attach(session_, frame_, site());
}

// Returns why the egress proxy did not fetch the last requested document; empty: it did.
std::string Tab::not_fetched(const std::string& error) const {
  if (error == "net::ERR_TUNNEL_CONNECTION_FAILED") return egress_reason(navigation_url_);
  return proxy_reason_;
}

void Tab::navigate() {
  navigating_ = true;
  const auto answer = browser_.ask("Page.navigate", {{"url", job_.url()}}, session_);
  wait(give_up_, [&] { return answer->there || (kept_ && recorder_.taken()) || !crashed_.empty(); });
  if (kept_ || !crashed_.empty()) return;
  if (!answer->there) throw unreachable(site() + ": no answer in time");
  const auto error = answer->error.empty() ? text_at(answer->result, "errorText") : answer->error;
  if (error.empty()) return;
  if (!refused_.empty()) throw failed(refused_);
  if (answer->result.value("isDownload", false)) return take_download();
  if (const auto reason = not_fetched(error); !reason.empty()) throw egress_ending(reason);
  if (page_.status == kNoContent) throw failed("the server sent no content (HTTP 204)");
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
  page_.redirects.clear();
  broken_.clear();
  navigation_error_.clear();
  navigate();
}

// A page can lead on, by script or refresh, to where there is nothing. Chromium then shows a page of its own in the
// main frame, which must not be taken for the page.
void Tab::refuse_error_page() {
  const auto until = std::min(job_.deadline(), after(kAnswer));
  const auto led = error_page_shown(browser_, session_, until);
  if (led.empty()) return;
  if (!refused_.empty()) throw failed(refused_);
  throw failed(led + (navigation_error_.empty() ? reason_on_error_page(browser_, session_, until) : navigation_error_));
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
  const auto expression = std::string(kNamed) + "('" + std::string(elements) + "')";
  for (const auto& url : browser_.evaluate(expression, session_, after(kAnswer)))
    if (url.is_string() && !recorder_.has_asked_for(url.get<std::string>())) found.push_back(url.get<std::string>());
  return found;
}

// Reads the page. Optional: a page that does not answer in time is kept unchanged.
void Tab::read() {
  try {
    reading_.settle();
    refuse_signed_out();
    if (page_.status < kFirstError && crashed_.empty()) reading_.read();
    reading_.leave();
  } catch (const Silent&) {
    page_.cut.emplace_back("script");
  }
  page_.cut.insert(page_.cut.end(), reading_.cut().begin(), reading_.cut().end());
  page_.steps = reading_.steps();
  page_.held = reading_.held();
  page_.doubt = reading_.doubt();
  if (media_type(page_.content_type) != "text/html" && media_type(page_.content_type) != "application/xhtml+xml")
    return;
  if (reading_.text().empty()) return;
  job_.write(kRead, reading_.text());
  page_.read = kRead;
}

void Tab::load() {
  navigate();
  wait(give_up_, [this] { return over(); });
  for (int left = kMostReplaced;; --left) {
    page_.cut.clear();
    try {
      if (loaded_) read();
      return judge();
    } catch (const Replaced&) { // the page has led on while we looked: what it led to is the page
      if (left == 0) throw;
    }
  }
}

// Refuses a page that is shown without a login. The worker gets a report: it waits for a new session.
void Tab::refuse_signed_out() {
  if (source_ != nullptr) return;
  const auto reason = persona_.why_signed_out(context_, session_, job_.url(), page_.url, page_.status, !kept_,
                                              std::min(job_.deadline(), after(kAnswer)));
  if (reason.empty()) return;
  emit({{"type", "SignedOut"}, {"reason", one_line(reason, 250)}});
  throw unreachable("signed out: " + reason);
}

// Decides the outcome. Throws if there is no page to look at.
void Tab::judge() {
  if (kept_ || page_.status >= kFirstError) refuse_signed_out();
  if (kept_) {
    if (!recorder_.taken()) recorder_.finish("time");
    if (recorder_.full())
      throw failed("the page is larger than BROWSER_MAX_SIZE (" + std::to_string(limit_) +
                   " bytes); kept its beginning");
    if (!recorder_.taken_whole())
      throw failed("the file did not arrive whole; kept " + std::to_string(recorder_.taken_bytes()) + " bytes");
    throw no_results(not_page_);
  }
  if (!crashed_.empty()) throw failed(crashed_);
  if (const auto reason = not_fetched(navigation_error_); !reason.empty()) {
    if (page_.status == 0 && page_.redirects.empty()) throw egress_ending(reason);
    throw failed("the page led to " + navigation_url_.substr(0, 500) + ": " + reason);
  }
  bool busy = false; // a script does not end
  const auto ask = [&](const auto& question) {
    try {
      if (!busy) question();
    } catch (const Silent&) {
      busy = true;
    }
  };
  if (broken_.empty()) ask([this] { refuse_error_page(); });
  if (page_.status >= kFirstError)
    throw failed("HTTP " + std::to_string(page_.status) + (page_.doubt.empty() ? "" : ": " + page_.doubt));
  if (const auto why = not_a_page(page_.content_type, ""); !why.empty()) throw no_results(why);
  ask([this] {
    const auto until = std::min(job_.deadline(), after(kAnswer));
    const auto state = browser_.evaluate("document.readyState", session_, until);
    const bool parsed = state.is_string() && state != "loading";
    // A script that does not come keeps a document that has come from being read on.
    page_.complete = (parsed || document_whole_) && broken_.empty();
    if (!parsed && page_.complete) page_.cut.emplace_back("load");
  });
  if (busy) {
    recorder_.finish("time");
    page_.complete = document_whole_;
    page_.cut.emplace_back("script");
  }
  page_.finished = loaded_;
  page_.broken = broken_;
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
}

// Ends the record, and removes files that only the hooks of this page read.
Result Tab::close() {
  recorder_.finish("time");
  warc_.close();
  if (source_ == nullptr) count_resources();
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
  if (!broken_.empty()) throw failed("the page broke off: " + broken_ + what_came(), about);
  if (!page_.complete) throw failed("the page did not arrive whole within the time limit" + what_came(), about);
  if (source_ == nullptr && !document_whole_) throw failed("the record of the page is not whole" + what_came(), about);
  if (!page_.doubt.empty()) throw failed(page_.doubt, about);
  return {kWarc, about};
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
