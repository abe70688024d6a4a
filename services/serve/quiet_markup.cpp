#include "services/serve/quiet_markup.hpp"

#include "lib/base/text/characters.hpp"

#include <algorithm>
#include <array>

namespace holdfast::serve {

namespace {

constexpr std::string_view kBlanks = " \t\n\f\r";

bool is_word(std::string_view text, std::size_t at, std::string_view word) {
  return at + word.size() <= text.size() && std::equal(word.begin(), word.end(), text.begin() + static_cast<long>(at),
                                                       [](char a, char b) { return a == base::to_lower(b); });
}

std::size_t behind(std::string_view text, std::size_t at, std::string_view letters) {
  return std::min(text.find_first_not_of(letters, at), text.size());
}

constexpr std::string_view kUnknown = ":"; // no path, and no kind of link

// Returns the first attribute of that name of the tag whose attributes begin there; empty: there is none. As browsers
// read it, but for references to characters. kUnknown if the text ends before.
std::string_view attribute_of(std::string_view text, std::size_t& at, std::string_view wanted) {
  constexpr std::string_view kBetween = " \t\n\f\r/";
  for (at = behind(text, at, kBetween); at < text.size() && text[at] != '>'; at = behind(text, at, kBetween)) {
    const auto name_end = std::min(text.find_first_of(" \t\n\f\r/>=", at + 1), text.size()); // it may begin with "="
    const auto name = text.substr(at, name_end - at);
    std::string_view value;
    at = behind(text, name_end, kBlanks);
    if (at < text.size() && text[at] == '=') {
      at = behind(text, at + 1, kBlanks);
      if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
        const auto end = std::min(text.find(text[at], at + 1), text.size());
        value = text.substr(at + 1, end - at - 1);
        at = std::min(end + 1, text.size());
      } else {
        const auto end = std::min(text.find_first_of(" \t\n\f\r>", at), text.size());
        value = text.substr(at, end - at);
        at = end;
      }
    }
    if (base::lower_case(name) == wanted) return at < text.size() ? value : kUnknown;
  }
  return at < text.size() ? std::string_view() : kUnknown;
}

bool loads_from_here(std::string_view rel) {
  constexpr std::array<std::string_view, 5> kPlain{"stylesheet", "alternate stylesheet", "icon", "shortcut icon",
                                                   "apple-touch-icon"};
  return std::find(kPlain.begin(), kPlain.end(), base::lower_case(base::trimmed(rel))) != kPlain.end();
}

// Returns true if a browser reads this as a path from the document on, whatever stands before it.
bool is_near(std::string_view path) {
  return !path.starts_with("//") && std::all_of(path.begin(), path.end(), [](char c) {
    return base::is_alpha(c) || base::is_digit(c) || std::string_view("-._~/%?#=+,@").find(c) != std::string_view::npos;
  });
}

// Returns true if an element whose attributes begin the text may connect to elsewhere. Browsers connect for a frame
// before they check the policy. `budget`: how much text may be read for the elements of a document; unread elements
// count as yes.
bool connects(std::string_view element, std::string_view text, std::size_t& budget) {
  const bool link = element == "link", object = element == "object";
  if (!link && !object && element != "iframe" && element != "frame" && element != "embed") return false;
  std::size_t at = 0;
  const auto value = attribute_of(text.substr(0, budget), at, link ? "rel" : object ? "data" : "src");
  budget -= std::min(budget, at);
  return link ? !loads_from_here(value) : !is_near(value);
}

} // namespace

std::string quiet_markup(std::string text) {
  auto budget = 8 * text.size();
  for (auto at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    // "<link", "<svg:link"
    const auto end = std::min(text.find_first_of(" \t\n\f\r/><", at + 1), text.size());
    const auto tag = std::string_view(text).substr(at + 1, end - at - 1);
    const auto name = at + 1 + tag.rfind(':') + 1; // npos + 1 is 0
    const auto element = base::lower_case(tag.substr(name - at - 1));
    if (connects(element, std::string_view(text).substr(end), budget)) text[name] = 'x';
    if (is_word(text, at, "<!entity")) text[at + 2] = 'x'; // what it stands for would be read once more
  }
  constexpr std::string_view kInner = "srcdoc";
  for (auto at = text.find_first_of("sS"); at != std::string::npos; at = text.find_first_of("sS", at + 1))
    if (is_word(text, at, kInner) && behind(text, at + kInner.size(), kBlanks) < text.size() &&
        text[behind(text, at + kInner.size(), kBlanks)] == '=')
      text[at] = 'x';
  return text;
}

bool hides_tags(std::string_view text) {
  return text.starts_with("\xFE\xFF") || text.starts_with("\xFF\xFE") || // UTF-16
         text.find('\x1B') != std::string_view::npos ||                  // ISO-2022-JP
         (text.size() > 1 && (text[0] == '\0' || text[1] == '\0'));      // UTF-16 as XML begins it
}

} // namespace holdfast::serve
