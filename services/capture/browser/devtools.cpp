#include "services/capture/browser/devtools.hpp"

#include "services/capture/browser/chromium.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace holdfast::capture {

namespace {

constexpr std::size_t kLargestMessage = 256u << 20;
constexpr const char* kReplaced = "Inspected target navigated or closed"; // Chromium's words
constexpr const char* kEnded = "the browser ended by itself";

// Parses a message. Screenshots and bodies come as base64, whose letters need no check: it is cut out of the parsed
// text. It is the member "data" of the result or the parameters; in a string, its quotes would be escaped.
Json parse_message(std::string_view text) {
  constexpr std::string_view kKey = "\"data\":\"";
  constexpr std::size_t kWorthwhile = 4096;
  const auto key = text.size() < kWorthwhile ? std::string_view::npos : text.find(kKey);
  if (key == std::string_view::npos) return Json::parse(text, nullptr, false);
  const auto begin = key + kKey.size(), end = std::min(text.find('"', begin), text.size());
  if (text.substr(begin, end - begin).find('\\') != std::string_view::npos) return Json::parse(text, nullptr, false);
  auto message = Json::parse(std::string(text.substr(0, begin)).append(text.substr(end)), nullptr, false);
  for (const char* holder : {"result", "params"}) {
    if (!message.is_object() || !message.contains(holder) || message[holder].value("data", Json()) != "") continue;
    message[holder]["data"] = text.substr(begin, end - begin);
    return message;
  }
  return Json::parse(text, nullptr, false);
}

// Negative: it cannot.
int connect_to(const std::filesystem::path& path) {
  // The path of a socket may have 107 bytes only, so its directory is opened and named by its descriptor.
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const int directory = ::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto name = "/proc/self/fd/" + std::to_string(directory) + "/" + path.filename().string();
  std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
  int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0 && ::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(descriptor);
    descriptor = -1;
  }
  ::close(directory);
  return descriptor;
}

} // namespace

DevTools::DevTools(const std::filesystem::path& socket) : socket_(connect_to(socket)) {
  if (socket_ < 0)
    throw skipped("the crawl has no browser here: the crawl hook of the browser plugin did not start one");
}

DevTools::~DevTools() {
  if (socket_ >= 0) ::close(socket_);
}

void DevTools::send(const std::string& method, Json parameters, const std::string& session, Reply reply) {
  const int id = ++last_id_;
  // The host reads the id and the method from the beginning: JSON objects are written in the order of their keys.
  Json message = {
      {"id", id}, {"method", method}, {"params", parameters.is_null() ? Json::object() : std::move(parameters)}};
  if (!session.empty()) message["sessionId"] = session;
  if (reply) replies_[id] = std::move(reply);
  std::string text = json_text(message);
  text.push_back('\0');
  for (std::string_view rest = text; !rest.empty();) {
    const auto count = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw failed(kEnded);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::shared_ptr<DevTools::Answer> DevTools::ask(const std::string& method, Json parameters,
                                                const std::string& session) {
  const auto answer = std::make_shared<Answer>();
  send(method, std::move(parameters), session, [answer](Json result, const std::string& error) {
    *answer = {true, std::move(result), error};
  });
  return answer;
}

Json DevTools::call(const std::string& method, Json parameters, const std::string& session, Clock::time_point until) {
  const auto answer = ask(method, std::move(parameters), session);
  if (!pump(until, [&] { return answer->there; }))
    throw Silent{failed("the browser did not answer in time (" + method + ")")};
  if (answer->error == kReplaced) throw Replaced{failed(method + ": " + answer->error)};
  if (!answer->error.empty()) throw failed(method + ": " + answer->error);
  return std::move(answer->result);
}

Json DevTools::evaluate(const std::string& expression, const std::string& session, Clock::time_point until, int world) {
  Json parameters = {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}};
  if (world != 0) parameters["contextId"] = world;
  return call("Runtime.evaluate", std::move(parameters), session, until)
      .value("result", Json::object())
      .value("value", Json());
}

std::string DevTools::open_page(const std::string& context, Clock::time_point until, const Json& more) {
  Json parameters = {{"url", "about:blank"}, {"browserContextId", context}};
  parameters.update(more);
  return text_at(call("Target.createTarget", std::move(parameters), "", until), "targetId");
}

std::string DevTools::attach_to(const std::string& target, Clock::time_point until) {
  return text_at(call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}}, "", until), "sessionId");
}

bool DevTools::pump(Clock::time_point until, const std::function<bool()>& done) {
  while (!done()) {
    const auto left = Seconds(until - Clock::now()).count();
    if (left <= 0) return false;
    timespec wait{};
    const double bounded = std::min(left, 3600.0);
    wait.tv_sec = static_cast<time_t>(bounded);
    wait.tv_nsec = static_cast<long>((bounded - std::floor(bounded)) * 1e9);
    pollfd waiting[] = {{socket_, POLLIN, 0}, {other_, POLLIN, 0}}; // a negative one is left out
    const int ready = ::ppoll(waiting, 2, &wait, nullptr);
    if (ready > 0 && waiting[0].revents != 0) read_some();
    if (ready > 0 && waiting[1].revents != 0) other_readable_();
  }
  return true;
}

void DevTools::read_some() {
  const auto got = read_messages(socket_, buffer_, [this](auto text) { take(text); }); // which may send, not receive
  if (got == Got::end) throw failed(kEnded);
  if (buffer_.size() > kLargestMessage)
    throw failed("the page is larger than " + std::to_string(kLargestMessage >> 20) + " MiB");
}

void DevTools::take(std::string_view text) {
  auto message = parse_message(text);
  if (!message.is_object()) return;
  if (const auto id = message.find("id"); id != message.end()) {
    const auto waiting = replies_.find(id->get<int>());
    if (waiting == replies_.end()) return;
    const auto reply = std::move(waiting->second);
    replies_.erase(waiting);
    std::string error;
    if (const auto found = message.find("error"); found != message.end()) error = found->value("message", "error");
    const auto result = message.find("result");
    reply(result == message.end() ? Json::object() : std::move(*result), error);
  } else if (event_ && message.contains("method")) {
    static const Json kNone = Json::object();
    const auto parameters = message.find("params");
    event_(message["method"].get<std::string>(), parameters == message.end() ? kNone : *parameters,
           message.value("sessionId", std::string()));
  }
}

} // namespace holdfast::capture
