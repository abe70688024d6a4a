#include "lib/formats/html.hpp"

#include "lib/base/text/text.hpp"
#include "lib/formats/embedded.hpp"
#include "lib/formats/encoding.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>

namespace holdfast::formats {

namespace {

constexpr std::size_t kMostAttributes = 100;
constexpr std::string_view kBlank = " \t\n\r\f\v";
// Their content is text, not markup, until their own end tag.
constexpr std::string_view kRaw = " script style xmp iframe noembed noframes textarea title ";

// Named references and their characters. Those that may stand without a semicolon ("AElig!=C6") are there twice. A code
// point is hexadecimal; "+" stands between two.
std::map<std::string, std::string, std::less<>> read_entities() {
  std::map<std::string, std::string, std::less<>> entities;
  const auto* const end = embedded::html_entities_txt.data() + embedded::html_entities_txt.size();
  for (const auto* at = embedded::html_entities_txt.data(); at < end; ++at) {
    const auto* const equals = std::find(at, end, '=');
    std::string name(at, equals), characters;
    std::uint32_t code = 0;
    for (at = equals; at < end && (*at == '=' || *at == '+'); characters += base::utf8_of(code))
      at = std::from_chars(at + 1, end, code, 16).ptr;
    if (name.ends_with('!')) {
      name.pop_back();
      entities.emplace(name, characters);
    }
    entities.emplace(name + ";", characters);
  }
  return entities;
}

// At "&#": the end of the reference, or `at` if it is none.
std::size_t numeric_reference(std::string_view text, std::size_t at, std::string& result) {
  const bool hexadecimal = at + 2 < text.size() && (text[at + 2] == 'x' || text[at + 2] == 'X');
  const auto digits = text.substr(at + (hexadecimal ? 3 : 2));
  std::uint32_t code = 0; // stays so if the number is too large
  const auto* const behind =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hexadecimal ? 16 : 10).ptr;
  if (behind == digits.data()) return at;
  auto end = static_cast<std::size_t>(behind - text.data());
  if (end < text.size() && text[end] == ';') ++end;
  if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  if (code >= 0x80 && code < 0xA0) code = kWindows1252[code - 0x80];
  result += base::utf8_of(code);
  return end;
}

// At "&": as above. The longest name counts. In a value, "&copy=2" is a parameter of a URL.
std::size_t named_reference(std::string_view text, std::size_t at, bool value, std::string& result) {
  constexpr std::size_t kLongestName = 33;
  static const auto entities = read_entities();
  auto length = std::min(text.find_first_of("\t\n\f <&#;", at + 1), text.size()) - at - 1;
  if (at + 1 + length < text.size() && text[at + 1 + length] == ';') ++length;
  for (length = std::min(length, kLongestName); length > 1; --length)
    if (const auto found = entities.find(text.substr(at + 1, length)); found != entities.end()) {
      const auto behind = text.substr(at + length).substr(0, 2); // the last of the name, and what follows
      if (value && behind[0] != ';' && behind.size() > 1 &&
          (behind[1] == '=' || base::is_alpha(behind[1]) || base::is_digit(behind[1])))
        return at;
      result += found->second;
      return at + 1 + length;
    }
  return at;
}

std::size_t after(std::string_view text, std::string_view mark, std::size_t from) {
  const auto found = text.find(mark, from);
  return found == std::string_view::npos ? text.size() : found + mark.size();
}

std::size_t after_comment(std::string_view text, std::size_t opening) {
  const auto rest = text.substr(opening);
  const bool comment = rest.starts_with("<!--") && !rest.starts_with("<!-->") && !rest.starts_with("<!--->");
  return comment ? after(text, "-->", opening + 4) : after(text, ">", opening);
}

std::size_t end_of_name(std::string_view text, std::size_t at) {
  return std::min(text.find_first_of(" \t\n\r\f\v/>", at), text.size());
}

// Reads one attribute at `at`, where something other than blanks, "/" and ">" stands.
std::size_t take_attribute(std::string_view text, std::size_t at, Token& token) {
  const auto begin = at;
  if (text[at] == '=') ++at; // part of the name
  at = std::min(text.find_first_of(" \t\n\r\f\v/>=", at), text.size());
  auto name = base::lower_case(text.substr(begin, at - begin));
  auto next = std::min(text.find_first_not_of(kBlank, at), text.size());
  std::string_view value;
  if (next < text.size() && text[next] == '=') {
    next = std::min(text.find_first_not_of(kBlank, next + 1), text.size());
    if (next < text.size() && (text[next] == '"' || text[next] == '\'')) {
      const auto close = text.find(text[next], next + 1);
      if (close == std::string_view::npos) return text.size();
      value = text.substr(next + 1, close - next - 1);
      at = close + 1;
    } else {
      at = std::min(text.find_first_of(" \t\n\r\f\v>", next), text.size());
      value = text.substr(next, at - next);
    }
  }
  if (token.attributes.size() < kMostAttributes && !token.has(name))
    token.attributes.emplace_back(std::move(name), unescape_html(value, true));
  return at;
}

// Returns where the tag ends; npos if the text ends inside it.
std::size_t take_start_tag(std::string_view text, std::size_t at, Token& token) {
  const auto end = end_of_name(text, at);
  token.kind = Token::Kind::start;
  token.text = base::lower_case(text.substr(at, end - at));
  token.attributes.clear();
  for (at = end;;) {
    at = text.find_first_not_of(" \t\n\r\f\v/", at);
    if (at == std::string_view::npos) return at;
    if (text[at] == '>') {
      token.self_closed = text[at - 1] == '/';
      return at + 1;
    }
    at = take_attribute(text, at, token);
  }
}

// Returns the end of the content of a raw element: at its end tag.
std::size_t end_of_raw(std::string_view text, std::size_t from, const std::string& name) {
  for (auto at = text.find("</", from); at != std::string_view::npos; at = text.find("</", at + 2)) {
    const auto rest = text.substr(at + 2);
    if (rest.size() > name.size() && base::lower_case(rest.substr(0, name.size())) == name &&
        (base::is_blank(rest[name.size()]) || rest[name.size()] == '/' || rest[name.size()] == '>'))
      return at;
  }
  return text.size();
}

} // namespace

bool Token::has(std::string_view name) const {
  return std::any_of(attributes.begin(), attributes.end(), [&](const auto& one) { return one.first == name; });
}

const std::string& Token::attribute(std::string_view name) const {
  static const std::string kNone;
  for (const auto& [key, value] : attributes)
    if (key == name) return value;
  return kNone;
}

std::string unescape_html(std::string_view text, bool value) {
  auto at = text.find('&');
  if (at == std::string_view::npos) return std::string(text);
  std::string result(text.substr(0, at));
  while (at < text.size()) {
    const auto end = at + 1 < text.size() && text[at + 1] == '#' ? numeric_reference(text, at, result)
                                                                 : named_reference(text, at, value, result);
    if (end == at) result += '&';
    const auto rest = std::max(end, at + (end == at ? 1 : 0));
    at = std::min(text.find('&', rest), text.size());
    result += text.substr(rest, at - rest);
  }
  return result;
}

std::string escape_html(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#x27;"}};
  std::string result;
  for (const char letter : text) {
    const auto* const escape =
        std::find_if(std::begin(kEscapes), std::end(kEscapes), [&](const auto& one) { return one.first == letter; });
    escape == std::end(kEscapes) ? result.push_back(letter) : void(result += escape->second);
  }
  return result;
}

std::string xml_as_html(std::string_view xml) {
  constexpr std::string_view kVoid = " area base br col embed hr img input link meta param source track wbr ",
                             kData = "<![CDATA[";
  std::string html;
  Token token;
  for (std::size_t at = 0; at < xml.size();) {
    const auto opening = std::min(xml.find('<', at), xml.size());
    html += xml.substr(at, opening - at);
    at = opening;
    const auto rest = xml.substr(opening);
    if (rest.starts_with(kData)) {
      at = after(xml, "]]>", opening);
      html += escape_html(rest.substr(kData.size(), std::min(rest.find("]]>"), rest.size()) - kData.size()));
      continue;
    }
    if (rest.starts_with("<!") || rest.starts_with("<?"))
      at = after_comment(xml, opening);
    else if (rest.size() > 1 && base::is_alpha(rest[1]))
      at = std::min(take_start_tag(xml, opening + 1, token), xml.size());
    else
      at = after(xml, ">", opening);
    const auto tag = xml.substr(opening, at - opening);
    html += tag;
    if (tag.size() > 2 && base::is_alpha(tag[1]) && tag.ends_with("/>") &&
        kVoid.find(" " + token.text + " ") == std::string_view::npos)
      html += "</" + token.text + ">";
  }
  return html;
}

void scan_html(std::string_view html, const std::function<bool(const Token&)>& take) {
  Token token;
  const auto take_text = [&](std::string text) {
    token.kind = Token::Kind::text;
    token.text = std::move(text);
    token.attributes.clear();
    return take(token);
  };
  for (std::size_t at = 0; at < html.size();) {
    const auto opening = html.find('<', at);
    if (opening != at && !take_text(unescape_html(html.substr(at, opening - at)))) return;
    if (opening == std::string_view::npos) return;
    const char next = opening + 1 < html.size() ? html[opening + 1] : '\0';
    token.at = opening;
    if (next == '!' || next == '?') {
      at = after_comment(html, opening);
    } else if (next == '/') {
      at = after(html, ">", opening + 2);
      if (opening + 2 >= html.size() || !base::is_alpha(html[opening + 2])) continue;
      token.kind = Token::Kind::end;
      token.text = base::lower_case(html.substr(opening + 2, end_of_name(html, opening + 2) - opening - 2));
      token.attributes.clear();
      if (!take(token)) return;
    } else if (base::is_alpha(next)) {
      at = take_start_tag(html, opening + 1, token);
      if (at == std::string_view::npos) return;
      const auto name = token.text;
      if (!take(token)) return;
      if (kRaw.find(" " + name + " ") == std::string_view::npos) continue;
      const auto end = end_of_raw(html, at, name);
      const auto content = html.substr(at, end - at);
      const bool references = name == "textarea" || name == "title";
      if (!take_text(references ? unescape_html(content) : std::string(content))) return;
      at = end;
    } else {
      if (!take_text("<")) return;
      at = opening + 1;
    }
  }
}

} // namespace holdfast::formats
