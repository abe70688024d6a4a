#include "services/capture/extract/manners.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/url.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/embedded.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace holdfast::capture {

namespace {

using Words = std::set<std::string, std::less<>>;

// Returns true if the text is the word; "*" stands for an ending of a few letters.
bool is_word(std::string_view text, std::string_view word) {
  constexpr std::size_t kLongest = 2, kLongestUtf8 = 8; // "subscribe", not "subscribers"
  const auto star = word.find('*');
  if (star == std::string_view::npos) return text == word;
  if (!text.starts_with(word.substr(0, star))) return false;
  text.remove_prefix(star), word.remove_prefix(star + 1);
  const auto longest = !text.empty() && (text.front() & 0x80) != 0 ? kLongestUtf8 : kLongest;
  for (std::size_t size = 0; size <= std::min(text.size(), longest); ++size)
    if (is_word(text.substr(size), word)) return true;
  return false;
}

// The words that act in an address, without blanks and hyphens.
const std::vector<std::string>& verbs() {
  static const auto all = [] {
    std::vector<std::string> found;
    const auto kinds = nlohmann::json::parse(embedded::words_json);
    for (const char* kind : {"sign out", "buy", "post", "delete", "follow", "address"})
      for (const auto& word : kinds.at(kind)) {
        found.push_back(word.get<std::string>());
        std::erase_if(found.back(), [](char c) { return c == ' ' || c == '-'; });
      }
    return found;
  }();
  return all;
}

// Words that are as often a filter, as the name of a parameter.
const Words kNouns{"add",  "block", "bookmark", "clear", "close", "create", "disable", "enable",   "favorite", "follow",
                   "hide", "join",  "leave",    "like",  "lock",  "pay",    "pin",     "register", "report",   "reset",
                   "run",  "save",  "send",     "star",  "start", "stop",   "submit",  "update"};
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
  bool lower = false;
  for (const char letter : text) {
    const auto c = static_cast<unsigned char>(letter);
    const bool counts = std::isalnum(c) != 0 || c >= 0x80;
    if (!counts || (std::isupper(c) != 0 && lower)) words.emplace_back();
    if (counts) words.back() += static_cast<char>(std::tolower(c));
    lower = std::islower(c) != 0;
  }
  std::erase(words, "");
  return words;
}

// Short, as commands are; "delete-key-explained" is the name of a page.
bool is_command(std::string_view text) {
  const auto words = words_of(text);
  if (words.empty() || words.size() > 3) return false;
  std::string all;
  for (const auto& word : words)
    all += word;
  return std::any_of(verbs().begin(), verbs().end(), [&](const std::string& word) {
    return is_word(all, word) || (words.size() < 3 && is_word(words[0], word));
  });
}

// A number, or letters and digits as of a key: what a command is applied to.
bool is_key(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
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

// Returns true if "name=value" of a query or a path acts.
bool acts_by(std::string_view pair) {
  const auto equals = std::min(pair.find('='), pair.size());
  const auto key = base::percent_decode(pair.substr(0, equals));
  const auto value = base::percent_decode(pair.substr(std::min(equals + 1, pair.size())));
  if (key == "query" && mutates(value) && value.find('{') != std::string::npos) return true;
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

// Returns true for a GraphQL query, {"query": "..."}, or that of a search engine, {"query": {...}}.
bool only_asks(std::string_view url, std::string_view body) {
  const auto at = body.find("\"query\"");
  if (at == std::string_view::npos || body.find("mutation") != std::string_view::npos) return false;
  body.remove_prefix(at + 7);
  body.remove_prefix(std::min(body.size(), body.find_first_not_of(" :\t\r\n")));
  if (!body.starts_with('"')) return url.substr(url.rfind('/') + 1).find("search") != std::string_view::npos;
  body.remove_prefix(std::min(body.size(), body.find_first_not_of(" \"\t\r\n\\nrt"))); // also escaped line breaks
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
  if (!gets && !only_asks(request.url, request.body)) return "only GET follows such a press";
  if (pressed == Pressed::shows) return {};
  if (kShown.contains(request.type) || request.known_host || is_own(host_in(request.url), page_host)) return {};
  return "another site";
}

} // namespace holdfast::capture
