#include "services/capture/browser/sign_in.hpp"

#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "services/capture/browser/browser_host.hpp"
#include "services/capture/browser/browser_page.hpp"
#include "services/capture/browser/chromium.hpp"
#include "services/capture/browser/logins.hpp"
#include "services/capture/browser/persona.hpp"
#include "services/capture/embedded.hpp"
#include "services/capture/fetch/egress.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <unordered_map>
#include <vector>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostInput = 48u << 20; // of the view's messages: files come in them
constexpr std::size_t kMostPages = 12, kMostOrigins = 100, kMostLogins = 100;
constexpr int kQuality = 75; // of the pictures

// A page or a window that it has opened.
struct Window {
  std::string target, session, title, url;
  std::string refused{}; // why the worker's proxy, not the site, gave no document
  bool loading{false};
  Json dialog{}, chooser{};   // what it waits for; null: nothing
  std::vector<Json> logins{}; // that servers ask for; the person answers the first
};

// Commands of a view for the shown page, of DevTools: with the parameters as they come.
const std::set<std::string> kCommands{
    "Input.dispatchKeyEvent", "Input.dispatchMouseEvent",    "Input.dispatchTouchEvent", "Input.imeSetComposition",
    "Input.insertText",       "Page.handleJavaScriptDialog", "Page.screencastFrameAck",  "Page.stopLoading"};

std::string upload_name(const std::string& given) {
  auto name = given.substr(given.find_last_of('/') + 1).substr(0, 200);
  std::erase(name, '\0');
  return name.empty() || name == "." || name == ".." ? "file" : name;
}

class PersonsBrowser {
public:
  PersonsBrowser(int browser, const std::string& url) : browser_(browser), persona_(browser_), first_(url) {}

  int run() {
    browser_.on_event([this](const auto& method, const Json& parameters, const auto& session) {
      take_event(method, parameters, session);
    });
    browser_.also(view_.get(), [this] { read_view(); });
    identity_ = identity(text_at(ask("Browser.getVersion", {}), "userAgent"));
    context_ = text_at(ask("Target.createBrowserContext", {}), "browserContextId");
    const auto pages = Json::array({{{"type", "page"}}});
    ask("Target.setAutoAttach",
        {{"autoAttach", true}, {"waitForDebuggerOnStart", true}, {"flatten", true}, {"filter", pages}});
    open_first();
    browser_.pump(until_, [this] { return done_ || gone_; });
    return done_ && save() ? 0 : 1;
  }

private:
  Json ask(const std::string& method, const Json& parameters) { return browser_.call(method, parameters, "", until_); }
  void command(const std::string& method, Json parameters, const std::string& session = {}) {
    browser_.send(method, std::move(parameters), session);
  }
  Window* current() { return by_target(shown_); }

  Window* by_session(const std::string& session) {
    const auto found = sessions_.find(session);
    return found == sessions_.end() ? nullptr : by_target(found->second);
  }

  Window* by_target(const std::string& target) {
    const auto found =
        std::find_if(pages_.begin(), pages_.end(), [&](const auto& page) { return page.target == target; });
    return found == pages_.end() ? nullptr : &*found;
  }

  void open_first() { command("Target.createTarget", {{"url", first_}, {"browserContextId", context_}}); }

  void say(const Json& message) {
    if (!gone_ && !base::write_all(view_.get(), json_text(message) + '\0')) gone_ = true;
  }

  void read_view() {
    const auto got = read_messages(view_.get(), incoming_, [this](auto text) { take_input(text); });
    gone_ = gone_ || got == Got::end || incoming_.size() > kMostInput;
    if (gone_) browser_.also(-1, {});
  }

  void take_event(const std::string& method, const Json& parameters, const std::string& session) {
    if (persona_.take(method, parameters, session)) return;
    if (method == "Fetch.requestPaused")
      return command("Fetch.continueRequest", {{"requestId", parameters["requestId"]}}, session);
    if (method == "Target.attachedToTarget") return attached(parameters, session);
    if (method == "Target.detachedFromTarget") {
      const auto ended = text_at(parameters, "sessionId");
      if (const auto* page = by_session(ended); page != nullptr && page->session == ended) forget(page->target);
      sessions_.erase(ended);
      return;
    }
    if (method == "Target.targetInfoChanged") return describe(parameters["targetInfo"]);
    if (auto* page = by_session(session)) take_page_event(*page, session, method, parameters);
  }

  void describe(const Json& info) {
    auto* page = by_target(text_at(info, "targetId"));
    if (page == nullptr) return;
    page->title = one_line(text_at(info, "title"), 200);
    page->url = text_at(info, "url");
    tell();
  }

  // Handles a page, a window that it has opened, or a frame in a process of its own. It is halted until it has been
  // prepared.
  void attached(const Json& parameters, const std::string& parent) {
    const auto& info = parameters["targetInfo"];
    const auto session = text_at(parameters, "sessionId"), target = text_at(info, "targetId");
    if (const auto* page = by_session(parent)) {
      sessions_[session] = page->target;
      return prepare(session);
    }
    if (text_at(info, "browserContextId") != context_) return;                 // the page that Chromium starts with
    if (done_) return command("Runtime.runIfWaitingForDebugger", {}, session); // one that storage is read on
    if (pages_.size() >= kMostPages) return command("Target.closeTarget", {{"targetId", target}});
    pages_.push_back({target, session, one_line(text_at(info, "title"), 200), text_at(info, "url")});
    sessions_[session] = target;
    // A list that opens is a window of the desktop, which the picture lacks; one that the page draws is in it.
    command("Page.addScriptToEvaluateOnNewDocument", {{"source", embedded::sign_in_js}}, session);
    prepare(session);
    show(target);
  }

  void prepare(const std::string& session) {
    command("Page.enable", {}, session);
    command("Network.enable", {}, session);
    // A server's request for a login is reported only for requests that are held for a moment.
    command("Fetch.enable", {{"patterns", Json::array({{{"urlPattern", "*"}}})}, {"handleAuthRequests", true}},
            session);
    command("Page.setInterceptFileChooserDialog", {{"enabled", true}}, session);
    command("Emulation.setUserAgentOverride", identity_, session);
    command("Emulation.setFocusEmulationEnabled", {{"enabled", true}}, session);
    command("Target.setAutoAttach",
            {{"autoAttach", true},
             {"waitForDebuggerOnStart", true},
             {"flatten", true},
             {"filter", Json::array({{{"type", "iframe"}}})}},
            session);
    command("Runtime.runIfWaitingForDebugger", {}, session);
  }

  void forget(std::string target) { // a copy: the page that has it goes
    std::erase_if(pages_, [&](const auto& page) { return page.target == target; });
    if (done_) return;
    if (pages_.empty())
      open_first();
    else if (shown_ == target)
      show(pages_.back().target);
    tell();
  }

  void show(const std::string& target) {
    if (auto* before = current(); before != nullptr && before->target != target)
      command("Page.stopScreencast", {}, before->session);
    shown_ = target;
    if (auto* page = current()) {
      command("Page.bringToFront", {}, page->session);
      command("Emulation.setDeviceMetricsOverride", device_metrics(size_), page->session);
      // If it runs already, it starts again: its first picture comes at once.
      command("Page.stopScreencast", {}, page->session);
      command("Page.startScreencast",
              {{"format", "jpeg"}, {"quality", kQuality}, {"maxWidth", size_.first}, {"maxHeight", size_.second}},
              page->session);
    }
    tell();
  }

  // Reports the pages, and what the shown one waits for.
  void tell() {
    Json list = Json::array();
    for (const auto& page : pages_)
      list.push_back({{"id", page.target},
                      {"title", page.title},
                      {"url", page.url},
                      {"loading", page.loading},
                      {"refused", page.refused},
                      {"current", page.target == shown_}});
    const auto* page = current();
    say({{"type", "pages"},
         {"pages", list},
         {"dialog", page ? page->dialog : Json()},
         {"chooser", page ? page->chooser : Json()},
         {"login", page && !page->logins.empty() ? page->logins.front() : Json()}});
  }

  void take_page_event(Window& page, const std::string& session, const std::string& method, const Json& parameters) {
    if (method == "Page.screencastFrame") {
      if (done_ || page.target != shown_) return;
      return say({{"type", "frame"}, {"number", parameters["sessionId"]}, {"data", text_at(parameters, "data")}});
    }
    if (method == "Page.frameNavigated") {
      const auto& frame = parameters["frame"];
      const auto origin = text_at(frame, "securityOrigin");
      if (!frame.contains("parentId") && origin.starts_with("http") && origins_.size() < kMostOrigins)
        origins_.insert(origin);
      std::erase_if(page.logins, [&](const Json& asked) { return asked["frame"] == frame["id"]; });
    } else if (method == "Fetch.authRequired") {
      const bool may_ask = !done_ && page.logins.size() < kMostLogins;
      auto asked = logins_.take(session, parameters, may_ask);
      if (!asked.is_null()) page.logins.push_back(std::move(asked));
    } else if (method == "Page.frameStartedLoading" || method == "Page.frameStoppedLoading") {
      if (text_at(parameters, "frameId") != page.target) return; // the main frame has the id of its page
      page.loading = method == "Page.frameStartedLoading";
      if (!page.loading) { // it may have been stopped
        std::erase_if(page.logins,
                      [&](const Json& asked) { return asked["frame"] == page.target && asked["document"] == true; });
        // Its title may have changed without an event.
        browser_.send("Target.getTargetInfo", {{"targetId", page.target}}, "", [this](const Json& answer, const auto&) {
          if (answer.contains("targetInfo")) describe(answer["targetInfo"]);
        });
      }
    } else if (method == "Network.responseReceived" && text_at(parameters, "type") == "Document") {
      const auto fields = parameters["response"].value("headers", Json::object());
      Headers headers;
      for (const auto& [name, value] : fields.items())
        if (value.is_string()) headers.emplace_back(name, value);
      const auto reason = egress_reason(headers);
      if (reason.empty() && text_at(parameters, "frameId") != page.target) return;
      page.refused = reason;
    } else if (method == "Page.javascriptDialogOpening") {
      if (done_) return command("Page.handleJavaScriptDialog", {{"accept", true}}, page.session);
      page.dialog = {{"kind", text_at(parameters, "type")},
                     {"message", text_at(parameters, "message")},
                     {"value", text_at(parameters, "defaultPrompt")},
                     {"url", text_at(parameters, "url")}};
    } else if (method == "Page.javascriptDialogClosed") {
      page.dialog = nullptr;
    } else if (method == "Page.fileChooserOpened") {
      page.chooser = {{"several", text_at(parameters, "mode") == "selectMultiple"},
                      {"node", parameters.value("backendNodeId", 0)},
                      {"session", session}};
    } else {
      return;
    }
    tell();
  }

  void take_input(std::string_view text) {
    const auto message = base::strange_json(text);
    auto* page = current();
    if (!message.is_object() || done_) return;
    const auto type = text_at(message, "type");
    const auto number = [&](const char* name, int most) {
      const auto found = message.find(name);
      const bool any = found != message.end() && found->is_number();
      return static_cast<int>(std::clamp(any ? found->get<double>() : 0.0, 0.0, static_cast<double>(most)));
    };
    if (type == "size") { // of a view that has just come, too
      size_ = {std::max(number("width", 2560), 320), std::max(number("height", 2000), 240)};
      show(shown_);
    } else if (type == "show") {
      if (by_target(text_at(message, "page")) != nullptr) show(text_at(message, "page"));
    } else if (page == nullptr) {
      return;
    } else if (const auto method = text_at(message, "method"); type == "do" && kCommands.contains(method)) {
      command(method, message.value("parameters", Json::object()), page->session);
    } else if (type == "reload") { // not among the commands: its parameters could name a script
      command("Page.reload", {}, page->session);
    } else if (type == "back") {
      command("Runtime.evaluate", {{"expression", "history.back()"}}, page->session);
    } else if (type == "close") {
      command("Target.closeTarget", {{"targetId", shown_}});
    } else if (type == "files") {
      give_files(message.value("files", Json::array()));
    } else if (type == "login") {
      logins_.give(page->logins, message);
      tell();
    } else if (type == "done") {
      done_ = true;
    }
  }

  // Gives files of the user's machine to the field that requested them; none: the choice was cancelled.
  void give_files(const Json& files) {
    auto* page = current();
    const auto chooser = std::exchange(page->chooser, nullptr);
    tell();
    if (chooser.is_null() || !files.is_array() || files.empty()) return;
    Json paths = Json::array();
    for (const auto& one : files) {
      if (!one.is_object()) continue;
      const auto directory = fs::current_path() / "files" / std::to_string(++uploads_);
      fs::create_directories(directory);
      const auto path = directory / upload_name(text_at(one, "name"));
      const auto bytes = base::base64_decode(text_at(one, "data"));
      if (write_file(path, [&](const auto& take) { take(bytes); })) paths.push_back(path.string());
    }
    command("DOM.setFileInputFiles", {{"files", paths}, {"backendNodeId", chooser["node"]}},
            text_at(chooser, "session"));
  }

  // Saves the state. Returns false if it cannot be written.
  bool save() {
    say({{"type", "saving"}});
    for (const auto& page : pages_) {
      if (!page.dialog.is_null()) command("Page.handleJavaScriptDialog", {{"accept", false}}, page.session);
      command("Target.closeTarget", {{"targetId", page.target}});
    }
    auto state = persona_.read(context_, origins_, until_);
    logins_.save(state);
    const auto text = json_text(state);
    ::umask(0077);
    return write_file("state.json", [&](const auto& take) { take(text); });
  }

  const Clock::time_point until_{Clock::now() + std::chrono::hours(24)}; // the worker ends it long before
  DevTools browser_;
  Persona persona_;
  const std::string first_; // the URL to begin with
  const base::Fd view_{STDIN_FILENO};
  std::string incoming_, context_, shown_; // shown_: the target that the view has
  bool done_{false}, gone_{false};         // done_: its state is wanted; gone_: the view is
  std::pair<int, int> size_{1280, 800};
  Json identity_;
  std::vector<Window> pages_;
  std::unordered_map<std::string, std::string> sessions_; // of pages and of frames in other processes: their page
  std::set<std::string> origins_;
  Logins logins_{browser_};
  int uploads_{0};
};

} // namespace

int run_sign_in(const std::string& url) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto directory = fs::path(Job::setting("CRAWL_DIR", ".")) / "browser";
  fs::create_directories(directory);
  fs::current_path(directory);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    std::perror("there is no socket for the browser");
    return 1;
  }
  const auto host = ::fork();
  if (host == 0) {
    ::close(ends[0]);
    ::_exit(run_browser_for(ends[1]));
  }
  ::close(ends[1]);
  int status = 1, ended = 0;
  std::string problem;
  try {
    status = PersonsBrowser(ends[0], url).run();
  } catch (const Ending& ending) {
    problem = ending.reason;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  // If the browser has ended by itself, its host has reported it.
  if (::waitpid(host, &ended, 0) == host && ended == 0 && !problem.empty())
    std::fprintf(stderr, "%s\n", problem.c_str());
  return status;
}

} // namespace holdfast::capture
