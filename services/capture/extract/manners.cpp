#include "services/capture/extract/manners.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/url.hpp"
#include "services/capture/browser/page_record.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace holdfast::capture {

namespace {

using Words = std::set<std::string, std::less<>>;

// Verbs that act wherever they begin a part of an address.
const Words kVerbs{
    "add",       "approve",    "ban",        "block",      "buy",           "cancel",      "checkin",   "clear",
    "confirm",   "create",     "deactivate", "delete",     "destroy",       "disable",     "dislike",   "donate",
    "downvote",  "enable",     "erase",      "follow",     "hide",          "invite",      "join",      "kick",
    "leave",     "logoff",     "logout",     "mute",       "optin",         "optout",      "pay",       "publish",
    "purchase",  "purge",      "react",      "redeem",     "register",      "reject",      "remove",    "report",
    "revoke",    "rsvp",       "save",       "send",       "signoff",       "signout",     "star",      "submit",
    "subscribe", "transfer",   "unblock",    "unfollow",   "unlike",        "unmute",      "unpublish", "unsubscribe",
    "unvote",    "update",     "upvote",     "vote",       "withdraw",      "addtocart",   "like",      "favorite",
    "favourite", "unfavorite", "bookmark",   "checkout",   "unstar",        "dismiss",     "toggle",    "decline",
    "unpin",     "unlock",     "reboot",     "shutdown",   "rollback",      "unenroll",    "rm",        "del",
    "snooze",    "kudos",      "repost",     "retweet",    "unwatch",       "activate",    "demote",    "unassign",
    "wipe",      "uninstall",  "markread",   "markasread", "addtowishlist", "addtobasket", "addtobag"};
// Words that are as often a filter, as the name of a parameter.
const Words kNouns{"star",  "like",   "report", "favorite", "favourite", "bookmark", "update",  "register",
                   "add",   "clear",  "save",   "send",     "create",    "enable",   "disable", "hide",
                   "block", "follow", "pay",    "leave",    "join",      "submit"};
const Words kDoing{"action", "do", "op", "cmd", "task", "act", "event", "intent", "method", "_method", "command"};
const Words kStates{"PUT", "PATCH", "DELETE"};
const Words kPrograms{"php", "asp", "aspx", "jsp", "cgi", "pl", "do", "action", "html", "htm", "json", "xml"};
const Words kShown{"Image", "Media", "Font", "Stylesheet", "Document", "TextTrack"};

// "sign_out", "addToCart", "LogOut.php": words in lower case. The name of a file that is no program has none.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  if (const auto dot = text.rfind('.'); dot != std::string_view::npos && text.size() - dot <= 6) {
    if (!kPrograms.contains(lower_case(std::string(text.substr(dot + 1))))) return {};
    text = text.substr(0, dot);
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    const bool starts =
        i > 0 && std::isupper(letter) != 0 && std::islower(static_cast<unsigned char>(text[i - 1])) != 0;
    if (std::isalnum(letter) == 0 || starts) words.emplace_back();
    if (std::isalnum(letter) != 0) words.back() += static_cast<char>(std::tolower(letter));
  }
  std::erase(words, "");
  return words;
}

// Short, as commands are; "delete-key-explained" is the name of a page.
bool is_command(std::string_view text) {
  const auto words = words_of(text);
  if (words.empty() || words.size() > 3) return false;
  const auto two = words.size() > 1 ? words[0] + words[1] : words[0];
  return (words.size() < 3 && kVerbs.contains(words[0])) || kVerbs.contains(two) ||
         (words.size() == 3 && kVerbs.contains(two + words[2]));
}

// A number, or letters and digits as of a key: what a command is applied to.
bool is_key(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns true if "name=value" of a query or a path acts.
bool acts_by(std::string_view pair) {
  const auto equals = std::min(pair.find('='), pair.size());
  const auto key = base::percent_decode(pair.substr(0, equals));
  const auto value = base::percent_decode(pair.substr(std::min(equals + 1, pair.size())));
  return kDoing.contains(lower_case(key)) ? is_command(value) : is_command(key) && !kNouns.contains(words_of(key)[0]);
}

bool is_own(std::string_view host, std::string_view page) {
  const auto bare = [](std::string_view name) { return name.starts_with("www.") ? name.substr(4) : name; };
  const auto below = [](std::string_view name, std::string_view of) {
    return name == of || (name.size() > of.size() && name.ends_with(of) && name[name.size() - of.size() - 1] == '.' &&
                          of.find('.') != std::string_view::npos);
  };
  host = bare(host), page = bare(page);
  return below(host, page) || below(page, host);
}

// "mutation" where a GraphQL document begins.
bool mutates(std::string_view body) {
  for (auto at = body.find("mutation"); at != std::string_view::npos; at = body.find("mutation", at + 1)) {
    auto before = body.substr(0, at);
    while (!before.empty() && (before.ends_with("\\n") || std::isspace(static_cast<unsigned char>(before.back())) != 0))
      before.remove_suffix(before.ends_with("\\n") ? 2 : 1);
    if (before.empty() || before.ends_with('"') || before.ends_with("query=")) return true;
  }
  return false;
}

// Returns true for a GraphQL query, or that of a search engine: {"query": ...}.
bool only_asks(std::string_view body) {
  const auto at = body.find("\"query\"");
  if (at == std::string_view::npos || body.find("mutation") != std::string_view::npos) return false;
  body.remove_prefix(at + 7);
  body.remove_prefix(std::min(body.size(), body.find_first_not_of(" :\"\t\r\n\\nrt"))); // also escaped line breaks
  return body.starts_with("query") || body.starts_with("{");
}

} // namespace

bool acts(std::string_view url) {
  const auto parts = base::split_url(url);
  std::vector<std::string> segments(1);
  for (const char letter : base::percent_decode(parts.path))
    if (letter == '/' || letter == ':' || letter == ';') // as in "/items/3:follow", "/items/3;action=follow"
      segments.emplace_back();
    else
      segments.back() += letter;
  std::erase(segments, "");
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    if (segment->find('=') != std::string::npos ? acts_by(*segment) : is_command(*segment)) return true;
    if (!is_key(*segment)) break;
  }
  std::string_view query = parts.query;
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (acts_by(pair)) return true;
  }
  return false;
}

std::string_view why_held(Pressed pressed, const Request& request, std::string_view page_host) {
  if (pressed == Pressed::nothing) return {};
  if (kStates.contains(request.method) || request.type == "Ping") return "changes something";
  const bool gets = request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  if (acts(request.url)) return "its address acts";
  if (!gets && mutates(request.body)) return "a mutation";
  if (pressed == Pressed::more) return {};
  if (!gets && !only_asks(request.body)) return "only GET follows such a press";
  if (pressed == Pressed::shows) return {};
  if (kShown.contains(request.type) || request.known_host || is_own(host_in(request.url), page_host)) return {};
  return "another site";
}

} // namespace holdfast::capture
