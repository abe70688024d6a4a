#include "services/capture/charset.hpp"

#include "lib/base/utf8.hpp"
#include "services/capture/hook.hpp"

#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::size_t kDeclaredWithin = 4096; // bytes from the start of the page

// What pages call an encoding, in lower case, and what iconv reads it as: the list of the Encoding standard, less what
// iconv calls by the same name.
constexpr std::pair<std::string_view, std::string_view> kReadAs[] = {
    {"ascii", "CP1252"},
    {"us-ascii", "CP1252"},
    {"iso-8859-1", "CP1252"},
    {"iso8859-1", "CP1252"},
    {"iso_8859-1", "CP1252"},
    {"latin1", "CP1252"},
    {"latin-1", "CP1252"},
    {"l1", "CP1252"},
    {"windows-1252", "CP1252"},
    {"x-cp1252", "CP1252"},
    {"cp1252", "CP1252"},
    {"iso-8859-9", "CP1254"},
    {"latin5", "CP1254"},
    {"windows-1254", "CP1254"},
    {"iso-8859-11", "CP874"},
    {"tis-620", "CP874"},
    {"windows-874", "CP874"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"sjis", "CP932"},
    {"x-sjis", "CP932"},
    {"ms_kanji", "CP932"},
    {"windows-31j", "CP932"},
    {"euc-kr", "CP949"},
    {"ks_c_5601-1987", "CP949"},
    {"ksc5601", "CP949"},
    {"korean", "CP949"},
    {"windows-949", "CP949"},
    {"gb2312", "GB18030"},
    {"gbk", "GB18030"},
    {"x-gbk", "GB18030"},
    {"chinese", "GB18030"},
    {"gb18030", "GB18030"},
    {"big5", "BIG5-HKSCS"},
    {"x-x-big5", "BIG5-HKSCS"},
    {"big5-hkscs", "BIG5-HKSCS"},
    {"unicode", "UTF-16LE"},
    {"utf-16", "UTF-16LE"},
    {"utf-16le", "UTF-16LE"},
    {"utf-16be", "UTF-16BE"},
    {"utf8", "UTF-8"},
    {"utf-8", "UTF-8"},
    {"unicode-1-1-utf-8", "UTF-8"},
    {"koi8-r", "KOI8-R"},
    {"koi8", "KOI8-R"},
    {"koi8-u", "KOI8-U"},
    {"euc-jp", "EUC-JP"},
    {"x-euc-jp", "EUC-JP"},
    {"iso-2022-jp", "ISO-2022-JP"},
    {"macintosh", "MACINTOSH"},
    {"mac", "MACINTOSH"},
    {"x-mac-cyrillic", "MAC-CYRILLIC"},
    {"ibm866", "CP866"},
    {"cp866", "CP866"},
};

// Empty: no encoding of pages.
std::string codec_for(std::string_view label) {
  auto name = lower(label.substr(0, 64));
  std::erase_if(name, [](char letter) { return letter == '"' || letter == '\'' || letter == ' ' || letter == '\t'; });
  for (const auto& [known, codec] : kReadAs)
    if (known == name) return std::string(codec);
  // "windows-1251", "cp1251", "iso-8859-2": families in which iconv knows each member.
  const auto digits_after = [&](std::string_view prefix) {
    return name.starts_with(prefix) && name.size() > prefix.size() && name.size() <= prefix.size() + 4 &&
           std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                       [](char letter) { return letter >= '0' && letter <= '9'; });
  };
  if (digits_after("windows-")) return "CP" + name.substr(8);
  if (digits_after("cp")) return "CP" + name.substr(2);
  if (digits_after("iso-8859-")) return "ISO-8859-" + name.substr(9);
  return {};
}

bool convert(std::string_view bytes, const std::string& from, const std::string& to, const char* otherwise,
             std::string& result) {
  const iconv_t converter = ::iconv_open(to.c_str(), from.c_str());
  if (converter == reinterpret_cast<iconv_t>(-1)) return false;
  result.clear();
  std::array<char, 1u << 14> piece;
  char* in = const_cast<char*>(bytes.data());
  std::size_t left = bytes.size();
  bool whole = true;
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
    whole = false;
    if (otherwise == nullptr) break;
    result += otherwise;
    if (left == 0) break;
    ++in;
    --left;
  }
  ::iconv_close(converter);
  return whole || otherwise != nullptr;
}

std::string header_charset(std::string_view content_type) {
  const auto text = lower(content_type);
  const auto at = text.find("charset");
  if (at == std::string::npos) return {};
  const auto equals = text.find_first_not_of(" \t", at + 7);
  if (equals == std::string::npos || text[equals] != '=') return {};
  const auto begin = text.find_first_not_of(" \t\"'", equals + 1);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_first_of(" \t;\"'", begin) - begin);
}

// The charset of <meta> or of an XML declaration.
std::string declared_charset(std::string_view bytes) {
  const auto text = lower(bytes.substr(0, kDeclaredWithin));
  const auto value_after = [&](std::size_t at) -> std::string {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string::npos || text[at] != '=') return {};
    at = text.find_first_not_of(" \t\r\n\"'", at + 1);
    if (at == std::string::npos) return {};
    const auto end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_:.-", at);
    return text.substr(at, std::min(end, text.size()) - at);
  };
  if (const auto xml = text.find_first_not_of(" \t\r\n");
      xml != std::string::npos && text.compare(xml, 5, "<?xml") == 0)
    if (const auto at = text.find("encoding", xml); at != std::string::npos && at < text.find('>', xml))
      if (auto value = value_after(at + 8); !value.empty()) return value;
  for (auto meta = text.find("<meta"); meta != std::string::npos; meta = text.find("<meta", meta + 5)) {
    const auto end = std::min(text.find('>', meta), text.size());
    const auto at = text.find("charset", meta);
    if (at >= end) continue;
    if (auto value = value_after(at + 7); !value.empty()) return value;
  }
  return {};
}

} // namespace

std::string decode_page(std::string_view bytes, std::string_view content_type) {
  std::string result;
  const auto decoded = [&](std::string_view rest, const std::string& codec) {
    return codec == "UTF-8" ? (result = base::repair_utf8(rest), true)
                            : convert(rest, codec, "UTF-8", "\xEF\xBF\xBD", result);
  };
  using namespace std::string_view_literals;
  for (const auto& [mark, codec] :
       {std::pair{"\xEF\xBB\xBF"sv, "UTF-8"}, std::pair{"\xFF\xFE"sv, "UTF-16LE"}, std::pair{"\xFE\xFF"sv, "UTF-16BE"}})
    if (bytes.starts_with(mark) && decoded(bytes.substr(mark.size()), codec)) return result;
  auto codec = codec_for(header_charset(content_type));
  if (codec.empty()) {
    codec = codec_for(declared_charset(bytes));
    if (codec.starts_with("UTF-16")) codec = "UTF-8"; // a declaration readable as ASCII is not in UTF-16
  }
  if (!codec.empty() && decoded(bytes, codec)) return result;
  if (base::is_utf8(bytes)) return std::string(bytes);
  return decoded(bytes, "CP1252") ? result : base::repair_utf8(bytes);
}

std::string encode_text(const std::string& text, std::string_view charset) {
  const auto codec = codec_for(charset);
  std::string result;
  if (codec.empty() || codec == "UTF-8" || !convert(text, "UTF-8", codec, nullptr, result)) return text;
  return result;
}

} // namespace holdfast::capture
