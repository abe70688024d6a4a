#include "lib/warc/redact.hpp"

#include "lib/base/base64.hpp"
#include "lib/base/characters.hpp"
#include "lib/base/inflater.hpp"
#include "lib/base/text.hpp"
#include "lib/warc/digest.hpp"
#include "lib/warc/file.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/spool.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace holdfast::warc {

namespace {

constexpr std::size_t kShortest = 4, kLongest = 256; // of a pattern; longer secrets are looked for in parts
constexpr std::size_t kReach = 12 * kLongest;        // in escapes twice over
constexpr std::size_t kAtOnce = 1u << 20, kLongestTag = 4096;
constexpr std::size_t kLargestCoded = 64u << 20, kLongestMessageHead = 256u << 10;

std::uint32_t start_of(std::string_view text) {
  std::uint32_t start = 0;
  std::memcpy(&start, text.data(), sizeof start);
  return start;
}
std::size_t slot_of(std::uint32_t start) { return (start * 2654435761u) >> 16; }

int hex_number(std::string_view text) {
  int number = text.empty() ? -1 : 0;
  for (const char letter : text)
    number = base::hex_value(letter) < 0 || number < 0 ? -1 : number * 16 + base::hex_value(letter);
  return number;
}
void add_utf8(std::string& text, int code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// The length of the escape that `rest` begins with, and what it stands for; 0: none.
std::size_t read_escape(std::string_view rest, std::string& value) {
  value.clear();
  if (rest[0] == '%') {
    const int code = rest.size() < 3 ? -1 : hex_number(rest.substr(1, 2));
    if (code < 0) return 0;
    value = static_cast<char>(code);
    return 3;
  }
  if (rest[0] == '\\' && rest.size() > 1) {
    const std::size_t digits = rest[1] == 'u' ? 4 : rest[1] == 'x' ? 2 : 0;
    if (digits > 0) {
      const int code = rest.size() < digits + 2 ? -1 : hex_number(rest.substr(2, digits));
      if (code < 0) return 0;
      add_utf8(value, code);
      return digits + 2;
    }
    value = rest[1] == 'n' ? '\n' : rest[1] == 't' ? '\t' : rest[1];
    return 2;
  }
  if (rest[0] != '&') return 0;
  const auto end = rest.substr(0, 10).find(';');
  if (end == std::string_view::npos) return 0;
  const auto name = rest.substr(1, end - 1);
  static constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, letter] : kNamed)
    if (name == known) value = letter;
  if (name.starts_with("#x") || name.starts_with("#X")) {
    if (const int code = hex_number(name.substr(2)); code > 0) add_utf8(value, code & 0xFFFF);
  } else if (name.size() > 1 && name[0] == '#' && name.find_first_not_of("0123456789", 1) == std::string_view::npos) {
    add_utf8(value, std::stoi(std::string(name.substr(1))) & 0xFFFF);
  }
  return value.empty() ? 0 : end + 1;
}

// A marker for [begin, end): letters, digits and escapes stay such.
void mark(std::string& text, std::size_t begin, std::size_t end) {
  std::string value;
  for (auto at = begin; at < end;) {
    const auto letter = static_cast<unsigned char>(text[at]);
    if (const auto length = read_escape(std::string_view(text).substr(at, end - at), value); length > 0) {
      if (text[at] == '%') text.replace(at, 3, "%2D");
      if (length > 3 && text[at] == '\\') text.replace(at, length, length == 6 ? "\\u002d" : "\\x2d");
      if (text[at] == '&' && text[at + 1] == '#') {
        const bool hex = base::lower_case(text.substr(at + 2, 1)) == "x";
        for (auto digit = at + (hex ? 3 : 2); digit + 1 < at + length; ++digit)
          text[digit] = digit + 2 == at + length ? '5' : digit + 3 == at + length ? '4' : '0';
      }
      at += length;
      continue;
    }
    const std::size_t length = letter >= 0xF0 ? 4 : letter >= 0xE0 ? 3 : letter >= 0xC2 ? 2 : 1;
    static constexpr std::array<std::string_view, 3> kOthers = {"\xC2\xB7", "\xE2\x80\xA2", "\xF0\x9F\x94\x92"};
    if (length > 1 && at + length <= end)
      text.replace(at, length, kOthers[length - 2]);
    else if (base::is_digit(text[at]))
      text[at] = '0';
    else if ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z')
      text[at] = 'x';
    at += length > 1 && at + length <= end ? length : 1;
  }
}

// A text without its escapes, and where each of its bytes stood.
struct Decoded {
  std::string text;
  std::vector<std::uint32_t> at; // and where it ends
};
Decoded decode(const std::string& text, const std::vector<std::uint32_t>* below) {
  Decoded decoded;
  decoded.text.reserve(text.size());
  decoded.at.reserve(text.size() + 1);
  std::string value;
  const auto place = [&](std::size_t at) { return below ? (*below)[at] : static_cast<std::uint32_t>(at); };
  for (std::size_t at = 0; at < text.size();) {
    const bool may = text[at] == '%' || text[at] == '\\' || text[at] == '&';
    auto length = may ? read_escape(std::string_view(text).substr(at, 12), value) : 0;
    if (length == 0) {
      length = 1;
      value = text[at];
    }
    for (const char letter : value) {
      decoded.text += letter;
      decoded.at.push_back(place(at));
    }
    at += length;
  }
  decoded.at.push_back(place(text.size()));
  return decoded;
}

std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) { // in any case of letters
  const auto found = std::search(
      text.begin() + static_cast<std::ptrdiff_t>(std::min(from, text.size())), text.end(), word.begin(), word.end(),
      [](char one, char other) { return (one >= 'A' && one <= 'Z' ? static_cast<char>(one | 0x20) : one) == other; });
  return found == text.end() ? std::string_view::npos : static_cast<std::size_t>(found - text.begin());
}

// The value="..." of each <input type=password>.
bool mark_password_fields(std::string& text) {
  bool any = false;
  for (auto at = find_word(text, "<input", 0); at != std::string::npos; at = find_word(text, "<input", at + 6)) {
    const auto tag = std::string_view(text).substr(at, std::min(text.find('>', at), at + kLongestTag) - at);
    const auto type = find_word(tag, "type", 0);
    const auto kind = type == std::string_view::npos ? type : tag.find_first_not_of(" \t\r\n=\"'", type + 4);
    if (kind == std::string_view::npos || find_word(tag.substr(kind, 8), "password", 0) != 0) continue;
    const auto value = find_word(tag, "value", 0);
    auto begin = value == std::string_view::npos ? value : tag.find_first_not_of(" \t\r\n=", value + 5);
    if (begin == std::string_view::npos) continue;
    const bool quoted = tag[begin] == '"' || tag[begin] == '\'';
    const auto end =
        std::min(tag.size(), quoted ? tag.find(tag[begin], begin + 1) : tag.find_first_of(" \t\r\n", begin));
    if (quoted) ++begin;
    if (begin >= end) continue;
    mark(text, at + begin, at + end);
    any = true;
  }
  return any;
}

// The values behind this name: of a form's field (urlencoded, multipart, JSON), or of Set-Cookie in a head.
bool mark_named(std::string& text, std::string_view name, std::string_view ends) {
  bool any = false;
  for (auto at = find_word(text, name, 0); at != std::string::npos; at = find_word(text, name, at + name.size())) {
    const auto after = at + name.size();
    auto begin = text.find_first_of("=:\r", after);
    if (begin == std::string::npos || begin > after + 24 || text.find_first_of("&;, \n", after) < begin) continue;
    begin = text.find_first_not_of("=: \t\r\n\"", begin);
    if (begin == std::string::npos) continue;
    const auto end = std::min(text.find_first_of(ends, begin), text.size());
    if (name == "set-cookie") begin = std::min(text.find('=', begin) + 1, end);
    if (begin == 0 || begin >= end) continue;
    mark(text, begin, end);
    any = true;
  }
  return any;
}

// The value of a Set-Cookie field.
std::string_view cookie_value(std::string_view field) {
  const auto pair = field.substr(0, field.find(';'));
  return pair.substr(std::min(pair.find('='), pair.size() - 1) + 1);
}

bool is_http(const Record& record) {
  return base::lower_case(header_of(record.headers, "content-type")).starts_with("application/http");
}

std::string unchunked(std::string_view body) {
  std::string bytes;
  while (!body.empty()) {
    const auto line = body.find("\r\n");
    if (line == std::string_view::npos) break;
    const auto digits = body.substr(0, std::min(body.find(';'), line));
    std::size_t size = 0;
    for (const char digit : base::trimmed(digits))
      size = base::hex_value(digit) < 0 || size > body.size()
                 ? 0
                 : size * 16 + static_cast<std::size_t>(base::hex_value(digit));
    if (size == 0) break;
    body.remove_prefix(line + 2);
    bytes += body.substr(0, size);
    body.remove_prefix(std::min(body.size(), size + 2));
  }
  return bytes;
}

// gzip or zlib; empty: it is neither.
std::string inflated(std::string_view bytes) {
  base::Inflater inflater(bytes, base::kGzipOrZlib);
  std::string text, piece(1u << 18, '\0');
  for (auto step = base::Step::more; step == base::Step::more && text.size() < kLargestCoded;) {
    std::size_t got = 0;
    step = inflater.next(piece, got);
    text.append(piece, 0, got);
  }
  return text;
}

class Rewriter {
public:
  Rewriter(Reader& reader, const Redactor& redactor, int to) : reader_(reader), redactor_(redactor), to_(to) {}

  void copy(const Record& record) {
    std::string head, rest;
    if (is_http(record)) split_head(head, rest);
    Spool body;
    bool cut = false;
    take_body(record, head, std::move(rest), body, cut);
    redactor_.apply(head);
    mark_named(head, "set-cookie", ";\r\n");
    write(record, head, body, cut);
  }

private:
  // The head of an HTTP message with its empty line, and what has been read behind it.
  void split_head(std::string& head, std::string& rest) {
    std::string piece(1u << 16, '\0');
    auto end = std::string::npos;
    while (end == std::string::npos && rest.size() < kLongestMessageHead) {
      const auto got = reader_.read(piece.data(), piece.size());
      if (got == 0) return;
      rest.append(piece, 0, got);
      end = rest.find("\r\n\r\n");
    }
    if (end == std::string::npos) return;
    head = rest.substr(0, end + 4);
    rest.erase(0, end + 4);
  }

  // Undoes codings that secrets could hide in. `cut`: what cannot be looked into is left out.
  void take_body(const Record& record, std::string& head, std::string rest, Spool& body, bool& cut) {
    std::string piece(1u << 18, '\0');
    std::string field_chunked = field_of(head, "\r\ntransfer-encoding:"),
                coding = field_of(head, "\r\ncontent-encoding:");
    const bool is_chunked = field_chunked.find("chunked") != std::string::npos, coded = !coding.empty();
    const auto put = [&](std::string_view bytes) { body.add(bytes); };
    Redactor::Stream stream(redactor_);
    if (!is_chunked && !coded) {
      stream.add(rest, put);
      while (const auto got = reader_.read(piece.data(), piece.size()))
        stream.add(std::string_view(piece).substr(0, got), put);
    } else {
      while (const auto got = rest.size() > kLargestCoded ? 0 : reader_.read(piece.data(), piece.size()))
        rest.append(piece, 0, got);
      cut = rest.size() > kLargestCoded;
      if (cut) rest.clear();
      if (is_chunked) rest = unchunked(rest);
      if (coded && !rest.empty()) {
        rest = coding == "gzip" || coding == "x-gzip" || coding == "deflate" ? inflated(rest) : "";
        cut = cut || rest.empty();
      }
      stream.add(rest, put);
      rename(head, "\r\ntransfer-encoding:");
      rename(head, "\r\ncontent-encoding:");
    }
    stream.add("", put, true);
    if (record.type == "request") {
      auto text = body.head(kLargestCoded);
      if (text.size() == body.size() && mark_form(text)) replaced_ = std::move(text);
    }
  }
  static bool mark_form(std::string& text) {
    bool any = false;
    for (const char* name : {"password", "passwd", "pwd", "token", "secret", "otp", "totp"})
      any = mark_named(text, name, "&\"\r\n") || any;
    return any;
  }
  static std::string field_of(const std::string& head, std::string_view name) {
    const auto at = find_word(head, name, 0);
    if (at == std::string::npos) return {};
    const auto begin = at + name.size();
    return base::lower_case(base::trimmed(std::string_view(head).substr(begin, head.find("\r\n", begin) - begin)));
  }
  static void rename(std::string& head, std::string_view name) {
    if (const auto at = find_word(head, name, 0); at != std::string::npos) head.insert(at + 2, "X-Archive-Orig-");
  }

  void write(const Record& record, const std::string& head, const Spool& body, bool cut) {
    const auto each = [&](const auto& take) {
      if (replaced_.empty()) return body.read(take);
      take(std::string_view(replaced_));
    };
    Digest block, payload;
    block.add(head);
    std::uint64_t size = 0;
    each([&](std::string_view bytes) {
      block.add(bytes);
      payload.add(bytes);
      size += bytes.size();
    });
    const auto digest = sha1_text(payload.finish());
    std::string text = "WARC/1.1\r\n";
    for (const auto& [name, value] : record.headers) {
      const auto lowered = base::lower_case(name);
      auto field = value;
      if (lowered == "content-length" || (cut && lowered == "warc-truncated")) continue;
      if (lowered == "warc-block-digest")
        field = sha1_text(block.finish());
      else if (lowered == "warc-payload-digest")
        field = record.type == "revisit" ? renewed(value) : (digests_[value] = digest);
      else
        redactor_.apply(field);
      text += name + ": " + field + "\r\n";
    }
    if (cut) text += "WARC-Truncated: unspecified\r\n";
    text += "Content-Length: " + std::to_string(head.size() + size) + "\r\n\r\n" + head;
    const auto out = [this](std::string_view bytes) { write_all(to_, bytes); };
    member_.restart(record.type == "response" ? gzip_level(base::lower_case(field_of(head, "\r\ncontent-type:"))) : 6);
    member_.add(text, out);
    each([&](std::string_view bytes) { member_.add(bytes, out); });
    member_.add("\r\n\r\n", out, true);
    replaced_.clear();
  }
  std::string renewed(const std::string& digest) const {
    const auto found = digests_.find(digest);
    return found == digests_.end() ? digest : found->second;
  }

  Reader& reader_;
  const Redactor& redactor_;
  const int to_;
  GzipMember member_{6};
  std::string replaced_;                       // the body of a form
  std::map<std::string, std::string> digests_; // of payloads, before and after
};

} // namespace

void Redactor::add(std::string_view secret) {
  if (secret.size() < kShortest) return;
  for (std::size_t at = 0; at < secret.size(); at += kLongest) // the last part goes back as far as it must
    add_pattern(secret.substr(secret.size() > kLongest ? std::min(at, secret.size() - kLongest) : 0, kLongest));
}

void Redactor::add_pattern(std::string_view part) {
  const auto put = [this](std::string pattern) {
    if (pattern.size() < kShortest) return;
    const auto start = start_of(pattern);
    const auto [begin, end] = patterns_.equal_range(start);
    if (std::any_of(begin, end, [&](const auto& known) { return known.second == pattern; })) return;
    starts_.set(slot_of(start));
    patterns_.emplace(start, std::move(pattern));
  };
  put(std::string(part));
  std::string as_form(part);
  std::replace(as_form.begin(), as_form.end(), ' ', '+');
  put(as_form);
  // In base64 it may begin at each of three places; the letters at its ends are also of its neighbours.
  for (std::size_t before = 0; before < 3 && part.size() >= 6; ++before) {
    auto coded = base::base64_encode(std::string(before, '\0') + std::string(part));
    coded.resize((before + part.size()) * 8 / 6);
    coded.erase(0, (before * 8 + 5) / 6);
    put(coded);
    std::replace(coded.begin(), coded.end(), '+', '-');
    std::replace(coded.begin(), coded.end(), '/', '_');
    put(coded);
  }
}

void Redactor::except(std::string_view text) {
  std::erase_if(patterns_, [&](const auto& known) { return text.find(known.second) != std::string_view::npos; });
}

bool Redactor::apply_known(std::string& text) const {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  const auto search = [&](const std::string& in, const std::vector<std::uint32_t>* at) {
    for (std::size_t i = 0; i + kShortest <= in.size(); ++i) {
      const auto start = start_of(std::string_view(in).substr(i));
      if (!starts_.test(slot_of(start))) continue;
      const auto [begin, end] = patterns_.equal_range(start);
      for (auto known = begin; known != end; ++known)
        if (in.compare(i, known->second.size(), known->second) == 0)
          found.emplace_back(at ? (*at)[i] : i, at ? (*at)[i + known->second.size()] : i + known->second.size());
    }
  };
  search(text, nullptr);
  if (text.find_first_of("%\\&") != std::string::npos) {
    const auto once = decode(text, nullptr);
    search(once.text, &once.at);
    if (once.text.find_first_of("%\\&") != std::string::npos) {
      const auto twice = decode(once.text, &once.at);
      search(twice.text, &twice.at);
    }
  }
  for (const auto& [begin, end] : found)
    mark(text, begin, end);
  return !found.empty();
}

bool Redactor::apply(std::string& text) const {
  const bool known = !empty() && apply_known(text);
  return mark_password_fields(text) || known;
}

bool Redactor::Stream::add(std::string_view piece, const std::function<void(std::string_view)>& put, bool last) {
  held_ += piece;
  if (!last && held_.size() < kAtOnce) return false;
  const bool any = redactor_.apply(held_);
  const auto kept = last ? 0 : std::min(held_.size(), std::max(kReach, kLongestTag));
  put(std::string_view(held_).substr(0, held_.size() - kept));
  held_.erase(0, held_.size() - kept);
  return any;
}

void redact(int from, std::uint64_t size, int to, Redactor& redactor) {
  const auto each = [&](const auto& take) {
    Reader reader(from, 0, size);
    Rewriter rewriter(reader, redactor, to);
    for (;;) {
      try {
        const auto record = reader.next();
        if (!record) return;
        take(reader, rewriter, *record);
        reader.finish();
      } catch (const Damaged&) { // it goes on with the next one
      }
    }
  };
  each([&](Reader& reader, Rewriter&, const Record& record) {
    if (!is_http(record)) return;
    if (const auto head = reader.read_http_head())
      for (const auto& [name, value] : head->headers)
        if (base::lower_case(name) == "set-cookie" && cookie_value(value).size() >= 8)
          redactor.add(cookie_value(value));
  });
  each([](Reader&, Rewriter& rewriter, const Record& record) { rewriter.copy(record); });
}

} // namespace holdfast::warc
