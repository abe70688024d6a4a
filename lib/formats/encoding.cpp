#include "lib/formats/encoding.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/embedded.hpp"
#include "lib/formats/html.hpp"

#include <iconv.h>
#include <uchardet/uchardet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::formats {

namespace {

constexpr std::size_t kDeclaredWithin = 1u << 18; // bytes from the start of the page
constexpr std::size_t kGuessedBy = 1u << 18;      // bytes from the first that is not ASCII

// Names of encodings in iconv, by the labels of the Encoding standard. Browsers read ISO 8859-1 as Windows 1252, and
// like pairs.
std::map<std::string, std::string, std::less<>> read_labels() {
  std::map<std::string, std::string, std::less<>> codecs;
  for (const auto& line : base::split(embedded::encodings_txt, "\n")) {
    const auto labels = line.find(' ');
    for (auto& label : base::split(std::string_view(line).substr(labels), " "))
      codecs.emplace(std::move(label), line.substr(0, labels));
  }
  return codecs;
}

// Empty: no encoding of pages.
std::string codec_for(std::string_view label) {
  static const auto codecs = read_labels();
  auto name = base::lower_case(label.substr(0, 64));
  std::erase_if(name,
                [](char letter) { return std::string_view("\"' \t\r\n").find(letter) != std::string_view::npos; });
  const auto known = codecs.find(name);
  return known == codecs.end() ? "" : known->second;
}

const iconv_t kNoCodec = reinterpret_cast<iconv_t>(-1);
using namespace std::string_view_literals;
constexpr std::pair<std::string_view, std::string_view> kMarks[] = {{"\xEF\xBB\xBF", "UTF-8"},
                                                                    {"\xFF\xFE\0\0"sv, "UTF-32LE"},
                                                                    {"\0\0\xFE\xFF"sv, "UTF-32BE"},
                                                                    {"\xFF\xFE", "UTF-16LE"},
                                                                    {"\xFE\xFF", "UTF-16BE"}};

// Converts to UTF-8; undecodable bytes become U+FFFD, or with `western` a character of Windows 1252, of which each byte
// is one, for browsers. Returns false if there is no such codec.
bool convert(std::string_view bytes, const std::string& from, std::string& result, bool western = false) {
  const iconv_t converter = ::iconv_open("UTF-8", from.c_str());
  if (converter == kNoCodec) return false;
  result.clear();
  std::array<char, 1u << 14> piece;
  char* in = const_cast<char*>(bytes.data());
  std::size_t left = bytes.size();
  for (;;) {
    char* out = piece.data();
    std::size_t room = piece.size();
    const bool flushing = left == 0;
    const auto answer = ::iconv(converter, flushing ? nullptr : &in, flushing ? nullptr : &left, &out, &room);
    const int error = errno;
    result.append(piece.data(), piece.size() - room);
    if (answer != static_cast<std::size_t>(-1)) {
      if (flushing) break;
      continue;
    }
    if (error == E2BIG) continue;
    if (left == 0) break;
    result += western || from == "CP1252" ? unescape_html("&#" + std::to_string(static_cast<unsigned char>(*in)) + ";")
                                          : std::string(base::kReplacement);
    ++in;
    --left;
  }
  ::iconv_close(converter);
  return true;
}

std::string charset_behind(std::string_view text) {
  const auto equals = text.find_first_not_of(" \t\r\n");
  if (equals == std::string_view::npos || text[equals] != '=') return {};
  const auto begin = text.find_first_not_of(" \t\r\n\"'", equals + 1);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_first_of(" \t\r\n;\"'?", begin) - begin));
}

std::string header_charset(std::string_view content_type) {
  const auto text = base::lower_case(content_type);
  const auto at = text.find("charset");
  return at == std::string::npos ? "" : charset_behind(std::string_view(text).substr(at + 7));
}

std::string declared_charset(std::string_view bytes) {
  const auto text = base::lower_case(bytes.substr(0, kDeclaredWithin));
  if (const auto xml = text.find_first_not_of(" \t\r\n");
      xml != std::string::npos && text.compare(xml, 5, "<?xml") == 0)
    if (const auto at = text.find("encoding", xml); at != std::string::npos && at < text.find('>', xml))
      if (auto value = charset_behind(std::string_view(text).substr(at + 8)); !value.empty()) return value;
  std::string charset;
  if (text.find("charset") != std::string::npos)
    scan_html(text, [&](const Token& token) {
      if (token.kind != Token::Kind::start || token.text != "meta") return true;
      charset = base::trimmed(token.attribute("charset"));
      if (charset.empty() && token.attribute("http-equiv") == "content-type")
        charset = header_charset(token.attribute("content"));
      return charset.empty();
    });
  return charset;
}

std::size_t times(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size()))
    ++count;
  return count;
}

// Returns true if most of what is not ASCII is UTF-8: a stray byte, or an end within a character, does not make it
// another.
bool is_mostly_utf8(std::string_view bytes) {
  std::size_t good = 0, stray = 0;
  while (!bytes.empty()) {
    const auto length = base::utf8_length(bytes);
    good += length > 1;
    stray += length == 0;
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return good >= stray;
}

// Names of uchardet for Windows encodings. Other encodings that it reports, which pages do not use, are its guess for a
// few accents in Western text.
constexpr std::pair<std::string_view, std::string_view> kSeenAs[] = {
    {"UHC", "CP949"},          {"ISO-8859-7", "CP1253"}, {"ISO-8859-8", "CP1255"}, {"MAC-CYRILLIC", "CP1251"},
    {"ISO-8859-13", "CP1257"}, {"ISO-8859-3", "CP1252"}, {"ISO-8859-4", "CP1252"}, {"ISO-8859-10", "CP1252"},
    {"ISO-8859-16", "CP1252"}, {"UTF-8", "CP1252"},      {"HZ-GB-2312", "CP1252"}};

std::string seen_codec(std::string_view bytes) {
  const std::unique_ptr<uchardet, void (*)(uchardet*)> detector(::uchardet_new(), &::uchardet_delete);
  ::uchardet_handle_data(detector.get(), bytes.data(), bytes.size());
  ::uchardet_data_end(detector.get());
  const std::string_view name = ::uchardet_get_charset(detector.get());
  for (const auto& [seen, codec] : kSeenAs)
    if (name == seen) return std::string(codec);
  return codec_for(name);
}

std::string guessed_codec(std::string_view bytes) {
  const auto strange =
      std::find_if(bytes.begin(), bytes.end(), [](char c) { return !base::is_ascii(c) || c == '\x1b'; });
  bytes = bytes.substr(static_cast<std::size_t>(strange - bytes.begin()), kGuessedBy);
  if (is_mostly_utf8(bytes) && bytes.find("\x1b$") == std::string_view::npos) return "UTF-8";
  auto codec = seen_codec(bytes);
  const auto count = [&](int least, int most) {
    return std::count_if(bytes.begin(), bytes.end(), [&](unsigned char c) { return c >= least && c <= most; });
  };
  if (codec == "ISO-8859-2" && count(0x80, 0x9F) > 0) codec = "CP1250";
  if (codec == "CP1257" && count(0x98, 0xFF) < 6) codec = "CP1252"; // accents of Italian; Baltic ones are many
  std::string text;
  // Words in kana alone are too short for it.
  for (const char* japanese : {"CP932", "EUC-JP-MS"})
    if ((codec.empty() || codec == "CP1252") && convert(bytes, japanese, text) &&
        times(text, "\xE3\x82") + times(text, "\xE3\x83") > 1 && times(text, base::kReplacement) == 0)
      return japanese;
  const bool fits = !codec.empty() && convert(bytes, codec, text) && times(text, base::kReplacement) <= 1;
  return fits ? codec : "CP1252";
}

std::string decode(std::string_view bytes, const std::string& codec, bool western = false) {
  for (const auto& [mark, of] : kMarks)
    if (of == codec && bytes.starts_with(mark)) bytes.remove_prefix(mark.size());
  std::string result;
  return (western || codec != "UTF-8") && convert(bytes, codec, result, western) ? result : base::repair_utf8(bytes);
}

} // namespace

std::string page_encoding(std::string_view bytes, std::string_view content_type) {
  for (const auto& [mark, codec] : kMarks)
    if (bytes.starts_with(mark)) return std::string(codec);
  if (auto codec = codec_for(header_charset(content_type)); !codec.empty()) return codec;
  auto codec = codec_for(declared_charset(bytes));
  if (codec.starts_with("UTF-16")) codec = "UTF-8"; // a declaration readable as ASCII is not in UTF-16
  return codec.empty() ? guessed_codec(bytes) : codec;
}

std::string decode_page(std::string_view bytes, std::string_view content_type) {
  return decode(bytes, page_encoding(bytes, content_type));
}

std::string encode(std::string_view text, const std::string& encoding) {
  std::string result;
  const iconv_t converter = ::iconv_open(encoding.c_str(), "UTF-8");
  if (converter == kNoCodec) return std::string(text);
  while (!text.empty()) {
    const auto character = base::first_character(text);
    std::array<char, 16> piece;
    char *in = const_cast<char*>(text.data()), *out = piece.data();
    std::size_t left = character.length, room = piece.size();
    if (::iconv(converter, &in, &left, &out, &room) == 0)
      result.append(piece.data(), piece.size() - room);
    else
      result += "%26%23" + std::to_string(static_cast<std::uint32_t>(character.code)) + "%3B";
    text.remove_prefix(character.length);
  }
  ::iconv_close(converter);
  return result;
}

std::string decode_file(std::string_view bytes) {
  auto codec = page_encoding(bytes, "");
  if (bytes.size() > 1 && (bytes[0] == '\0') != (bytes[1] == '\0'))
    codec = bytes[0] == '\0' ? "UTF-16BE" : "UTF-16LE";
  else if (codec == "UTF-8")
    codec = guessed_codec(bytes); // wrongly declared
  return decode(bytes, codec, codec == "UTF-8");
}

namespace {

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

std::string quoted_printable(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '=') {
      bytes += text[at];
      continue;
    }
    const int high = at + 2 < text.size() ? base::hex_value(text[at + 1]) : -1;
    const int low = high < 0 ? -1 : base::hex_value(text[at + 2]);
    const auto next = std::min(text.find_first_not_of(" \t\r", at + 1), text.size());
    if (low >= 0) {
      bytes += static_cast<char>(high * 16 + low);
      at += 2;
    } else if (next == text.size() || text[next] == '\n') { // the line goes on
      at = next;
    } else {
      bytes += '=';
    }
  }
  return bytes;
}

} // namespace holdfast::formats
