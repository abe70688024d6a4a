#include "lib/formats/charset.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/utf8.hpp"
#include "lib/formats/html.hpp"

#include <iconv.h>
#include <uchardet/uchardet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace holdfast::formats {

namespace {

constexpr std::size_t kDeclaredWithin = 1u << 18; // bytes from the start of the page
constexpr std::size_t kGuessedBy = 1u << 18;      // bytes from the first that is not ASCII

// What iconv calls each encoding of the Encoding standard, and the labels that pages use for it, in lower case and
// between blanks. Browsers read ISO 8859-1 as Windows 1252, and like pairs.
constexpr std::pair<std::string_view, std::string_view> kReadAs[] = {
    {"BIG5-HKSCS", " big5 big5-hkscs cn-big5 csbig5 x-x-big5 "},
    {"CP866", " 866 cp866 csibm866 ibm866 "},
    {"CP874", " dos-874 iso8859-11 iso885911 iso-8859-11 tis-620 windows-874 "},
    {"CP932", " csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis "},
    {"CP949", " cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 "
              "ksc_5601 windows-949 "},
    {"CP1250", " cp1250 windows-1250 x-cp1250 "},
    {"CP1251", " cp1251 windows-1251 x-cp1251 "},
    {"CP1252", " ansi_x3.4-1968 ascii cp819 cp1252 csisolatin1 ibm819 iso8859-1 iso88591 iso-8859-1 "
               "iso-ir-100 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 "},
    {"CP1253", " cp1253 windows-1253 x-cp1253 "},
    {"CP1254", " cp1254 csisolatin5 iso8859-9 iso88599 iso-8859-9 iso-ir-148 iso_8859-9 iso_8859-9:1989 "
               "l5 latin5 windows-1254 x-cp1254 "},
    {"CP1255", " cp1255 windows-1255 x-cp1255 "},
    {"CP1256", " cp1256 windows-1256 x-cp1256 "},
    {"CP1257", " cp1257 windows-1257 x-cp1257 "},
    {"CP1258", " cp1258 windows-1258 x-cp1258 "},
    {"EUC-JP-MS", " cseucpkdfmtjapanese euc-jp x-euc-jp "},
    {"GB18030", " chinese csgb2312 csiso58gb231280 gb2312 gb18030 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk "},
    {"ISO-2022-JP", " csiso2022jp iso-2022-jp "},
    {"ISO-8859-2", " csisolatin2 iso8859-2 iso88592 iso-8859-2 iso-ir-101 iso_8859-2 iso_8859-2:1987 l2 "
                   "latin2 "},
    {"ISO-8859-3", " csisolatin3 iso8859-3 iso88593 iso-8859-3 iso-ir-109 iso_8859-3 iso_8859-3:1988 l3 "
                   "latin3 "},
    {"ISO-8859-4", " csisolatin4 iso8859-4 iso88594 iso-8859-4 iso-ir-110 iso_8859-4 iso_8859-4:1988 l4 "
                   "latin4 "},
    {"ISO-8859-5", " csisolatincyrillic cyrillic iso8859-5 iso88595 iso-8859-5 iso-ir-144 iso_8859-5 "
                   "iso_8859-5:1988 "},
    {"ISO-8859-6", " arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso8859-6 iso88596 "
                   "iso-8859-6 iso-8859-6-e iso-8859-6-i iso-ir-127 iso_8859-6 iso_8859-6:1987 "},
    {"ISO-8859-7", " csisolatingreek ecma-118 elot_928 greek greek8 iso8859-7 iso88597 iso-8859-7 iso-ir-126"
                   " iso_8859-7 iso_8859-7:1987 sun_eu_greek "},
    {"ISO-8859-8", " csiso88598e csiso88598i csisolatinhebrew hebrew iso8859-8 iso88598 iso-8859-8 "
                   "iso-8859-8-e iso-8859-8-i iso-ir-138 iso_8859-8 iso_8859-8:1988 logical visual "},
    {"ISO-8859-10", " csisolatin6 iso8859-10 iso885910 iso-8859-10 iso-ir-157 l6 latin6 "},
    {"ISO-8859-13", " iso8859-13 iso885913 iso-8859-13 "},
    {"ISO-8859-14", " iso8859-14 iso885914 iso-8859-14 "},
    {"ISO-8859-15", " csisolatin9 iso8859-15 iso885915 iso-8859-15 iso_8859-15 l9 "},
    {"ISO-8859-16", " iso-8859-16 "},
    {"KOI8-R", " cskoi8r koi koi8 koi8-r koi8_r "},
    {"KOI8-U", " koi8-ru koi8-u "},
    {"MAC-CYRILLIC", " x-mac-cyrillic x-mac-ukrainian "},
    {"MACINTOSH", " csmacintosh mac macintosh x-mac-roman "},
    {"REPLACEMENT", " csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement "},
    {"UTF-8", " unicode11utf8 unicode20utf8 unicode-1-1-utf-8 utf8 utf-8 x-unicode20utf8 "},
    {"UTF-16BE", " unicodefffe utf-16be "},
    {"UTF-16LE", " csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le "},
};

// Empty: no encoding of pages.
std::string codec_for(std::string_view label) {
  auto name = base::lower_case(label.substr(0, 64));
  std::erase_if(name,
                [](char letter) { return std::string_view("\"' \t\r\n").find(letter) != std::string_view::npos; });
  if (name.empty()) return {};
  for (const auto& [codec, labels] : kReadAs)
    if (labels.find(" " + name + " ") != std::string_view::npos) return std::string(codec);
  return {};
}

const iconv_t kNoCodec = reinterpret_cast<iconv_t>(-1);
using namespace std::string_view_literals;
constexpr std::pair<std::string_view, std::string_view> kMarks[] = {{"\xEF\xBB\xBF", "UTF-8"},
                                                                    {"\xFF\xFE\0\0"sv, "UTF-32LE"},
                                                                    {"\0\0\xFE\xFF"sv, "UTF-32BE"},
                                                                    {"\xFF\xFE", "UTF-16LE"},
                                                                    {"\xFE\xFF", "UTF-16BE"}};

bool is_codec(const std::string& name) {
  if (name.empty() || name == "UTF-8") return !name.empty();
  const iconv_t converter = ::iconv_open("UTF-8", name.c_str());
  if (converter != kNoCodec) ::iconv_close(converter);
  return converter != kNoCodec;
}

// To UTF-8; what cannot be decoded becomes U+FFFD. Each byte of Windows 1252 is a character, for browsers. False if
// there is no such codec.
bool convert(std::string_view bytes, const std::string& from, std::string& result) {
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
    result += from == "CP1252" ? base::utf8_of(static_cast<unsigned char>(*in)) : std::string(base::kReplacement);
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

// The charset of <meta> or of an XML declaration.
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

// Whether most of what is not ASCII is UTF-8: a stray byte, or an end within a character, does not make it another.
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

// What uchardet calls it, as Windows wrote it. What is not listed here and is no encoding of pages is what it says of
// a few accents in Western text.
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

// Of bytes that do not say it.
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
  const bool fits = is_codec(codec) && convert(bytes, codec, text) && times(text, base::kReplacement) <= 1;
  return fits ? codec : "CP1252";
}

std::string decode(std::string_view bytes, const std::string& codec) {
  for (const auto& [mark, of] : kMarks)
    if (of == codec && bytes.starts_with(mark)) bytes.remove_prefix(mark.size());
  std::string result;
  return codec != "UTF-8" && convert(bytes, codec, result) ? result : base::repair_utf8(bytes);
}

} // namespace

std::string page_encoding(std::string_view bytes, std::string_view content_type) {
  for (const auto& [mark, codec] : kMarks)
    if (bytes.starts_with(mark)) return std::string(codec);
  if (auto codec = codec_for(header_charset(content_type)); is_codec(codec)) return codec;
  auto codec = codec_for(declared_charset(bytes));
  if (codec.starts_with("UTF-16")) codec = "UTF-8"; // a declaration readable as ASCII is not in UTF-16
  if (is_codec(codec)) return codec;
  return guessed_codec(bytes);
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
    codec = guessed_codec(bytes); // what says so and is not
  if (codec != "UTF-8") return decode(bytes, codec);
  if (bytes.starts_with(kMarks[0].first)) bytes.remove_prefix(kMarks[0].first.size());
  std::string result;
  while (!bytes.empty()) {
    const auto length = base::utf8_length(bytes);
    if (length > 0)
      result += bytes.substr(0, length);
    else
      result += unescape_html("&#" + std::to_string(static_cast<unsigned char>(bytes.front())) + ";");
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

} // namespace holdfast::formats
