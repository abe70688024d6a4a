#include "services/capture/browser/persona.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/persona/state.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/embedded.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace holdfast::capture {

namespace {

// "https://press.example:8443" of a URL, as its scripts see it.
std::string origin_of(const std::string& url) {
  const auto parts = base::split_url(url);
  return parts.has_authority ? std::string(parts.scheme) + "://" + std::string(parts.authority) : "";
}

constexpr std::size_t kLargestState = 64u << 20;
constexpr std::chrono::seconds kPerOrigin{10};

// Returns true if an address is the login or a step of it. All pages of a site are below its root, so there only the
// root itself is the login.
bool is_login(std::string_view url, std::string_view login) {
  if (!url.starts_with(login)) return false;
  const auto rest = url.substr(login.size());
  const auto parts = base::split_url(login);
  return rest.empty() || rest.front() == '?' || rest.front() == '#' || parts.path.size() > 1 || parts.has_query;
}

} // namespace

Persona::Persona(DevTools& browser) : browser_(browser), file_(Job::setting("AUTH_STORAGE_FILE")) {
  const auto jar = Job::setting("COOKIES_FILE");
  if (!file_.empty()) state_ = Json::parse(read_file(file_, kLargestState), nullptr, false);
  if (state_.is_object()) return;
  std::vector<std::string> left_out;
  state_ = Json::parse(persona::parse_cookies_txt(read_file(jar, kLargestState), jar, left_out).text());
}

void Persona::give(const std::string& context, Clock::time_point until) {
  give_cookies(context, state_.value("cookies", Json::array()), until);
  for (const auto& one : state_.value("origins", Json::array()))
    if (!one.value("localStorage", Json::array()).empty() || !one.value("indexedDB", Json::array()).empty())
      on_origin(context, text_at(one, "origin"), one, until);
}

void Persona::give_cookies(const std::string& context, const Json& cookies, Clock::time_point until) {
  const auto set = [&](const Json& some) {
    browser_.call("Storage.setCookies", {{"cookies", some}, {"browserContextId", context}}, "", until);
  };
  auto all = Json::array();
  for (const auto& cookie : cookies) {
    all.push_back(cookie);
    if (cookie.value("expires", -1.0) <= 0) all.back().erase("expires");
  }
  if (all.empty()) return;
  try {
    set(all);
  } catch (const Ending&) { // one that it does not take spoils them all
    for (const auto& cookie : all)
      try {
        set(Json::array({cookie}));
      } catch (const Ending&) {
      }
  }
}

Json Persona::on_origin(const std::string& context, const std::string& origin, const Json& given,
                        Clock::time_point until) {
  until = std::min(until, Clock::now() + kPerOrigin);
  Json answer;
  std::string target;
  try {
    target = browser_.open_page(context, until);
    session_ = browser_.attach_to(target, until);
    browser_.send("Network.enable", {}, session_);
    browser_.send("Network.setBypassServiceWorker", {{"bypass", true}}, session_);
    browser_.send("Fetch.enable", {{"patterns", Json::array({{{"urlPattern", "*"}}})}}, session_);
    browser_.call("Page.navigate", {{"url", origin + "/"}}, session_, until);
    answer =
        browser_.evaluate("(" + std::string(embedded::storage_js) + ")(" + json_text(given) + ")", session_, until);
  } catch (const Ending&) {
  }
  if (!target.empty()) browser_.send("Target.closeTarget", {{"targetId", target}}, "");
  session_.clear();
  return answer;
}

// A page that renews its token need not store it, but sends it: in a header, or in a URL.
void Persona::note_sent(const std::string& method, const Json& parameters) {
  constexpr std::string_view kNames[] = {"authorization", "token", "secret", "api-key", "apikey", "api_key", "session"};
  constexpr std::size_t kMost = 200, kShortest = 12;
  const auto note = [&](const std::string& name, const std::string& value) {
    const auto called = [name = lower_case(name)](auto part) { return name.find(part) != std::string::npos; };
    if (value.size() >= kShortest && sent_.size() < kMost && std::any_of(std::begin(kNames), std::end(kNames), called))
      sent_.emplace(name, value);
  };
  const bool as_sent = method == "Network.requestWillBeSentExtraInfo";
  if (file_.empty() || (!as_sent && method != "Network.requestWillBeSent")) return;
  const auto& request = as_sent ? parameters : parameters["request"];
  const auto headers = request.value("headers", Json::object());
  for (const auto& [name, value] : headers.items())
    if (value.is_string()) note(name, value.get<std::string>());
  const auto url = text_at(request, "url");
  for (const auto& pair : base::split(base::split_url(url).query, "&")) {
    const auto equals = std::min(pair.find('='), pair.size());
    note(pair.substr(0, equals), base::percent_decode(pair.substr(std::min(equals + 1, pair.size()))));
  }
}

bool Persona::take(const std::string& method, const Json& parameters, const std::string& session) {
  note_sent(method, parameters);
  if (session.empty() || session != session_) return false;
  if (method == "Fetch.requestPaused")
    browser_.send("Fetch.fulfillRequest",
                  {{"requestId", parameters["requestId"]},
                   {"responseCode", 200},
                   {"responseHeaders", Json::array({{{"name", "Content-Type"}, {"value", "text/html"}}})}},
                  session);
  return true;
}

Json Persona::read(const std::string& context, const std::set<std::string>& origins, Clock::time_point until) {
  Json found = {{"cookies", browser_.call("Storage.getCookies", {{"browserContextId", context}}, "", until)["cookies"]},
                {"origins", Json::array()}};
  for (const auto& origin : origins) {
    auto storage = on_origin(context, origin, nullptr, until);
    if (!storage.is_object()) storage = Json::object();
    storage["origin"] = origin;
    found["origins"].push_back(std::move(storage));
  }
  return found;
}

void Persona::keep(const std::string& context, const std::string& page_url, Clock::time_point until) {
  const auto changes = std::filesystem::path(file_).parent_path() / "changes";
  std::error_code error;
  if (file_.empty() || !std::filesystem::is_directory(changes, error)) return;
  std::set<std::string> origins{origin_of(page_url)};
  for (const auto& one : state_.value("origins", Json::array()))
    origins.insert(text_at(one, "origin"));
  std::erase_if(origins, [](const auto& origin) { return !origin.starts_with("http"); });
  Json now = {{"version", state_.value("version", 0)}, {"origins", Json::array()}};
  try {
    const auto found = read(context, origins, until);
    now["cookies"] = found["cookies"];
    for (const auto& one : found["origins"]) {
      if (!one.contains("localStorage")) return; // what is not known is not taken for gone
      if (!one["localStorage"].empty() || !one["indexedDB"].empty()) now["origins"].push_back(one);
    }
  } catch (const Ending&) { // the page is none the worse
    return;
  }
  for (const auto& [header, value] : sent_) // known to be secret, and not the persona's own
    now["headers"].push_back({{"origin", origin_of(page_url)}, {"name", header}, {"value", value}});
  const auto text = json_text(now);
  const auto name = changes / std::to_string(::getpid());
  if (write_file(name, [&](const auto& take) { take(text); }))
    std::rename(name.c_str(), (name.string() + ".json").c_str());
}

std::optional<std::pair<std::string, std::string>> Persona::login(const std::string& origin) const {
  for (const auto& one : state_.value("httpCredentials", Json::array()))
    if (const auto of = text_at(one, "origin"); of == origin || (of.empty() && is_for(host_in(origin))))
      return std::pair{text_at(one, "username"), text_at(one, "password")};
  return std::nullopt;
}

Json Persona::headers(const std::string& url, const Json& own) const {
  Json all;
  const auto origin = origin_of(url);
  for (const auto& one : state_.value("headers", Json::array())) {
    if (text_at(one, "origin") != origin) continue;
    if (all.is_null()) {
      all = Json::array();
      for (const auto& [name, value] : own.items())
        all.push_back({{"name", name}, {"value", value}});
    }
    all.push_back({{"name", text_at(one, "name")}, {"value", text_at(one, "value")}});
  }
  return all;
}

bool Persona::signs_in() const {
  for (const char* list : {"cookies", "origins", "httpCredentials", "headers"})
    if (!state_.value(list, Json::array()).empty()) return true;
  return false;
}

// Returns true if it has something for this host: its pages must be captured signed in.
bool Persona::is_for(const std::string& host) const {
  const auto covers = [&](std::string domain) {
    const bool below = domain.starts_with('.');
    if (below) domain.erase(0, 1);
    return host == domain || (below && host.ends_with("." + domain));
  };
  for (const auto& named : state_.value("hosts", Json::array()))
    if (covers("." + named.get<std::string>())) return true;
  for (const auto& cookie : state_.value("cookies", Json::array()))
    if (covers(text_at(cookie, "domain"))) return true;
  for (const char* list : {"origins", "httpCredentials", "headers"})
    for (const auto& one : state_.value(list, Json::array()))
      if (covers(host_in(text_at(one, "origin")))) return true;
  return false;
}

std::string Persona::why_signed_out(const std::string& context, const std::string& session,
                                    const std::string& requested, const std::string& url, int status, bool shown,
                                    Clock::time_point until) {
  constexpr int kUnauthorized = 401;
  const auto host = host_in(requested);
  if (status == kUnauthorized && is_for(host_in(url))) return "the site answers HTTP 401";
  Json cookies;
  for (const auto& check : state_.value("checks", Json::array())) {
    const auto kind = text_at(check, "kind"), value = text_at(check, "value"), site = text_at(check, "url");
    if (site.empty() ? !is_for(host) : host_in(site) != host) continue;
    const bool is_out = check.value("signed_out", false);
    if (kind == "redirect") {
      if (is_login(url, value) && !is_login(requested, value)) return "the page led to the login";
    } else if (kind == "cookie") {
      if (cookies.is_null())
        cookies = browser_.call("Storage.getCookies", {{"browserContextId", context}}, "", until)["cookies"];
      if (std::none_of(cookies.begin(), cookies.end(), [&](const Json& one) { return text_at(one, "name") == value; }))
        return "the cookie \"" + value + "\" has ended";
    } else if ((kind == "text" || kind == "selector" || kind == "login") && shown && status < kFirstError) {
      const auto expression = "(" + std::string(embedded::shows_js) + ")(" + json_text(check) + ")";
      const auto shows = browser_.evaluate(expression, session, until);
      if (!shows.is_boolean() || shows.get<bool>() != is_out) continue;
      if (kind == "login") return "the page asks for a login";
      return std::string(is_out ? "the page shows " : "the page does not show ") + kind + " \"" + value + "\"";
    }
  }
  return {};
}

} // namespace holdfast::capture
