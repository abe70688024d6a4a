#include "lib/formats/sniff.hpp"

#include "lib/base/text/characters.hpp"
#include "lib/base/text/percent.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/embedded.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace holdfast::formats {

namespace {

using namespace std::string_view_literals;

constexpr std::array<std::string_view, 17> kHtml{
    "<!doctype html", "<html",  "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a",
    "<style",         "<title", "<b",    "<body",   "<br",     "<p",  "<!--"};

// Returns the first bytes of types; the first match counts. "?" is any byte.
std::vector<std::pair<std::string, std::string>> read_signatures() {
  std::vector<std::pair<std::string, std::string>> signatures;
  for (const auto& line : base::split(embedded::signatures_txt, "\n")) {
    const auto blank = line.find(' ');
    signatures.emplace_back(base::percent_decode(line.substr(blank + 1)), line.substr(0, blank));
  }
  return signatures;
}

bool is_media(std::string_view type) {
  const auto kind = type.substr(0, type.find('/'));
  return kind == "image" || kind == "audio" || kind == "video" || type == "application/ogg";
}

std::string_view matched(std::string_view head, bool media_alone) {
  static const auto signatures = read_signatures();
  for (const auto& [pattern, type] : signatures)
    if (head.size() >= pattern.size() && (!media_alone || is_media(type)) &&
        std::equal(pattern.begin(), pattern.end(), head.begin(),
                   [](char wanted, char c) { return wanted == '?' || wanted == c; }))
      return type;
  return {};
}

bool is_binary(std::string_view head) {
  return std::any_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x09 || byte == 0x0B || (byte > 0x0D && byte < 0x20 && byte != 0x1B);
  });
}

std::string_view text_or_binary(std::string_view head) {
  const bool marked = matched(head, false) == "text/plain"; // by a byte order mark
  return marked || !is_binary(head) ? "text/plain" : "application/octet-stream";
}

bool is_type(std::string_view type) {
  const auto slash = type.find('/');
  return slash != type.npos && slash > 0 && slash + 1 < type.size() &&
         std::all_of(type.begin(), type.end(), [](char c) {
           return base::is_alpha(c) || base::is_digit(c) || "/!#$%&'*+-.^_`|~"sv.find(c) != std::string_view::npos;
         });
}

} // namespace

std::string_view media_of_bytes(std::string_view head) { return matched(head, true); }

std::string_view type_of_bytes(std::string_view bytes) {
  const auto head = bytes.substr(0, kSniffed);
  const auto start = base::lower_case(head.substr(std::min(head.find_first_not_of(" \t\r\n\f"), head.size())));
  for (const auto tag : kHtml)
    if (start.starts_with(tag) &&
        (tag == "<!--" || (start.size() > tag.size() && (start[tag.size()] == ' ' || start[tag.size()] == '>'))))
      return "text/html";
  if (start.starts_with("<?xml")) return "text/xml";
  if (const auto type = matched(head, false); !type.empty()) return type;
  return text_or_binary(head);
}

std::string sniffed_type(std::string_view content_type, std::string_view bytes) {
  const auto type = base::lower_case(base::trimmed(content_type.substr(0, content_type.find(';'))));
  if (!is_type(type) || type == "unknown/unknown" || type == "application/unknown" || type == "*/*")
    return std::string(type_of_bytes(bytes));
  const auto head = bytes.substr(0, kSniffed);
  for (const auto plain : {"text/plain", "text/plain; charset=ISO-8859-1", "text/plain; charset=iso-8859-1",
                           "text/plain; charset=UTF-8"}) // types of Apache for unknown files
    if (content_type == plain) return std::string(text_or_binary(head));
  const auto kind = type.substr(0, type.find('/') + 1);
  if (kind == "image/" || kind == "audio/" || kind == "video/")
    if (const auto found = media_of_bytes(head); found.starts_with(kind) && !type.ends_with("+xml"))
      return std::string(found);
  return type;
}

} // namespace holdfast::formats
