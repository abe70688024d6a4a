#include "lib/persona/state.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace holdfast::persona {

using base::Error;
using base::ErrorClass;
using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Cookie, name, value, domain, path, expires, httpOnly, secure, sameSite)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Item, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Origin, origin, localStorage, indexedDB)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Credentials, origin, username, password)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Header, origin, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(State, cookies, origins, httpCredentials, headers)

namespace {

constexpr std::size_t kMostCookies = 10'000; // a browser keeps some 3,000
constexpr int kDeepest = 512;                // values in IndexedDB nest

[[noreturn]] void not_a_state(const std::string& where, const std::string& what) {
  throw Error(ErrorClass::refused, where + ": " + what, "storage state as Playwright writes it, or a cookies.txt");
}

bool is_below(const std::string& host, const std::string& above) {
  return host == above ||
         (host.size() > above.size() && host.ends_with(above) && host[host.size() - above.size() - 1] == '.');
}
bool is_near(const std::string& host, const std::vector<std::string>& hosts) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const auto& one) { return is_below(host, one) || is_below(one, host); });
}

void for_each_list(auto& state, const auto& take) {
  take(state.cookies);
  take(state.origins);
  take(state.httpCredentials);
  take(state.headers);
}

std::vector<std::string> hosts_of(const State& state) {
  std::vector<std::string> hosts;
  for_each_list(state, [&](const auto& list) {
    for (const auto& one : list)
      hosts.push_back(one.host());
  });
  return hosts;
}

template <class Value>
const Value* find(const std::vector<Value>& values, const Value& same) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const Value& one) { return one.is_same(same); });
  return found == values.end() ? nullptr : &*found;
}

template <class Value>
void erase_same(std::vector<Value>& values, const std::vector<Value>& as) {
  std::erase_if(values, [&](const Value& one) { return find(as, one) != nullptr; });
}

// Merges three ways: additions of `after`, and removals since `before`, each unless another capture has changed it in
// `current` meanwhile.
template <class Value>
bool apply_each(std::vector<Value>& current, const std::vector<Value>& before, const std::vector<Value>& after,
                const std::vector<std::string>& hosts) {
  const auto equal = [](const Value* one, const Value* other) {
    return one == nullptr || other == nullptr ? one == other : *one == *other;
  };
  bool changed = false;
  const auto put = [&](const Value& key, const Value* value) {
    const auto* const old = find(before, key);
    if (!is_near(key.host(), hosts) || equal(old, value) || !equal(find(current, key), old)) return;
    erase_same(current, {key});
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

std::string OfOrigin::host() const {
  const auto url = base::split_url(origin);
  return std::string(base::split_authority(url.has_authority ? url.authority : origin).host);
}

void add_cookie(State& state, Cookie cookie, std::vector<std::string>& left_out) {
  if (cookie.path.empty()) cookie.path = "/";
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
  State state;
  const auto take = [&](const char* name, auto& member) {
    if (!json.contains(name)) return;
    try {
      json[name].get_to(member);
    } catch (const Json::exception& error) { // "[...] type must be array, but is string"
      const std::string_view why = error.what();
      not_a_state(where, '"' + std::string(name) + "\": " + std::string(why.substr(why.find("] ") + 2)));
    }
  };
  take("cookies", state.cookies);
  take("origins", state.origins);
  take("httpCredentials", state.httpCredentials);
  take("headers", state.headers);
  for (const auto& header : state.headers)
    for (const auto* value : {&header.name, &header.value})
      if (std::any_of(value->begin(), value->end(), base::is_control)) not_a_state(where, "control characters");
  for (auto& cookie : std::exchange(state.cookies, {}))
    add_cookie(state, std::move(cookie), left_out);
  const auto none = std::erase_if(state.origins, [](const Origin& one) { return !one.origin.starts_with("http"); });
  if (none > 0) left_out.push_back("storage of something that is not a web site");
  return state;
}

std::string State::text() const {
  Json json = *this;
  for (auto& cookie : json["cookies"])
    if (cookie["sameSite"] == "") cookie.erase("sameSite"); // browsers have no empty one
  return base::json_text(json);
}

std::string cookies_txt(const State& state) {
  std::string text = "# Netscape HTTP Cookie File\n";
  for (const auto& cookie : state.cookies)
    text += (cookie.httpOnly ? "#HttpOnly_" : "") + cookie.domain + '\t' +
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
    cookie.httpOnly = line.starts_with(kHttpOnly);
    if (cookie.httpOnly) line.remove_prefix(kHttpOnly.size());
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
    cookie.domain = fields[0];
    const auto host = cookie.host();
    cookie.domain = fields[1] == "TRUE" && !host.empty() ? "." + host : host;
    cookie.path = fields[2];
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
  for_each_list(state, [&](auto& list) {
    std::erase_if(list, [&](const auto& one) { return !one.host().empty() && !is_near(one.host(), hosts); });
  });
}

bool apply_changes(State& current, const State& before, const State& after) {
  const auto hosts = hosts_of(before);
  const bool cookies = apply_each(current.cookies, before.cookies, after.cookies, hosts);
  return apply_each(current.origins, before.origins, after.origins, hosts) || cookies;
}

void renew(State& state, State fresh) {
  std::erase_if(state.cookies, [&](const Cookie& old) { // that one of the origins is sent
    return std::any_of(fresh.origins.begin(), fresh.origins.end(),
                       [&](const Origin& one) { return is_below(one.host(), old.host()); });
  });
  erase_same(state.cookies, fresh.cookies);
  erase_same(state.origins, fresh.origins);
  erase_same(state.httpCredentials, fresh.httpCredentials);
  std::erase_if(fresh.origins, [](const Origin& one) { return one.localStorage.empty() && one.indexedDB.empty(); });
  const auto add = [](auto& to, const auto& from, auto where) { to.insert(where, from.begin(), from.end()); };
  add(state.cookies, fresh.cookies, state.cookies.end());
  add(state.origins, fresh.origins, state.origins.end());
  add(state.httpCredentials, fresh.httpCredentials, state.httpCredentials.begin()); // before one of any origin
}

std::vector<std::string> secrets_of(const State& state) {
  Secrets secrets;
  for (const auto& one : state.httpCredentials)
    secrets.add(one.password);
  for (const auto& one : state.headers) {
    secrets.add(one.value);
    if (const auto scheme = one.value.find(' '); scheme != std::string::npos) secrets.add(one.value.substr(scheme + 1));
  }
  for (const auto& cookie : state.cookies)
    if ((cookie.httpOnly && cookie.value.size() >= kShortestCookie) || looks_random(cookie.value))
      secrets.add_value(cookie.value);
  for (const auto& origin : state.origins) {
    for (const auto& item : origin.localStorage)
      secrets.add_stored(item.value);
    secrets.add_stored(origin.indexedDB);
  }
  return secrets.take();
}

} // namespace holdfast::persona
