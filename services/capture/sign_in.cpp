#include "services/capture/sign_in.hpp"

#include "lib/base/base64.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/url.hpp"
#include "services/capture/browser_page.hpp"
#include "services/capture/chromium.hpp"
#include "services/capture/egress.hpp"
#include "services/capture/embedded.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
constexpr std::size_t kMostPiled = 8u << 20;  // of what the other side does not take
constexpr std::size_t kMostPages = 12, kMostOrigins = 100;
constexpr int kQuality = 75; // of the pictures

// A page or a window that it has opened.
struct Window {
  std::string target, session, title, url;
  bool loading{false};
  Json dialog{}, chooser{}; // what it waits for; null: nothing
};

// The members of an input that Chromium gets, each of its own kind: the view can ask for nothing else.
Json members(const Json& message, std::initializer_list<const char*> numbers,
             std::initializer_list<const char*> texts) {
  Json chosen = {{"type", text_of(message, "event")}};
  for (const char* name : numbers)
    if (const auto found = message.find(name); found != message.end() && found->is_number()) chosen[name] = *found;
  for (const char* name : texts)
    if (const auto text = text_of(message, name); !text.empty()) chosen[name] = text;
  return chosen;
}

std::string upload_name(const std::string& given) {
  auto name = given.substr(given.find_last_of('/') + 1).substr(0, 200);
  std::erase(name, '\0');
  return name.empty() || name == "." || name == ".." ? "file" : name;
}

class PersonsBrowser {
public:
  int run();

private:
  using Reply = std::function<void(const Json& result)>; // an empty object if it did not work

  void prepare();
  void start();
  void begin();
  bool round();
  void command(const std::string& method, Json parameters, const std::string& session = {}, Reply reply = {});
  void say(const Json& message);
  void take_message(std::string_view text);
  void take_event(const std::string& method, const Json& parameters, const std::string& session);
  void take_page_event(Window& page, const std::string& session, const std::string& method, const Json& parameters);
  void take_input(std::string_view text);
  void take_pointer(const std::string& type, const Json& message);
  void give_files(const Json& files);
  void attached(const Json& parameters, const std::string& parent);
  void prepare(const std::string& session);
  void forget(std::string target);
  void show(const std::string& target);
  void picture();
  void say_pages();
  void say_waiting();
  void save();
  void next_origin();
  void read_storage(const std::string& session);
  void keep(const Json& cookies);
  Window* by_session(const std::string& given);
  Window* by_target(const std::string& target);
  Window* current() { return by_target(shown_); }

  std::string program_, first_, shown_; // first_: the URL to begin with; shown_: the target that the view has
  bool sandboxed_{may_be_sandboxed()}, answered_{false}, saving_{false};
  int last_id_{0}, kept_{-1}; // kept_: the exit status
  std::pair<int, int> size_{1280, 800};
  base::Fd view_;
  std::string incoming_;
  Outgoing outgoing_;
  Chromium browser_;
  Json identity_;
  std::unordered_map<int, Reply> replies_;
  std::vector<Window> pages_;
  std::unordered_map<std::string, std::string> frames_; // those in other processes: their session, that of their page
  std::set<std::string> unused_;                        // targets
  std::set<std::string> origins_, unsaved_;
  std::string visited_; // the origin whose storage is being read
  Json storage_ = Json::array();
  int uploads_{0};
};

Window* PersonsBrowser::by_session(const std::string& given) {
  const auto frame = frames_.find(given);
  const auto& session = frame == frames_.end() ? given : frame->second;
  const auto found =
      std::find_if(pages_.begin(), pages_.end(), [&](const auto& page) { return page.session == session; });
  return found == pages_.end() ? nullptr : &*found;
}

Window* PersonsBrowser::by_target(const std::string& target) {
  const auto found =
      std::find_if(pages_.begin(), pages_.end(), [&](const auto& page) { return page.target == target; });
  return found == pages_.end() ? nullptr : &*found;
}

void PersonsBrowser::prepare() {
  ::signal(SIGPIPE, SIG_IGN);
  const auto directory = fs::path(Job::setting("CRAWL_DIR", ".")) / "browser";
  fs::create_directories(directory);
  fs::current_path(directory);
  program_ = browser_program();
  view_.reset(connect_to(kViewSocket));
  if (!view_) throw failed("there is no view to connect to");
  ::fcntl(view_.get(), F_SETFL, O_NONBLOCK);
}

void PersonsBrowser::start() {
  browser_.start(program_, sandboxed_);
  command("Browser.setDownloadBehavior", {{"behavior", "deny"}});
  command("Browser.getVersion", {}, {}, [this](const Json& version) {
    identity_ = identity(text_of(version, "userAgent"));
    if (!first_.empty()) begin();
  });
}

// The page that Chromium starts with is not used: it still loads, and would take the place of what is opened in it.
void PersonsBrowser::begin() {
  command("Target.getTargets", {}, {}, [this](const Json& answer) {
    for (const auto& target : answer.value("targetInfos", Json::array()))
      unused_.insert(text_of(target, "targetId"));
    const auto pages = Json::array({{{"type", "page"}}});
    command("Target.setDiscoverTargets", {{"discover", true}, {"filter", pages}});
    command("Target.setAutoAttach",
            {{"autoAttach", true}, {"waitForDebuggerOnStart", true}, {"flatten", true}, {"filter", pages}});
    command("Target.createTarget", {{"url", first_}});
  });
}

void PersonsBrowser::command(const std::string& method, Json parameters, const std::string& session, Reply reply) {
  const int id = ++last_id_;
  Json message = {{"id", id}, {"method", method}, {"params", parameters.is_null() ? Json::object() : parameters}};
  if (!session.empty()) message["sessionId"] = session;
  if (reply) replies_[id] = std::move(reply);
  browser_.outgoing.bytes += json_text(message);
  browser_.outgoing.bytes.push_back('\0');
}

void PersonsBrowser::say(const Json& message) {
  outgoing_.bytes += json_text(message);
  outgoing_.bytes.push_back('\0');
}

void PersonsBrowser::take_message(std::string_view text) {
  answered_ = true;
  const auto message = Json::parse(text, nullptr, false);
  if (!message.is_object()) return;
  if (const auto id = message.find("id"); id != message.end()) {
    const auto waiting = replies_.find(id->get<int>());
    if (waiting == replies_.end()) return;
    const auto reply = std::move(waiting->second);
    replies_.erase(waiting);
    return reply(message.value("result", Json::object()));
  }
  take_event(text_of(message, "method"), message.value("params", Json::object()), text_of(message, "sessionId"));
}

void PersonsBrowser::take_event(const std::string& method, const Json& parameters, const std::string& session) {
  if (method == "Target.attachedToTarget") return attached(parameters, session);
  if (method == "Target.detachedFromTarget") {
    const auto ended = text_of(parameters, "sessionId");
    const auto* page = by_session(ended);
    if (frames_.erase(ended) == 0 && page != nullptr) forget(page->target);
    return;
  }
  if (method == "Target.targetInfoChanged") {
    const auto& info = parameters["targetInfo"];
    if (auto* page = by_target(text_of(info, "targetId"))) {
      page->title = one_line(text_of(info, "title"), 200);
      page->url = text_of(info, "url");
      say_pages();
    }
    return;
  }
  if (auto* page = by_session(session)) take_page_event(*page, session, method, parameters);
}

// A page, a window that it has opened, or a frame in a process of its own. It is halted until it has been prepared.
void PersonsBrowser::attached(const Json& parameters, const std::string& parent) {
  const auto& info = parameters["targetInfo"];
  const auto session = text_of(parameters, "sessionId"), target = text_of(info, "targetId");
  if (const auto* page = by_session(parent)) {
    frames_[session] = page->session;
    return prepare(session);
  }
  if (unused_.contains(target) || pages_.size() >= kMostPages || saving_)
    return command("Target.closeTarget", {{"targetId", target}});
  pages_.push_back({target, session, one_line(text_of(info, "title"), 200), text_of(info, "url")});
  // A list that opens is a window of the desktop, which the picture lacks; one that the page draws is in it.
  command("Page.addScriptToEvaluateOnNewDocument", {{"source", embedded::sign_in_js}}, session);
  prepare(session);
  show(target);
}

void PersonsBrowser::prepare(const std::string& session) {
  command("Page.enable", {}, session);
  command("Network.enable", {}, session);
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

void PersonsBrowser::forget(std::string target) { // a copy: the page that has it goes
  std::erase_if(pages_, [&](const auto& page) { return page.target == target; });
  if (pages_.empty())
    command("Target.createTarget", {{"url", first_}});
  else if (shown_ == target)
    show(pages_.back().target);
  say_pages();
}

void PersonsBrowser::show(const std::string& target) {
  if (auto* before = current(); before != nullptr && before->target != target)
    command("Page.stopScreencast", {}, before->session);
  shown_ = target;
  if (auto* page = current()) command("Page.bringToFront", {}, page->session);
  picture();
  say_pages();
  say_waiting();
}

// Starts the screencast again: its first picture comes at once.
void PersonsBrowser::picture() {
  auto* page = current();
  if (page == nullptr || saving_) return;
  command("Emulation.setDeviceMetricsOverride", device_metrics(size_), page->session);
  command("Page.stopScreencast", {}, page->session);
  command("Page.startScreencast",
          {{"format", "jpeg"}, {"quality", kQuality}, {"maxWidth", size_.first}, {"maxHeight", size_.second}},
          page->session);
}

void PersonsBrowser::say_pages() {
  Json list = Json::array();
  for (const auto& page : pages_)
    list.push_back({{"id", page.target},
                    {"title", page.title},
                    {"url", page.url},
                    {"loading", page.loading},
                    {"current", page.target == shown_}});
  say({{"type", "pages"}, {"pages", list}});
}

// What the page that is shown waits for.
void PersonsBrowser::say_waiting() {
  const auto* page = current();
  say({{"type", "waits"}, {"dialog", page ? page->dialog : Json()}, {"chooser", page ? page->chooser : Json()}});
}

void PersonsBrowser::take_page_event(Window& page, const std::string& session, const std::string& method,
                                     const Json& parameters) {
  if (method == "Page.screencastFrame") {
    if (saving_ || page.target != shown_) return;
    say({{"type", "frame"}, {"number", parameters["sessionId"]}, {"data", text_of(parameters, "data")}});
  } else if (method == "Page.frameNavigated") {
    const auto& frame = parameters["frame"];
    const auto origin = text_of(frame, "securityOrigin");
    if (frame.contains("parentId") || !origin.starts_with("http")) return;
    if (saving_ && origin == visited_) return read_storage(page.session);
    if (origins_.size() < kMostOrigins) origins_.insert(origin);
  } else if (method == "Page.frameStartedLoading" || method == "Page.frameStoppedLoading") {
    if (text_of(parameters, "frameId") != page.target) return; // the main frame has the id of its page
    page.loading = method == "Page.frameStartedLoading";
    say_pages();
  } else if (method == "Network.responseReceived" && text_of(parameters, "type") == "Document") {
    const auto headers = parameters["response"].value("headers", Json::object());
    const auto reason = egress_reason(Headers{{kEgressHeader, text_of(headers, kEgressHeader)}});
    if (!reason.empty()) say({{"type", "refused"}, {"text", reason}}); // the worker's proxy, not the site
  } else if (method == "Page.javascriptDialogOpening") {
    if (saving_) return command("Page.handleJavaScriptDialog", {{"accept", true}}, page.session);
    page.dialog = {{"kind", text_of(parameters, "type")},
                   {"message", text_of(parameters, "message")},
                   {"value", text_of(parameters, "defaultPrompt")},
                   {"url", text_of(parameters, "url")}};
    say_waiting();
  } else if (method == "Page.javascriptDialogClosed") {
    page.dialog = nullptr;
    say_waiting();
  } else if (method == "Page.fileChooserOpened") {
    page.chooser = {{"several", text_of(parameters, "mode") == "selectMultiple"},
                    {"node", parameters.value("backendNodeId", 0)},
                    {"session", session}};
    say_waiting();
  } else if (method == "Fetch.requestPaused") { // while it is saving: an empty page of the origin
    command("Fetch.fulfillRequest",
            {{"requestId", text_of(parameters, "requestId")},
             {"responseCode", 200},
             {"responseHeaders", Json::array({{{"name", "Content-Type"}, {"value", "text/html"}}})},
             {"body", ""}},
            page.session);
  }
}

void PersonsBrowser::take_input(std::string_view text) {
  const auto message = Json::parse(text, nullptr, false);
  auto* page = current();
  if (!message.is_object() || saving_) return;
  const auto type = text_of(message, "type");
  const auto number = [&](const char* name, int most) {
    const auto found = message.find(name);
    const bool any = found != message.end() && found->is_number();
    return static_cast<int>(std::clamp(any ? found->get<double>() : 0.0, 0.0, static_cast<double>(most)));
  };
  if (type == "size") { // of a view that has just come, too
    size_ = {std::max(number("width", 2560), 320), std::max(number("height", 2000), 240)};
    show(shown_);
  } else if (type == "show") {
    if (by_target(text_of(message, "page")) != nullptr) show(text_of(message, "page"));
  } else if (type == "open" && first_.empty()) { // of the worker
    if (const auto url = base::try_parse_url(text_of(message, "url"))) first_ = url->text;
    if (!first_.empty() && !identity_.is_null()) begin();
  } else if (page == nullptr) {
    return;
  } else if (type == "shown") {
    command("Page.screencastFrameAck", {{"sessionId", number("number", 1 << 30)}}, page->session);
  } else if (type == "stop") {
    command("Page.stopLoading", {}, page->session);
  } else if (type == "reload") {
    command("Page.reload", {}, page->session);
  } else if (type == "back") {
    command("Page.getNavigationHistory", {}, page->session, [this, session = page->session](const Json& history) {
      const auto at = history.value("currentIndex", 0);
      if (at > 0)
        command("Page.navigateToHistoryEntry",
                {{"entryId", history["entries"][static_cast<std::size_t>(at - 1)]["id"]}}, session);
    });
  } else if (type == "close") {
    command("Target.closeTarget", {{"targetId", shown_}});
  } else if (type == "text") {
    command("Input.insertText", {{"text", text_of(message, "text")}}, page->session);
  } else if (type == "composing") { // what an input method shows until its text is chosen
    const auto shown = text_of(message, "text");
    const auto end = number("end", 1000);
    command("Input.imeSetComposition", {{"text", shown}, {"selectionStart", end}, {"selectionEnd", end}},
            page->session);
  } else if (type == "dialog") {
    command("Page.handleJavaScriptDialog",
            {{"accept", message.value("accept", Json()) == true}, {"promptText", text_of(message, "text")}},
            page->session);
  } else if (type == "files") {
    give_files(message.value("files", Json::array()));
  } else if (type == "done") {
    save();
  } else {
    take_pointer(type, message);
  }
}

// Mouse, wheel, touch and keyboard.
void PersonsBrowser::take_pointer(const std::string& type, const Json& message) {
  const auto session = current()->session;
  if (type == "mouse")
    command("Input.dispatchMouseEvent",
            members(message, {"x", "y", "buttons", "clickCount", "modifiers", "deltaX", "deltaY"}, {"button"}),
            session);
  else if (type == "touch") {
    auto touch = members(message, {"modifiers"}, {});
    touch["touchPoints"] = Json::array();
    for (const auto& point : message.value("points", Json::array()))
      touch["touchPoints"].push_back(members(point, {"x", "y", "id"}, {}));
    command("Input.dispatchTouchEvent", touch, session);
  } else if (type == "key")
    command("Input.dispatchKeyEvent",
            members(message, {"modifiers", "windowsVirtualKeyCode", "location"}, {"key", "code", "text"}), session);
}

// Files of the person's machine, for the field that asks; none: the choice was given up.
void PersonsBrowser::give_files(const Json& files) {
  auto* page = current();
  const auto chooser = std::exchange(page->chooser, nullptr);
  say_waiting();
  if (chooser.is_null() || !files.is_array() || files.empty()) return;
  Json paths = Json::array();
  for (const auto& one : files) {
    if (!one.is_object()) continue;
    const auto directory = fs::current_path() / "files" / std::to_string(++uploads_);
    fs::create_directories(directory);
    const auto path = directory / upload_name(text_of(one, "name"));
    const auto bytes = base::base64_decode(text_of(one, "data"));
    if (write_file(path, [&](const auto& take) { take(bytes); })) paths.push_back(path.string());
  }
  command("DOM.setFileInputFiles", {{"files", paths}, {"backendNodeId", chooser["node"]}}, text_of(chooser, "session"));
}

// Visits an empty page at each origin, because only there its storage can be read. All requests of that page are
// answered here.
void PersonsBrowser::save() {
  auto* page = current();
  saving_ = true;
  say({{"type", "saving"}});
  command("Page.stopScreencast", {}, page->session);
  for (const auto& other : pages_) {
    if (!other.dialog.is_null()) command("Page.handleJavaScriptDialog", {{"accept", false}}, other.session);
    if (other.target != shown_) command("Target.closeTarget", {{"targetId", other.target}});
  }
  command("Network.setBypassServiceWorker", {{"bypass", true}}, page->session);
  command("Page.stopLoading", {}, page->session);
  command("Fetch.enable", {{"patterns", Json::array({{{"urlPattern", "*"}}})}}, page->session,
          [this](const Json&) { next_origin(); });
  unsaved_ = origins_;
}

void PersonsBrowser::next_origin() {
  auto* page = current();
  if (unsaved_.empty() || page == nullptr)
    return command("Storage.getCookies", {}, {},
                   [this](const Json& answer) { keep(answer.value("cookies", Json::array())); });
  visited_ = *unsaved_.begin();
  unsaved_.erase(unsaved_.begin());
  command("Page.navigate", {{"url", visited_ + "/"}}, page->session, [this](const Json& answer) {
    if (!text_of(answer, "errorText").empty()) next_origin();
  });
}

void PersonsBrowser::read_storage(const std::string& session) {
  command("Runtime.evaluate",
          {{"expression", "(" + std::string(embedded::storage_js) + ")(null)"},
           {"awaitPromise", true},
           {"returnByValue", true}},
          session, [this](const Json& answer) {
            auto found = answer.value("result", Json::object()).value("value", Json());
            if (!found.is_object()) found = Json::object();
            found["origin"] = visited_; // also without storage: its cookies are those of the browser
            storage_.push_back(std::move(found));
            next_origin();
          });
}

void PersonsBrowser::keep(const Json& cookies) {
  Json kept = Json::array();
  for (const auto& cookie : cookies) {
    Json one = {{"sameSite", cookie.value("sameSite", "Lax")}};
    for (const char* name : {"name", "value", "domain", "path", "expires", "httpOnly", "secure"})
      one[name] = cookie.value(name, Json());
    kept.push_back(std::move(one));
  }
  const auto text = json_text({{"cookies", kept}, {"origins", storage_}});
  ::umask(0077);
  kept_ = write_file(kStateFile, [&](const auto& take) { take(text); }) ? 0 : 1;
}

// Waits for something to happen and does it; false: it is over.
bool PersonsBrowser::round() {
  const auto wanted = [](const std::string& bytes) { return static_cast<short>(bytes.empty() ? 0 : POLLOUT); };
  const auto room = [](const std::string& bytes) { return static_cast<short>(bytes.size() < kMostPiled ? POLLIN : 0); };
  const auto& commands = browser_.outgoing.bytes;
  std::array<pollfd, 4> waiting{pollfd{browser_.answers(), room(outgoing_.bytes), 0},
                                pollfd{browser_.errors(), POLLIN, 0}, pollfd{browser_.commands(), wanted(commands), 0},
                                pollfd{view_.get(), static_cast<short>(room(commands) | wanted(outgoing_.bytes)), 0}};
  if (::poll(waiting.data(), waiting.size(), -1) < 0) return true;
  if (waiting[1].revents != 0) browser_.read_errors();
  const bool alive =
      (waiting[0].revents == 0 || browser_.read([this](std::string_view text) { take_message(text); })) &&
      browser_.flush();
  if (!alive) {
    const auto words = browser_.last_words();
    browser_.end();
    if (answered_ || !sandboxed_) throw failed("Chromium has ended: " + words);
    sandboxed_ = false; // as the crawl's browser does (Host::launch)
    start();
    return true;
  }
  if ((waiting[3].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    const auto before = incoming_.size();
    constexpr std::size_t kPiece = 1u << 16;
    incoming_.resize(before + kPiece);
    const auto count = ::read(view_.get(), incoming_.data() + before, kPiece);
    incoming_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) || incoming_.size() > kMostInput) return false;
    split_messages(incoming_, before, [this](std::string_view text) { take_input(text); });
  }
  return outgoing_.flush(view_.get()) && browser_.flush() && kept_ < 0;
}

int PersonsBrowser::run() {
  prepare();
  start();
  try {
    while (round()) {
    }
  } catch (...) {
    browser_.end();
    throw;
  }
  browser_.end();
  return kept_ < 0 ? 1 : kept_;
}

} // namespace

int run_sign_in() {
  try {
    return PersonsBrowser().run();
  } catch (const Ending& ending) {
    std::fprintf(stderr, "%s\n", ending.reason.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

} // namespace holdfast::capture
