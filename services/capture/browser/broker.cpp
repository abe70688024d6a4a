#include "services/capture/browser/broker.hpp"

#include "services/capture/browser/view.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::capture {

namespace {

constexpr std::size_t kMostQueued = 512u << 20; // for a hook that does not read

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

} // namespace

void Broker::begin(bool for_one) {
  for_one_ = for_one;
  pages_ = 0;
  command("Target.setDiscoverTargets", {{"discover", true}});
  command("Browser.setDownloadBehavior", {{"behavior", "deny"}});
  if (!for_one_) // the session of a page reports its other workers
    command("Target.setAutoAttach", {{"autoAttach", true},
                                     {"waitForDebuggerOnStart", true},
                                     {"flatten", true},
                                     {"filter", Json::array({{{"type", "shared_worker"}}, {{"exclude", true}}})}});
}

void Broker::forget() {
  pending_.clear();
  sessions_.clear();
}

void Broker::command(const std::string& method, const Json& parameters, const std::string& session) {
  const int id = ++last_id_;
  pending_[id] = {nullptr, 0, method, ""};
  Json whole = {{"id", id}, {"method", method}, {"params", parameters}};
  if (!session.empty()) whole["sessionId"] = session;
  browser_.bytes += json_text(whole);
  browser_.bytes.push_back('\0');
}

void Broker::give(Client& client, std::string_view message) {
  client.outgoing.bytes += message;
  client.outgoing.bytes.push_back('\0');
  if (!client.outgoing.flush(client.socket) || client.outgoing.bytes.size() > kMostQueued) client.gone = true;
}

bool Broker::may(const Client& client, const std::string& method, const Json& parameters,
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
void Broker::take_command(Client& client, std::string_view message) {
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
  browser_.bytes += json_text(passed);
  browser_.bytes.push_back('\0');
}

void Broker::drop(Client& client, bool browser_runs) {
  if (browser_runs)
    for (const auto& context : client.contexts)
      command("Target.disposeBrowserContext", {{"browserContextId", context}});
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    if (it->second.client != &client) {
      ++it;
      continue;
    }
    if (browser_runs && client.contexts.empty()) command("Target.detachFromTarget", {{"sessionId", it->first}});
    it = sessions_.erase(it);
  }
  for (auto& [id, pending] : pending_)
    if (pending.client == &client) pending.client = nullptr;
}

void Broker::take_message(std::string_view message) {
  if (message.starts_with("{\"id\":"))
    take_answer(message);
  else
    take_event(message);
}

void Broker::take_answer(std::string_view message) {
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
// for its debugger, and the page that has opened it waits with it, so that it must run to be closed, without a request
// that is sent. Chromium also reports here each session that a hook asks for, which is that hook's alone.
void Broker::take_attached(const Json& parameters, std::string_view message) {
  const auto& info = parameters["targetInfo"];
  const auto context = text_at(info, "browserContextId"), session = text_at(parameters, "sessionId");
  if (text_at(info, "type") == "page" && !text_at(info, "openerId").empty()) {
    command("Fetch.enable", Json::object(), session);
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

void Broker::take_event(std::string_view message) {
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

} // namespace holdfast::capture
