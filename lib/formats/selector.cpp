#include "lib/formats/selector.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace holdfast::formats {

namespace {

bool is_part_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_' ||
         static_cast<unsigned char>(letter) >= 0x80;
}

[[noreturn]] void refuse_selector(std::string_view text, const std::string& what) {
  throw base::Error(base::ErrorClass::usage, "selector \"" + std::string(text) + "\": " + what,
                    "tags, #id, .class and [role=name]: '#price', 'main .news', 'ul.list > li', 'h1, h2'");
}

} // namespace

Element element_of(const Token& token) {
  return {token.text, token.attribute("id"), token.attribute("role"),
          base::split(token.attribute("class"), " \t\n\r\f")};
}

Selector::Selector(std::string_view text) {
  constexpr std::size_t kMostParts = 50;
  std::size_t at = 0, parts = 0;
  const auto blanks = [&] {
    const auto begin = at;
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0)
      ++at;
    return at > begin;
  };
  const auto name = [&] {
    const auto begin = at;
    while (at < text.size() && is_part_of_name(text[at]))
      ++at;
    if (begin == at)
      refuse_selector(text,
                      at == text.size() ? "it ends too early" : std::string("\"") + text[at] + "\" is not supported");
    return std::string(text.substr(begin, at - begin));
  };
  choices_.emplace_back();
  bool directly = false;
  blanks();
  for (;;) {
    Part part;
    part.directly = directly;
    const auto begin = at;
    if (at < text.size() && text[at] == '*')
      ++at;
    else if (at == text.size() || is_part_of_name(text[at]))
      part.wanted.name = base::lower_case(name());
    for (; at < text.size() && (text[at] == '#' || text[at] == '.' || text[at] == '[');) {
      const char kind = text[at++];
      if (kind == '[') {
        const auto value = text.substr(at, std::min(text.find(']', at), text.size()) - at);
        if (!value.starts_with("role=") || at + value.size() == text.size())
          refuse_selector(text, "only [role=name] is supported of attributes");
        part.wanted.role = base::join(base::split(value.substr(5), "\"' "), " ");
        at += value.size() + 1;
      } else if (kind == '#')
        part.wanted.id = name();
      else
        part.wanted.classes.push_back(name());
    }
    if (begin == at) name();
    if (++parts > kMostParts) refuse_selector(text, "it has too many parts");
    choices_.back().push_back(std::move(part));
    const bool blank = blanks();
    if (at == text.size()) return;
    directly = text[at] == '>';
    const bool next = text[at] == ',';
    if (directly || next)
      ++at;
    else if (!blank)
      refuse_selector(text, std::string("\"") + text[at] + "\" is not supported");
    if (next) choices_.emplace_back();
    blanks();
  }
}

bool Selector::Part::fits(const Element& element) const {
  return (wanted.name.empty() || wanted.name == element.name) && (wanted.id.empty() || wanted.id == element.id) &&
         (wanted.role.empty() || wanted.role == element.role) &&
         std::all_of(wanted.classes.begin(), wanted.classes.end(), [&](const auto& one) {
           return std::find(element.classes.begin(), element.classes.end(), one) != element.classes.end();
         });
}

bool Selector::selects(const std::vector<Element>& open) const {
  if (open.empty()) return false;
  return std::any_of(choices_.begin(), choices_.end(), [&](const std::vector<Part>& parts) {
    std::set<std::size_t> places; // where the element of the last part that was looked at may be
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      std::set<std::size_t> now;
      if (part == parts.rbegin()) {
        if (part->fits(open.back())) now.insert(open.size() - 1);
      } else if (std::prev(part)->directly) {
        for (const auto place : places)
          if (place > 0 && part->fits(open[place - 1])) now.insert(place - 1);
      } else {
        for (std::size_t i = 0; !places.empty() && i < *places.rbegin(); ++i)
          if (part->fits(open[i])) now.insert(i);
      }
      places = std::move(now);
    }
    return !places.empty();
  });
}

} // namespace holdfast::formats
