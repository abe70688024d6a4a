#include "services/capture/browser/browser_host.hpp"

#include "services/capture/browser/chromium.hpp"
#include "services/capture/browser/devtools.hpp"
#include "services/capture/browser/view.hpp"
#include "services/capture/hook.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <set>
#include <unordered_map>
#include <vector>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostQueued = 512u << 20; // for a hook that does not read
constexpr std::size_t kMostAhead = 4u << 20;    // for a Chromium that does not read: hooks wait meanwhile
constexpr std::chrono::seconds kStartTime{45};  // until its first answer, on a machine that is busy
constexpr int kPagesPerBrowser = 500;           // then another Chromium is started, once no page is open

volatile sig_atomic_t stopping = 0;

// Prints without a stream of C++: <iostream> sets up its locales in each start of the program.
void say(std::FILE* stream, std::string text) {
  text += '\n';
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

// The session that a message of Chromium belongs to: its last member, or empty.
std::string_view session_of(std::string_view message) {
  constexpr std::string_view kKey = "\"sessionId\":\"";
  if (!message.ends_with("\"}")) return {};
  const auto at = message.rfind(kKey);
  if (at == std::string_view::npos || message.size() - at > 120) return {};
  const auto begin = at + kKey.size();
  return message.substr(begin, message.size() - 2 - begin);
}

// Commands that a hook may send to a page that another hook has opened: its content, but not its cookies, its storage
// and its requests, which may be those of a persona.
const std::set<std::string, std::less<>> kOfOthers{"Inspector.enable",
                                                   "Page.getFrameTree",
                                                   "Page.createIsolatedWorld",
                                                   "Page.getLayoutMetrics",
                                                   "Page.captureScreenshot",
                                                   "Page.printToPDF",
                                                   "Page.handleJavaScriptDialog",
                                                   "DOM.getDocument",
                                                   "DOM.getOuterHTML",
                                                   "Emulation.setDeviceMetricsOverride"};
// Without a session.
const std::set<std::string, std::less<>> kOfBrowser{
    "Browser.getVersion", "Storage.getCookies",          "Storage.setCookies", "Target.attachToTarget",
    "Target.closeTarget", "Target.createBrowserContext", "Target.createTarget"};

class Host {
public:
  int run();
  int run_for(int socket);
  int start_and_end();

private:
  struct Client {
    int socket{-1};
    std::string incoming;
    Outgoing outgoing;
    std::set<std::string> contexts, targets; // that it has made
    bool gone{false};
  };
  struct Pending {
    Client* client{nullptr}; // null: of the host itself
    int id{0};
    std::string method, target;
  };
  struct Session {
    Client* client{nullptr};
    bool of_others{false}; // of a page that another client has opened
  };

  void prepare();
  void listen();
  void launch();
  bool start_browser();
  void end_browser();
  void accept_client();
  void read_client(Client& client);
  void drop(Client& client);
  void take_command(Client& client, std::string_view message);
  bool may(const Client& client, const std::string& method, const Json& parameters, const std::string& session) const;
  void take_message(std::string_view message);
  void take_answer(std::string_view message);
  void take_event(std::string_view message);
  void take_attached(const Json& parameters, std::string_view message);
  void command(const std::string& method, const Json& parameters, const std::string& session = {});
  void give(Client& client, std::string_view message);
  bool round();
  bool serve();

  int listener_{-1};
  bool for_one_{false}; // one client, not hooks
  int pages_{0}, last_id_{0};
  bool sandboxed_{may_be_sandboxed()};
  std::string program_;
  Chromium browser_;
  std::list<Client> clients_;
  std::unordered_map<int, Pending> pending_;
  std::unordered_map<std::string, Session> sessions_;
};

void Host::listen() {
  ::unlink(kBrowserSocket);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, kBrowserSocket,
               sizeof address.sun_path - 1); // relative: the full path may be too long
  const auto mask = ::umask(0077);
  const bool bound = listener_ >= 0 && ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::umask(mask);
  if (!bound || ::listen(listener_, 64) != 0)
    throw failed(std::string("cannot listen on ") + kBrowserSocket + ": " + std::strerror(errno));
}

// Starts Chromium. A container gives it no namespaces for its own sandbox, and a kernel may not: whether it starts with
// one is seen by trying. Without one it has the sandbox of its hook.
void Host::launch() {
  if (start_browser()) return;
  auto reason = browser_.last_words();
  end_browser();
  if (sandboxed_) {
    say(stderr, "Chromium does not start with its own sandbox here, so it runs without: " + reason);
    sandboxed_ = false;
    if (start_browser()) return;
    reason = browser_.last_words();
    end_browser();
  }
  throw failed("Chromium does not start: " + (reason.empty() ? "it ends without a word" : reason));
}

// Returns false if it ends before its first answer. Also returns true if we are requested to end meanwhile.
bool Host::start_browser() {
  browser_.start(program_, sandboxed_);
  pages_ = 0;
  command("Target.setDiscoverTargets", {{"discover", true}});
  command("Browser.setDownloadBehavior", {{"behavior", "deny"}});
  if (!for_one_) // the session of a page reports its other workers
    command("Target.setAutoAttach", {{"autoAttach", true},
                                     {"waitForDebuggerOnStart", true},
                                     {"flatten", true},
                                     {"filter", Json::array({{{"type", "shared_worker"}}, {{"exclude", true}}})}});
  bool answered = false;
  sigset_t none;
  ::sigemptyset(&none);
  for (const auto until = Clock::now() + kStartTime; !answered && stopping == 0;) {
    if (!browser_.flush()) return false;
    const auto left = std::chrono::ceil<std::chrono::seconds>(until - Clock::now());
    if (left.count() <= 0)
      throw failed("Chromium has not answered within " + std::to_string(kStartTime.count()) + " s of its start");
    std::array<pollfd, 2> waiting{pollfd{browser_.answers(), POLLIN, 0}, pollfd{browser_.errors(), POLLIN, 0}};
    const timespec longest{left.count(), 0};
    if (::ppoll(waiting.data(), waiting.size(), &longest, &none) < 0) continue;
    if (waiting[1].revents != 0) browser_.read_errors();
    if (waiting[0].revents != 0 && !browser_.read([&](std::string_view message) {
          answered = true;
          take_message(message);
        }))
      return false;
  }
  return true;
}

void Host::end_browser() {
  browser_.end();
  pending_.clear();
  sessions_.clear();
}

void Host::command(const std::string& method, const Json& parameters, const std::string& session) {
  const int id = ++last_id_;
  pending_[id] = {nullptr, 0, method, ""};
  Json whole = {{"id", id}, {"method", method}, {"params", parameters}};
  if (!session.empty()) whole["sessionId"] = session;
  browser_.outgoing.bytes += json_text(whole);
  browser_.outgoing.bytes.push_back('\0');
}

void Host::give(Client& client, std::string_view message) {
  client.outgoing.bytes += message;
  client.outgoing.bytes.push_back('\0');
  if (!client.outgoing.flush(client.socket) || client.outgoing.bytes.size() > kMostQueued) client.gone = true;
}

void Host::accept_client() {
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  if (browser_.runs() && pages_ >= kPagesPerBrowser && clients_.empty()) end_browser();
  if (!browser_.runs()) launch();
  clients_.emplace_back().socket = socket;
}

void Host::read_client(Client& client) {
  auto got = Got::some;
  do
    got = read_messages(client.socket, client.incoming, [&](auto message) { take_command(client, message); });
  while (got == Got::some && browser_.outgoing.bytes.size() < kMostAhead);
  if (got == Got::end) client.gone = true;
}

bool Host::may(const Client& client, const std::string& method, const Json& parameters,
               const std::string& session) const {
  const auto context = text_at(parameters, "browserContextId");
  if (for_one_) return true;
  if (!context.empty() && !client.contexts.contains(context)) return false;
  if (session.empty())
    return kOfBrowser.contains(method) &&
           (!context.empty() || (method != "Target.createTarget" && !method.starts_with("Storage.")));
  const auto owned = sessions_.find(session);
  if (owned == sessions_.end() || owned->second.client != &client) return false;
  if (!owned->second.of_others) // from a page, too, the browser could be asked
    return method == "Target.setAutoAttach" || !(method.starts_with("Target.") || method.starts_with("Browser."));
  if (method != "Runtime.evaluate") return kOfOthers.contains(method);
  const auto& known = view_expressions();
  return std::find(known.begin(), known.end(), text_at(parameters, "expression")) != known.end();
}

// Passed on under a number of the host's, and with nothing that has not been looked at.
void Host::take_command(Client& client, std::string_view message) {
  auto command = Json::parse(message, nullptr, false);
  const auto method = text_at(command, "method"), session = text_at(command, "sessionId");
  const auto given = command.find("id");
  if (method.empty() || given == command.end() || !given->is_number_integer()) {
    client.gone = true;
    return;
  }
  const int id = given->get<int>();
  auto parameters = command.value("params", Json::object());
  if (!may(client, method, parameters, session))
    return give(client, json_text({{"error", {{"message", "it is not for this hook"}}}, {"id", id}}));
  const int own = ++last_id_;
  pending_[own] = {&client, id, method, text_at(parameters, "targetId")};
  Json passed = {{"id", own}, {"method", method}, {"params", std::move(parameters)}};
  if (!session.empty()) passed["sessionId"] = session;
  browser_.outgoing.bytes += json_text(passed);
  browser_.outgoing.bytes.push_back('\0');
}

void Host::drop(Client& client) {
  if (browser_.runs())
    for (const auto& context : client.contexts)
      command("Target.disposeBrowserContext", {{"browserContextId", context}});
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    if (it->second.client != &client) {
      ++it;
      continue;
    }
    if (browser_.runs() && client.contexts.empty()) command("Target.detachFromTarget", {{"sessionId", it->first}});
    it = sessions_.erase(it);
  }
  for (auto& [id, pending] : pending_)
    if (pending.client == &client) pending.client = nullptr;
  ::close(client.socket);
}

void Host::take_message(std::string_view message) {
  if (message.starts_with("{\"id\":"))
    take_answer(message);
  else
    take_event(message);
}

void Host::take_answer(std::string_view message) {
  constexpr std::size_t kNumber = 6;
  int id = 0;
  const auto number = std::from_chars(message.data() + kNumber, message.data() + message.size(), id);
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  const auto pending = found->second;
  pending_.erase(found);
  if (pending.method == "Target.createBrowserContext" || pending.method == "Target.attachToTarget" ||
      pending.method == "Target.createTarget") {
    const auto answer = Json::parse(message, nullptr, false);
    const auto result = answer.is_object() ? answer.value("result", Json::object()) : Json::object();
    const auto context = result.value("browserContextId", ""), session = result.value("sessionId", "");
    if (pending.client == nullptr) { // its hook has ended meanwhile
      if (!context.empty()) command("Target.disposeBrowserContext", {{"browserContextId", context}});
      return;
    }
    if (!context.empty()) {
      ++pages_;
      pending.client->contexts.insert(context);
      command("Browser.setDownloadBehavior", {{"behavior", "deny"}, {"browserContextId", context}});
    }
    if (!session.empty()) sessions_[session] = {pending.client, !pending.client->targets.contains(pending.target)};
    if (pending.method == "Target.createTarget") pending.client->targets.insert(text_at(result, "targetId"));
  }
  if (pending.client == nullptr) return;
  give(*pending.client, "{\"id\":" + std::to_string(pending.id) +
                            std::string(message.substr(static_cast<std::size_t>(number.ptr - message.data()))));
}

// Gives a shared worker to the hook whose page has started it, and ends a window that a page has opened. A window waits
// for its debugger, and the page that has opened it waits with it, so that it must run to be closed. Chromium also
// reports here each session that a hook asks for, which is that hook's alone.
void Host::take_attached(const Json& parameters, std::string_view message) {
  const auto& info = parameters["targetInfo"];
  const auto context = text_at(info, "browserContextId"), session = text_at(parameters, "sessionId");
  if (text_at(info, "type") == "page" && !text_at(info, "openerId").empty()) {
    command("Runtime.runIfWaitingForDebugger", Json::object(), session);
    return command("Target.closeTarget", {{"targetId", info["targetId"]}});
  }
  if (text_at(info, "type") != "shared_worker") return;
  for (auto& client : clients_) {
    if (!client.contexts.contains(context)) continue;
    sessions_[session] = {&client, false};
    return give(client, message);
  }
  command("Target.detachFromTarget", {{"sessionId", session}});
}

void Host::take_event(std::string_view message) {
  constexpr std::string_view kAttached = "{\"method\":\"Target.attachedToTarget\"",
                             kCreated = "{\"method\":\"Target.targetCreated\"";
  const auto session = session_of(message);
  if (for_one_) {
    if (!clients_.empty()) give(clients_.front(), message);
    return;
  }
  if (session.empty()) {
    if (message.starts_with(kAttached)) take_attached(Json::parse(message, nullptr, false)["params"], message);
    if (!message.starts_with(kCreated)) return;
    // A page cannot open windows: their content would be neither checked nor recorded.
    const auto event = Json::parse(message, nullptr, false);
    const auto& info = event["params"]["targetInfo"];
    if (info.value("type", "") == "page" && !info.value("openerId", "").empty())
      command("Target.attachToTarget", {{"targetId", info["targetId"]}, {"flatten", true}});
    return;
  }
  const auto owner = sessions_.find(std::string(session));
  if (owner == sessions_.end()) return;
  Client& client = *owner->second.client;
  if (message.starts_with(kAttached)) {
    const auto event = Json::parse(message, nullptr, false);
    sessions_[event["params"].value("sessionId", "")] = owner->second; // a frame or worker of its page
  }
  give(client, message);
}

// Waits for something to happen and does it.
bool Host::round() {
  std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
  if (browser_.runs()) {
    waiting.push_back({browser_.answers(), POLLIN, 0});
    waiting.push_back({browser_.commands(), static_cast<short>(browser_.outgoing.bytes.empty() ? 0 : POLLOUT), 0});
    waiting.push_back({browser_.errors(), POLLIN, 0});
  }
  const auto first_client = waiting.size();
  const int reads = browser_.outgoing.bytes.size() < kMostAhead ? POLLIN : 0;
  for (const auto& client : clients_)
    waiting.push_back({client.socket, static_cast<short>(client.outgoing.bytes.empty() ? reads : reads | POLLOUT), 0});
  sigset_t none;
  ::sigemptyset(&none);
  if (::ppoll(waiting.data(), waiting.size(), nullptr, &none) < 0) return stopping == 0;
  bool alive = true;
  if (first_client > 1) {
    if (waiting[1].revents != 0) alive = browser_.read([this](std::string_view message) { take_message(message); });
    if ((waiting[2].revents & POLLERR) != 0) alive = false;
    if (waiting[3].revents != 0) browser_.read_errors();
  }
  auto place = waiting.begin() + static_cast<std::ptrdiff_t>(first_client);
  for (auto& client : clients_) {
    const auto happened = (place++)->revents;
    if ((happened & POLLOUT) != 0 && !client.outgoing.flush(client.socket)) client.gone = true;
    if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0) read_client(client);
  }
  if (alive && browser_.runs()) alive = browser_.flush();
  for (auto it = clients_.begin(); it != clients_.end();) {
    if (!alive || it->gone) {
      drop(*it);
      it = clients_.erase(it);
    } else {
      ++it;
    }
  }
  if (!alive) {
    const auto words = browser_.last_words();
    say(stderr, "Chromium has ended by itself" + (words.empty() ? "" : " (" + words + ")") +
                    (for_one_ ? "" : "; the next page starts another"));
    end_browser();
  } else if (browser_.runs() && !browser_.flush()) {
    end_browser();
  }
  if ((waiting[0].revents & POLLIN) != 0) accept_client();
  return stopping == 0;
}

// Goes to its directory, and lets signals through only while it waits.
void Host::prepare() {
  struct sigaction action {};
  action.sa_handler = [](int) { stopping = 1; };
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT}) {
    ::sigaction(signal, &action, nullptr);
    ::sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr); // but while it waits
  ::signal(SIGPIPE, SIG_IGN);
  const auto crawl = Job::setting("CRAWL_DIR");
  if (!crawl.empty()) {
    fs::create_directories(fs::path(crawl) / "browser");
    fs::current_path(fs::path(crawl) / "browser");
  }
  program_ = browser_program();
}

int Host::start_and_end() {
  prepare();
  launch();
  if (stopping != 0) return 1;
  say(stdout,
      program_ + (sandboxed_ ? ", with its own sandbox" : ", without its own sandbox: it has that of its hook"));
  end_browser();
  return 0;
}

int Host::run() {
  prepare();
  listen();
  launch();
  if (stopping == 0) say(stdout, "Chromium is started: " + program_); // which says that we are ready
  serve();
  ::unlink(kBrowserSocket);
  return 0;
}

int Host::run_for(int socket) {
  prepare();
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  for_one_ = true;
  clients_.emplace_back().socket = socket;
  launch();
  return serve() ? 0 : 1;
}

// Serves hooks. Returns false if Chromium has ended by itself.
bool Host::serve() {
  try {
    while (stopping == 0 && round() && !(for_one_ && clients_.empty())) {
    }
  } catch (...) {
    end_browser();
    throw;
  }
  const bool runs = browser_.runs();
  end_browser();
  return runs;
}

// The exit status of a hook.
template <typename... Arguments>
int run(int (Host::*work)(Arguments...), Arguments... arguments) {
  try {
    return (Host().*work)(arguments...);
  } catch (const Ending& ending) {
    say(stderr, ending.reason);
    return ending.status == Status::skipped ? 10 : 1;
  } catch (const std::exception& error) {
    say(stderr, error.what());
    return 1;
  }
}

} // namespace

int run_browser_host() { return run(&Host::run); }

int run_browser_for(int socket) { return run(&Host::run_for, socket); }

int try_browser() { return run(&Host::start_and_end); }

} // namespace holdfast::capture
