#include "lib/persona/secrets.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/text.hpp"

#include <algorithm>

namespace holdfast::persona {

namespace {

constexpr std::size_t kMostSecrets = 4000; // a site may fill its storage with what looks like them
constexpr std::size_t kShortestCookie = 6, kShortestToken = 16;

bool looks_random(std::string_view text) {
  const auto letter = [](char one) { return (one | 0x20) >= 'a' && (one | 0x20) <= 'z'; };
  return text.size() >= kShortestToken && text.find_first_of(" \t\r\n") == std::string_view::npos &&
         !text.starts_with("http") && !text.starts_with('/') && std::any_of(text.begin(), text.end(), base::is_digit) &&
         std::any_of(text.begin(), text.end(), letter);
}

std::string without_percent(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const int byte = base::percent_decoded(text, at);
    plain += byte < 0 ? text[at] : static_cast<char>(byte);
    if (byte >= 0) at += 2;
  }
  return plain;
}

class Secrets {
public:
  void add(const std::string& secret) {
    if (!secret.empty() && all_.size() < kMostSecrets && std::find(all_.begin(), all_.end(), secret) == all_.end())
      all_.push_back(secret);
  }
  // A value, and what a site may show of it: without escapes, and its parts, as "s:ID.SIGNATURE" has.
  void add_value(const std::string& value) {
    add(value);
    const auto plain = without_percent(value);
    add(plain);
    for (const auto& part : base::split(plain, ".:|&=,;\"{}[] "))
      if (looks_random(part)) add(part);
  }
  void add_stored(const nlohmann::json& value, int deep = 0) {
    if (value.is_structured() && deep < 20)
      for (const auto& one : value)
        add_stored(one, deep + 1);
    if (!value.is_string()) return;
    const auto& text = value.get_ref<const std::string&>();
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
