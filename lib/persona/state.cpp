#include "lib/persona/state.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json_depth.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/percent.hpp"
#include "lib/base/text.hpp"
#include "lib/base/utf8.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace holdfast::persona {

using base::Error;
using base::ErrorClass;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kMostCookies = 10'000; // a browser keeps some 3,000
constexpr int kDeepest = 512;                // values in IndexedDB nest

[[noreturn]] void not_a_state(const std::string& where, const std::string& what) {
  throw Error(ErrorClass::refused, where + ": " + what, "storage state as Playwright writes it, or a cookies.txt");
}

// The members of a JSON object, with an error that names the place instead of the value.
struct Reader {
  const std::string& where;

  const Json* member(const Json& object, const char* name) const {
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(const Json& object, const char* name) const {
    const auto* const found = member(object, name);
    if (found == nullptr) return "";
    if (!found->is_string()) not_a_state(where, std::string("\"") + name + "\" is not a string");
    return found->get<std::string>();
  }
  // What becomes a header or an environment variable.
  std::string line(const Json& object, const char* name) const {
    auto value = text(object, name);
    if (std::any_of(value.begin(), value.end(), base::is_control))
      not_a_state(where, std::string("\"") + name + "\" has control characters");
    return value;
  }
  bool flag(const Json& object, const char* name) const {
    const auto* const found = member(object, name);
    return found != nullptr && found->is_boolean() && found->get<bool>();
  }
  void each(const Json& object, const char* name, const std::function<void(const Json&)>& take) const {
    const auto* const found = member(object, name);
    if (found == nullptr) return;
    if (!found->is_array()) not_a_state(where, std::string("\"") + name + "\" is not a list");
    for (const auto& one : *found) {
      if (!one.is_object()) not_a_state(where, std::string("\"") + name + "\" has something other than objects");
      take(one);
    }
  }
};

Cookie cookie_of(const Reader& read, const Json& json) {
  Cookie cookie{read.text(json, "name"),
                read.text(json, "value"),
                read.text(json, "domain"),
                read.text(json, "path"),
                json.value("expires", Json(-1)).is_number() ? json.value("expires", -1.0) : -1,
                read.flag(json, "httpOnly"),
                read.flag(json, "secure"),
                read.text(json, "sameSite")};
  if (cookie.path.empty()) cookie.path = "/";
  return cookie;
}

std::string host_of_domain(const std::string& domain) { return domain.starts_with('.') ? domain.substr(1) : domain; }

std::string host_of_origin(const std::string& origin) {
  const auto begin = origin.find("://");
  auto host = begin == std::string::npos ? origin : origin.substr(begin + 3);
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find_first_of(":/"));
}

bool is_below(const std::string& host, const std::string& above) {
  return host == above ||
         (host.size() > above.size() && host.ends_with(above) && host[host.size() - above.size() - 1] == '.');
}
bool is_near(const std::string& host, const std::vector<std::string>& hosts) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const auto& one) { return is_below(host, one) || is_below(one, host); });
}

std::vector<std::string> hosts_of(const State& state) {
  std::vector<std::string> hosts;
  for (const auto& cookie : state.cookies)
    hosts.push_back(host_of_domain(cookie.domain));
  for (const auto& origin : state.origins)
    hosts.push_back(host_of_origin(origin.origin));
  for (const auto& one : state.credentials)
    hosts.push_back(host_of_origin(one.origin));
  for (const auto& one : state.headers)
    hosts.push_back(host_of_origin(one.origin));
  return hosts;
}

// Three-way: of `after`, and of what is gone since `before`, each that no other capture has changed in `current`
// meanwhile.
template <class Value>
bool apply_each(std::vector<Value>& current, const std::vector<Value>& before, const std::vector<Value>& after,
                const std::function<bool(const Value&, const Value&)>& same,
                const std::function<bool(const Value&)>& own) {
  const auto find = [&](const std::vector<Value>& in, const Value& value) -> const Value* {
    const auto found = std::find_if(in.begin(), in.end(), [&](const Value& one) { return same(one, value); });
    return found == in.end() ? nullptr : &*found;
  };
  const auto equal = [](const Value* one, const Value* other) {
    return one == nullptr || other == nullptr ? one == other : *one == *other;
  };
  bool changed = false;
  const auto put = [&](const Value& key, const Value* value) {
    const auto* const old = find(before, key);
    if (!own(key) || equal(old, value) || !equal(find(current, key), old)) return;
    std::erase_if(current, [&](const Value& one) { return same(one, key); });
    if (value != nullptr) current.push_back(*value);
    changed = true;
  };
  for (const auto& value : after)
    put(value, &value);
  for (const auto& value : before)
    if (find(after, value) == nullptr) put(value, nullptr);
  return changed;
}

constexpr std::size_t kMostSecrets = 4000; // a site may fill its storage with what looks like them
constexpr std::size_t kShortestCookie = 6, kShortestToken = 16;

bool looks_random(std::string_view text) {
  return text.size() >= kShortestToken && text.find_first_of(" \t\r\n") == std::string_view::npos &&
         !text.starts_with("http") && !text.starts_with('/') && std::any_of(text.begin(), text.end(), base::is_digit) &&
         std::any_of(text.begin(), text.end(), base::is_alpha);
}

class Secrets {
public:
  void add(const std::string& secret) {
    if (!secret.empty() && all_.size() < kMostSecrets && std::find(all_.begin(), all_.end(), secret) == all_.end())
      all_.push_back(secret);
  }
  // A value, and its parts, which a site may show alone, as "s:ID.SIGNATURE" has.
  void add_value(const std::string& value) {
    add(value);
    for (const auto& part : base::split(base::percent_decode(value), ".:|&=,;\"{}[] "))
      if (looks_random(part)) add(part);
  }
  void add_stored(const nlohmann::json& value, int deep = 0) {
    if (value.is_structured() && deep < 20)
      for (const auto& one : value)
        add_stored(one, deep + 1);
    if (value.is_string()) add_stored(value.get_ref<const std::string&>(), deep);
  }
  void add_stored(const std::string& text, int deep = 0) {
    if (text.starts_with('{') || text.starts_with('[')) {
      const auto inner = nlohmann::json::parse(text, nullptr, false);
      if (inner.is_structured()) return add_stored(inner, deep + 1);
    }
    if (looks_random(text)) add_value(text);
  }
  std::vector<std::string> take() { return std::move(all_); }

private:
  std::vector<std::string> all_;
};

} // namespace

void add_cookie(State& state, Cookie cookie, std::vector<std::string>& left_out) {
  // A browser refuses the cookies of a call together.
  const auto odd = [](std::string_view text) {
    return !base::is_utf8(text) || std::any_of(text.begin(), text.end(), base::is_control) ||
           text.find(';') != std::string_view::npos;
  };
  if (odd(cookie.name) || odd(cookie.value) || odd(cookie.path) || odd(cookie.domain) || cookie.domain.empty() ||
      cookie.name.size() + cookie.value.size() > 4096 || !std::isfinite(cookie.expires)) {
    left_out.push_back("a cookie of " + base::repair_utf8(cookie.domain.empty() ? "no host" : cookie.domain) +
                       " that no browser takes");
    return;
  }
  std::erase_if(state.cookies, [&](const Cookie& one) { return one.is_same(cookie); });
  if (state.cookies.size() >= kMostCookies)
    throw Error(ErrorClass::refused, "more than " + std::to_string(kMostCookies) + " cookies");
  state.cookies.push_back(std::move(cookie));
}

State State::parse(std::string_view text, const std::string& where, std::vector<std::string>& left_out) {
  if (base::nests_too_deep(text, kDeepest)) not_a_state(where, "nested too deeply");
  const auto json = Json::parse(text, nullptr, false);
  if (!json.is_object()) not_a_state(where, "not a JSON object");
  const Reader read{where};
  State state;
  read.each(json, "cookies", [&](const Json& one) { add_cookie(state, cookie_of(read, one), left_out); });
  read.each(json, "origins", [&](const Json& one) {
    Origin origin{read.text(one, "origin"), {}, one.value("indexedDB", Json::array())};
    if (!origin.origin.starts_with("http")) return left_out.push_back("storage of something that is no web site");
    read.each(one, "localStorage", [&](const Json& item) {
      origin.local_storage.emplace_back(read.text(item, "name"), read.text(item, "value"));
    });
    state.origins.push_back(std::move(origin));
  });
  read.each(json, "httpCredentials", [&](const Json& one) {
    state.credentials.push_back({read.text(one, "origin"), read.text(one, "username"), read.text(one, "password")});
  });
  read.each(json, "headers", [&](const Json& one) {
    state.headers.push_back({read.text(one, "origin"), read.line(one, "name"), read.line(one, "value")});
  });
  state.user_agent = read.line(json, "userAgent");
  state.language = read.line(json, "language");
  state.time_zone = read.line(json, "timeZone");
  return state;
}

std::string State::text() const {
  nlohmann::ordered_json json = {{"cookies", Json::array()}, {"origins", Json::array()}};
  for (const auto& cookie : cookies) {
    nlohmann::ordered_json one = {{"name", cookie.name},    {"value", cookie.value},     {"domain", cookie.domain},
                                  {"path", cookie.path},    {"expires", cookie.expires}, {"httpOnly", cookie.http_only},
                                  {"secure", cookie.secure}};
    if (!cookie.same_site.empty()) one["sameSite"] = cookie.same_site;
    json["cookies"].push_back(std::move(one));
  }
  for (const auto& origin : origins) {
    nlohmann::ordered_json one = {{"origin", origin.origin}, {"localStorage", Json::array()}};
    for (const auto& [name, value] : origin.local_storage)
      one["localStorage"].push_back({{"name", name}, {"value", value}});
    if (!origin.indexed_db.empty()) one["indexedDB"] = origin.indexed_db;
    json["origins"].push_back(std::move(one));
  }
  for (const auto& one : credentials)
    json["httpCredentials"].push_back({{"origin", one.origin}, {"username", one.username}, {"password", one.password}});
  for (const auto& one : headers)
    json["headers"].push_back({{"origin", one.origin}, {"name", one.name}, {"value", one.value}});
  const auto word = [&](const char* name, const std::string& value) {
    if (!value.empty()) json[name] = value;
  };
  word("userAgent", user_agent);
  word("language", language);
  word("timeZone", time_zone);
  return base::json_text(json);
}

std::string cookies_txt(const State& state) {
  std::string text = "# Netscape HTTP Cookie File\n";
  for (const auto& cookie : state.cookies)
    text += (cookie.http_only ? "#HttpOnly_" : "") + cookie.domain + '\t' +
            (cookie.domain.starts_with('.') ? "TRUE\t" : "FALSE\t") + cookie.path + '\t' +
            (cookie.secure ? "TRUE\t" : "FALSE\t") +
            std::to_string(cookie.expires < 0 ? 0 : static_cast<long long>(std::min(cookie.expires, 1e15))) + '\t' +
            cookie.name + '\t' + cookie.value + '\n';
  return text;
}

State parse_cookies_txt(std::string_view text, const std::string& where, std::vector<std::string>& left_out) {
  constexpr std::string_view kHttpOnly = "#HttpOnly_";
  State state;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    Cookie cookie;
    cookie.http_only = line.starts_with(kHttpOnly);
    if (cookie.http_only) line.remove_prefix(kHttpOnly.size());
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> fields;
    for (std::size_t begin = 0; begin <= line.size();) {
      const auto tab = std::min(line.find('\t', begin), line.size());
      fields.emplace_back(line.substr(begin, tab - begin));
      begin = tab + 1;
    }
    if (fields.size() != 7)
      throw Error(ErrorClass::refused, where + ":" + std::to_string(number) + ": not a line of a cookies file",
                  "Netscape's format: seven fields parted by tabs; browsers' add-ons export it as cookies.txt");
    const auto host = host_of_domain(fields[0]);
    cookie.domain = fields[1] == "TRUE" && !host.empty() ? "." + host : host;
    cookie.path = fields[2].empty() ? "/" : fields[2];
    cookie.secure = fields[3] == "TRUE";
    double expires = 0;
    std::from_chars(fields[4].data(), fields[4].data() + fields[4].size(), expires);
    cookie.expires = expires > 0 ? expires : -1;
    cookie.name = fields[5];
    cookie.value = fields[6];
    add_cookie(state, std::move(cookie), left_out);
  }
  return state;
}

void keep_hosts(State& state, const std::vector<std::string>& hosts) {
  if (hosts.empty()) return;
  std::erase_if(state.cookies, [&](const Cookie& one) { return !is_near(host_of_domain(one.domain), hosts); });
  std::erase_if(state.origins, [&](const Origin& one) { return !is_near(host_of_origin(one.origin), hosts); });
}

bool apply_changes(State& current, const State& before, const State& after) {
  const auto hosts = hosts_of(before);
  const bool cookies = apply_each<Cookie>(
      current.cookies, before.cookies, after.cookies,
      [](const Cookie& one, const Cookie& other) { return one.is_same(other); },
      [&](const Cookie& one) { return is_near(host_of_domain(one.domain), hosts); });
  const bool origins = apply_each<Origin>(
      current.origins, before.origins, after.origins,
      [](const Origin& one, const Origin& other) { return one.origin == other.origin; },
      [&](const Origin& one) { return is_near(host_of_origin(one.origin), hosts); });
  return cookies || origins;
}

void renew(State& state, State fresh) {
  const auto of_fresh = [&](const Cookie& old) {
    const auto sent = [&](const Origin& one) {
      return is_below(host_of_origin(one.origin), host_of_domain(old.domain));
    };
    const auto same = [&](const Cookie& one) { return one.is_same(old); };
    return std::any_of(fresh.origins.begin(), fresh.origins.end(), sent) ||
           std::any_of(fresh.cookies.begin(), fresh.cookies.end(), same);
  };
  std::erase_if(state.cookies, of_fresh);
  std::erase_if(state.origins, [&](const Origin& old) {
    return std::any_of(fresh.origins.begin(), fresh.origins.end(),
                       [&](const Origin& one) { return one.origin == old.origin; });
  });
  std::erase_if(state.credentials, [&](const Credentials& old) {
    return std::any_of(fresh.credentials.begin(), fresh.credentials.end(),
                       [&](const Credentials& one) { return one.origin == old.origin; });
  });
  state.credentials.insert(state.credentials.begin(), fresh.credentials.begin(), fresh.credentials.end());
  std::erase_if(fresh.origins, [](const Origin& one) { return one.local_storage.empty() && one.indexed_db.empty(); });
  state.cookies.insert(state.cookies.end(), fresh.cookies.begin(), fresh.cookies.end());
  state.origins.insert(state.origins.end(), fresh.origins.begin(), fresh.origins.end());
}

std::vector<std::string> secrets_of(const State& state) {
  Secrets secrets;
  for (const auto& one : state.credentials)
    secrets.add(one.password);
  for (const auto& one : state.headers) {
    secrets.add(one.value);
    if (const auto scheme = one.value.find(' '); scheme != std::string::npos) secrets.add(one.value.substr(scheme + 1));
  }
  for (const auto& cookie : state.cookies)
    if ((cookie.http_only && cookie.value.size() >= kShortestCookie) || looks_random(cookie.value))
      secrets.add_value(cookie.value);
  for (const auto& origin : state.origins) {
    for (const auto& [name, value] : origin.local_storage)
      secrets.add_stored(value);
    secrets.add_stored(origin.indexed_db);
  }
  return secrets.take();
}

} // namespace holdfast::persona
