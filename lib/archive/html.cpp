#include "lib/archive/html.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/page_style.hpp"

#include <algorithm>
#include <array>

namespace holdfast::archive {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

bool is_digits(std::string_view text) { return text.find_first_not_of("0123456789") == std::string_view::npos; }

// U+202A..202E and U+2066..2069: embeddings, overrides and isolates; also the C1 controls U+0080..009F.
bool is_treacherous(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;
  if (character.size() != 3 || byte(0) != 0xE2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) ||
         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
}

} // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_sequence_length(text.substr(i));
    if (length == 0) {
      out += kReplacement;
      ++i;
      continue;
    }
    const std::string_view character = text.substr(i, length);
    i += length;
    if (length > 1) {
      out += is_treacherous(character) ? kReplacement : character;
      continue;
    }
    const char c = character.front();
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    case '\t':
    case '\n':
    case '\r':
      out += c;
      break;
    default:
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
        out += kReplacement;
      } else {
        out += c;
      }
    }
  }
  return out;
}

std::string href_of_path(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = path.starts_with("../") ? "" : "./";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || c == '/';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

bool is_web_url(std::string_view url) {
  std::string start(url.substr(0, 8));
  std::transform(start.begin(), start.end(), start.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return start.starts_with("http://") || start == "https://";
}

std::string outside_link(std::string_view url, std::string_view text) {
  if (!is_web_url(url)) return html_escape(text);
  return "<a href=\"" + html_escape(url) + "\" rel=\"external noopener noreferrer\">" + html_escape(text) + "</a>";
}

std::string_view without_scheme(std::string_view url) {
  if (!is_web_url(url)) return url;
  url.remove_prefix(url.find("//") + 2);
  if (!url.empty() && url.back() == '/' && std::count(url.begin(), url.end(), '/') == 1) url.remove_suffix(1);
  return url;
}

std::string human_time(std::string_view iso) {
  static constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                               "May",       "June",     "July",     "August",
                                                               "September", "October",  "November", "December"};
  const bool shaped = iso.size() >= 16 && is_digits(iso.substr(0, 4)) && iso[4] == '-' && is_digits(iso.substr(5, 2)) &&
                      iso[7] == '-' && is_digits(iso.substr(8, 2)) && (iso[10] == 'T' || iso[10] == ' ') &&
                      is_digits(iso.substr(11, 2)) && iso[13] == ':' && is_digits(iso.substr(14, 2));
  if (!shaped) return std::string(iso);
  const int month = (iso[5] - '0') * 10 + (iso[6] - '0');
  if (month < 1 || month > 12) return std::string(iso);
  std::string_view day = iso.substr(8, 2);
  if (day.front() == '0') day.remove_prefix(1);
  return std::string(day) + " " + std::string(kMonths[static_cast<std::size_t>(month - 1)]) + " " +
         std::string(iso.substr(0, 4)) + ", " + std::string(iso.substr(11, 5)) + " UTC";
}

std::string time_element(std::string_view iso) {
  if (iso.empty()) return {};
  return "<time datetime=\"" + html_escape(iso) + "\" title=\"" + html_escape(iso) + "\">" +
         html_escape(human_time(iso)) + "</time>";
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return grouped(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::string icon(std::string_view name) {
  return "<svg class=\"i\" aria-hidden=\"true\"><use href=\"#i-" + std::string(name) + "\"/></svg>";
}

std::string_view status_tone(std::string_view status) {
  if (status == "succeeded") return "ok";
  if (status == "partial") return "warn";
  if (status == "failed") return "bad";
  return "mute";
}

std::string status_badge(std::string_view status) {
  std::string word = status == "noresults" ? "Found nothing" : html_escape(status);
  if (!word.empty() && word.front() >= 'a' && word.front() <= 'z') word.front() = static_cast<char>(word.front() - 32);
  const std::string tone(status_tone(status));
  return "<span class=\"badge " + tone + "\">" + icon(tone) + word + "</span>";
}

std::string page_head(std::string_view title, std::string_view icon_path) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // Should any escaping ever fail: nothing runs, nothing is fetched from elsewhere, nothing is sent.
  out += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src 'self'; "
         "style-src 'unsafe-inline'; frame-src 'self'; base-uri 'none'; form-action 'none'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"referrer\" content=\"no-referrer\">\n"
         "<meta name=\"robots\" content=\"noindex\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta name=\"generator\" content=\"Holdfast\">\n<title>";
  out += html_escape(title);
  out += "</title>\n";
  if (!icon_path.empty()) out += "<link rel=\"icon\" href=\"" + href_of_path(icon_path) + "\">\n";
  out += "<style>\n";
  out += kPageStyle;
  out += "</style>\n</head>\n<body>\n";
  out += kIconSprite;
  return out;
}

std::string page_foot() { return "</body>\n</html>\n"; }

} // namespace holdfast::archive
