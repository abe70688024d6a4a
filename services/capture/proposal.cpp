#include "services/capture/proposal.hpp"

#include "services/capture/embedded.hpp"

#include <algorithm>

namespace holdfast::capture {

namespace {

std::string place_of(const std::string& url) { return url.substr(0, url.find_first_of("?#")); }

// Begins with a word of the table of the behaviors, in which "*" is an unwritten rest.
bool signs_out(const std::string& label) {
  static const auto words = Json::parse(embedded::words_json)["sign out"].get<std::vector<std::string>>();
  return std::any_of(words.begin(), words.end(), [&](std::string word) {
    const bool open = word.ends_with('*');
    std::erase(word, '*');
    return label == word || (open && label.starts_with(word));
  });
}

bool names_session(const std::string& cookie) {
  const auto name = lower(cookie);
  constexpr std::string_view kParts[] = {"sess", "auth", "token", "login", "remember", "sid"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](auto part) { return name.find(part) != std::string::npos; });
}

} // namespace

Json proposed_checks(const Sight& with, const Sight& without) {
  const auto check = [&](const char* kind, const std::string& value, bool signed_out) {
    return Json::array({{{"kind", kind}, {"value", value}, {"signed_out", signed_out}, {"url", with.url}}});
  };
  if (const auto login = place_of(without.url); login != place_of(with.url) && !with.url.starts_with(login))
    return check("redirect", login, true);
  if (without.asks_password && !with.asks_password) return check("selector", "input[type=password]", true);
  for (const auto& label : with.labels)
    if (!without.labels.contains(label) && signs_out(label)) return check("text", label, false);
  for (const auto& cookie : with.cookies)
    if (!without.cookies.contains(cookie) && names_session(cookie)) return check("cookie", cookie, false);
  return check("none", "", false);
}

} // namespace holdfast::capture
