#include "lib/formats/sniff.hpp"

#include "lib/base/characters.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::formats {

namespace {

using namespace std::string_view_literals;
using Pattern = std::pair<std::string_view, std::string_view>; // "?" in it: any byte

constexpr std::array<std::string_view, 17> kHtml{
    "<!doctype html", "<html",  "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a",
    "<style",         "<title", "<b",    "<body",   "<br",     "<p",  "<!--"};
constexpr std::array kMedia{Pattern{"\0\0\1\0"sv, "image/x-icon"},
                            Pattern{"\0\0\2\0"sv, "image/x-icon"},
                            Pattern{"BM", "image/bmp"},
                            Pattern{"GIF87a", "image/gif"},
                            Pattern{"GIF89a", "image/gif"},
                            Pattern{"RIFF????WEBPVP", "image/webp"},
                            Pattern{"\x89PNG\r\n\x1a\n", "image/png"},
                            Pattern{"\xff\xd8\xff", "image/jpeg"},
                            Pattern{"FORM????AIFF", "audio/aiff"},
                            Pattern{"ID3", "audio/mpeg"},
                            Pattern{"OggS\0"sv, "application/ogg"},
                            Pattern{"MThd\0\0\0\6"sv, "audio/midi"},
                            Pattern{"RIFF????AVI ", "video/avi"},
                            Pattern{"RIFF????WAVE", "audio/wave"},
                            Pattern{"????ftypavif", "image/avif"},
                            Pattern{"????ftyp", "video/mp4"},
                            Pattern{"\x1a\x45\xdf\xa3", "video/webm"}};
constexpr std::array kOther{Pattern{"%PDF-", "application/pdf"}, Pattern{"%!PS-Adobe-", "application/postscript"},
                            Pattern{"\xfe\xff", "text/plain"}, Pattern{"\xff\xfe", "text/plain"},
                            Pattern{"\xef\xbb\xbf", "text/plain"}};
constexpr std::array kArchives{Pattern{"\x1f\x8b\x08", "application/x-gzip"},
                               Pattern{"PK\3\4", "application/zip"},
                               Pattern{"Rar!\x1a\7", "application/x-rar-compressed"},
                               Pattern{"wOF2", "font/woff2"},
                               Pattern{"wOFF", "font/woff"},
                               Pattern{"OTTO", "font/otf"},
                               Pattern{"\0\1\0\0"sv, "font/ttf"}};

template <typename Patterns>
std::string_view matched(const Patterns& patterns, std::string_view head) {
  for (const auto& [pattern, type] : patterns)
    if (head.size() >= pattern.size() && std::equal(pattern.begin(), pattern.end(), head.begin(),
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
  const bool marked = head.starts_with("\xfe\xff") || head.starts_with("\xff\xfe") || head.starts_with("\xef\xbb\xbf");
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

std::string_view media_of_bytes(std::string_view head) { return matched(kMedia, head); }

std::string_view type_of_bytes(std::string_view bytes) {
  const auto head = bytes.substr(0, kSniffed);
  const auto start = base::lower_case(head.substr(std::min(head.find_first_not_of(" \t\r\n\f"), head.size())));
  for (const auto tag : kHtml)
    if (start.starts_with(tag) &&
        (tag == "<!--" || (start.size() > tag.size() && (start[tag.size()] == ' ' || start[tag.size()] == '>'))))
      return "text/html";
  if (start.starts_with("<?xml")) return "text/xml";
  if (const auto type = matched(kOther, head); !type.empty()) return type;
  if (const auto type = media_of_bytes(head); !type.empty()) return type;
  if (const auto type = matched(kArchives, head); !type.empty()) return type;
  return text_or_binary(head);
}

std::string sniffed_type(std::string_view content_type, std::string_view bytes) {
  const auto type = base::lower_case(base::trimmed(content_type.substr(0, content_type.find(';'))));
  if (!is_type(type) || type == "unknown/unknown" || type == "application/unknown" || type == "*/*")
    return std::string(type_of_bytes(bytes));
  const auto head = bytes.substr(0, kSniffed);
  for (const auto plain : {"text/plain", "text/plain; charset=ISO-8859-1", "text/plain; charset=iso-8859-1",
                           "text/plain; charset=UTF-8"}) // what Apache said of files that it did not know
    if (content_type == plain) return std::string(text_or_binary(head));
  const auto kind = type.substr(0, type.find('/') + 1);
  if (kind == "image/" || kind == "audio/" || kind == "video/")
    if (const auto found = media_of_bytes(head); found.starts_with(kind) && !type.ends_with("+xml"))
      return std::string(found);
  return type;
}

} // namespace holdfast::formats
