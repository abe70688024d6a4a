#include "lib/warc/redact.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/escape.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/spool.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::warc {

namespace {

constexpr std::size_t kShortest = 4, kLongest = 256; // of a pattern; longer secrets are looked for in parts
constexpr std::size_t kReach = 12 * kLongest;        // in escapes twice over
constexpr std::size_t kAtOnce = 1u << 20, kLongestTag = 4096;
constexpr std::size_t kLargestCoded = 64u << 20, kLargestLearnt = 1u << 20;

std::uint32_t start_of(std::string_view text) {
  std::uint32_t start = 0;
  std::memcpy(&start, text.data(), sizeof start);
  return start;
}
std::size_t slot_of(std::uint32_t start) { return (start * 2654435761u) >> 16; }

// Writes a marker over [begin, end): a digit for a digit, and letters for letters, escapes and non-ASCII. Other
// characters may be of the syntax around it, and stay.
void mark(std::string& text, std::size_t begin, std::size_t end) {
  for (auto at = begin; at < end; ++at) {
    const auto escaped = read_escape(std::string_view(text).substr(at, end - at)).length;
    if (escaped > 0)
      text.replace(at, escaped, escaped, 'x');
    else if (base::is_digit(text[at]))
      text[at] = '0';
    else if (base::is_alpha(text[at]) || static_cast<unsigned char>(text[at]) >= 0x80)
      text[at] = 'x';
  }
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

constexpr std::string_view kSecretNames[] = {"password", "passwd", "pwd", "token", "secret", "otp", "totp"};

// Marks the values of fields with such names, in forms (urlencoded, multipart) and JSON. `only`: of these values; null:
// all. Returns true if something was marked.
bool mark_named(std::string& text, const std::set<std::string>* only) {
  bool any = false;
  for (const auto name : kSecretNames)
    for (auto at = find_word(text, name, 0); at != std::string::npos; at = find_word(text, name, at + name.size())) {
      const auto after = at + name.size();
      auto begin = text.find_first_of("=:\r", after);
      if (begin == std::string::npos || begin > after + 24 || text.find_first_of("&;, \n", after) < begin) continue;
      begin = text.find_first_not_of("=: \t\r\n\"", begin);
      if (begin == std::string::npos) continue;
      const auto end = std::min(text.find_first_of("&\"\r\n", begin), text.size());
      if (only != nullptr && !only->contains(text.substr(begin, end - begin))) continue;
      mark(text, begin, end);
      any = true;
    }
  return any;
}

// Returns true for a secret that may be a word of any page: it is replaced only where secrets stand.
bool is_ordinary(std::string_view secret) {
  constexpr std::size_t kShort = 8, kLongWord = 16;
  const bool word = std::all_of(secret.begin(), secret.end(), [](char letter) {
    return base::is_alpha(letter) || static_cast<unsigned char>(letter) >= 0x80 || letter == ' ' || letter == '-';
  });
  return secret.size() < kShort || (word && secret.size() < kLongWord);
}

// Returns true for a JSON Web Token (RFC 7519), whatever its name: its header is base64 of an object.
bool is_jwt(std::string_view value) {
  return value.starts_with("eyJ") && std::count(value.begin(), value.end(), '.') == 2;
}

// Adds to `redactor` the values that an answer gives for such names, as when a page renews its token. `json`: of a
// body; `name`: what it is called there.
void learn(const nlohmann::json& json, Redactor& redactor, std::string_view name = {}) {
  constexpr std::size_t kLeast = 12, kLeastRandom = 16;
  // Names that others than secrets have, too: only for values that look random.
  static constexpr std::string_view kAlso[] = {"access",     "refresh", "jwt",    "session", "sessionid",
                                               "session_id", "sid",     "bearer", "apikey",  "api_key"};
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      learn(value, redactor, key);
  } else if (json.is_array()) {
    for (const auto& value : json)
      learn(value, redactor, name);
  } else if (json.is_string()) {
    const auto& value = json.get_ref<const std::string&>();
    const auto called = [&](auto secret) { return find_word(name, secret, 0) != std::string::npos; };
    const bool random = value.size() >= kLeastRandom && std::any_of(value.begin(), value.end(), base::is_digit) &&
                        std::any_of(value.begin(), value.end(), base::is_alpha);
    const bool known = std::any_of(std::begin(kSecretNames), std::end(kSecretNames), called) ||
                       (random && (is_jwt(value) || std::find(std::begin(kAlso), std::end(kAlso),
                                                              base::lower_case(name)) != std::end(kAlso)));
    if (known && value.size() >= kLeast && value.find(' ') == std::string::npos) redactor.add(value);
  }
}

std::string in_utf16(std::string_view text, bool little_end) {
  std::string units;
  const auto put = [&](char32_t unit) {
    for (const int shift : {little_end ? 0 : 8, little_end ? 8 : 0})
      units += static_cast<char>((unit >> shift) & 0xFF);
  };
  while (!text.empty()) {
    const auto [code, length] = base::first_character(text);
    if (code >= 0x10000) put(0xD800 + ((code - 0x10000) >> 10));
    put(code >= 0x10000 ? 0xDC00 + ((code - 0x10000) & 0x3FF) : code);
    text.remove_prefix(length);
  }
  return units;
}

// All codings of a body, first to last, in fields of this name.
std::string codings_of(const Headers& headers, std::string_view wanted) {
  std::string all;
  for (const auto& [name, value] : headers)
    if (base::lower_case(name) == wanted) all += (all.empty() ? "" : ",") + base::lower_case(value);
  return all;
}

std::string_view cookie_value(std::string_view field) {
  const auto pair = field.substr(0, field.find(';'));
  return pair.substr(std::min(pair.find('='), pair.size() - 1) + 1);
}

class Rewriter {
public:
  Rewriter(Reader& reader, const Redactor& redactor, int to) : reader_(reader), redactor_(redactor), to_(to) {}

  void copy(const Record& record) {
    HttpHead head;
    if (record.http) {
      auto found = reader_.read_http_head();
      if (!found) return;
      head = std::move(*found);
    }
    Spool body;
    const bool cut = take_body(record, head.headers, body);
    std::string text = head.first_line.empty() ? "" : head.first_line + "\r\n";
    for (auto& [name, value] : head.headers) {
      const auto cookie = base::lower_case(name) == "set-cookie" ? cookie_value(value) : std::string_view();
      const auto begin = cookie.empty() ? 0 : static_cast<std::size_t>(cookie.data() - value.data());
      mark(value, begin, begin + cookie.size());
      text += name + ": " + value + "\r\n";
    }
    if (!text.empty()) text += "\r\n";
    redactor_.apply(text, true);
    write(record, text, media_type(header_of(head.headers, "content-type")), body, cut);
  }

private:
  // Undoes codings that secrets could hide in. Returns true if the body cannot be decoded and is left out.
  bool take_body(const Record& record, Headers& headers, Spool& body) {
    const auto content = codings_of(headers, "content-encoding"), transfer = codings_of(headers, "transfer-encoding");
    const bool coded = !content.empty() || !transfer.empty(), whole = coded || record.type == "request";
    const auto put = [&](std::string_view bytes) { body.add(bytes); };
    Redactor::Stream stream(redactor_, record.type == "request");
    std::string all;
    reader_.read_rest([&](std::string_view piece) {
      if (!whole)
        stream.add(piece, put);
      else if (all.size() <= kLargestCoded)
        all += piece;
    });
    bool cut = all.size() > kLargestCoded || reader_.was_cut();
    if (all.size() > kLargestCoded) all.clear();
    if (coded && !all.empty()) {
      auto plain = decode_body(std::move(all), content + "," + transfer, kLargestCoded);
      cut = cut || !plain.whole;
      all = std::move(plain.bytes);
    }
    for (auto& [name, value] : headers)
      if (const auto lowered = base::lower_case(name);
          coded && (lowered == "content-encoding" || lowered == "transfer-encoding" || lowered == "content-length"))
        name = "X-Archive-Orig-" + name;
    if (record.type == "request") mark_named(all, nullptr);
    stream.add(all, put);
    stream.add("", put, true);
    return cut;
  }

  void write(const Record& record, const std::string& head, const std::string& media, const Spool& body, bool cut) {
    Digest block;
    block.add(head);
    body.read([&](std::string_view bytes) { block.add(bytes); });
    const auto digest = body.payload_digest();
    auto fields = record.headers;
    for (auto& [name, value] : fields) {
      const auto lowered = base::lower_case(name);
      if (lowered == "warc-block-digest")
        value = block.finish();
      else if (lowered == "warc-payload-digest")
        value = record.type == "revisit" ? renewed(value) : (digests_[value] = digest);
      else
        redactor_.apply(value);
    }
    const auto truncated = cut ? "unspecified" : header_of(fields, "warc-truncated");
    const auto more = truncated.empty() ? Headers() : Headers{{"WARC-Truncated", truncated}};
    const auto out = [this](std::string_view bytes) { write_all(to_, bytes); };
    member_.restart(record.type == "response" ? gzip_level(media) : 6);
    member_.add(record_head(fields, {"warc-truncated"}, more, head.size() + body.size()), out);
    member_.add(head, out);
    body.read([&](std::string_view bytes) { member_.add(bytes, out); });
    member_.add("\r\n\r\n", out, true);
  }
  std::string renewed(const std::string& digest) const {
    const auto found = digests_.find(digest);
    return found == digests_.end() ? digest : found->second;
  }

  Reader& reader_;
  const Redactor& redactor_;
  const int to_;
  GzipMember member_{6};
  std::map<std::string, std::string> digests_; // of payloads, before and after
};

} // namespace

void Redactor::add(std::string_view secret) {
  if (secret.size() < kShortest) return;
  if (is_ordinary(secret)) {
    ordinary_.emplace(secret);
    return;
  }
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
  put(decode(std::string(part), nullptr).text); // a site may show it without its escapes
  std::string as_form(part);
  std::replace(as_form.begin(), as_form.end(), ' ', '+');
  put(as_form);
  put(in_utf16(part, true));
  put(in_utf16(part, false));
  auto digits = base::hex(part);
  put(digits);
  std::transform(digits.begin(), digits.end(), digits.begin(),
                 [](char digit) { return digit >= 'a' ? static_cast<char>(digit - 'a' + 'A') : digit; });
  put(digits);
  // In base64 it may begin at each of three positions; the letters at its ends are also of its neighbours.
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
  std::erase_if(ordinary_, [&](const auto& known) { return text.find(known) != std::string_view::npos; });
  std::erase_if(patterns_, [&](const auto& known) { return text.find(known.second) != std::string_view::npos; });
}

bool Redactor::apply(std::string& text, bool all_places) const {
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
  if (all_places)
    for (const auto& word : ordinary_)
      for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size()))
        found.emplace_back(at, at + word.size());
  for (const auto& [begin, end] : found)
    mark(text, begin, end);
  const bool named = !all_places && !ordinary_.empty() && mark_named(text, &ordinary_);
  return mark_password_fields(text) || named || !found.empty();
}

bool Redactor::Stream::add(std::string_view piece, const std::function<void(std::string_view)>& put, bool last) {
  held_ += piece;
  if (!last && held_.size() < kAtOnce) return false;
  const bool any = redactor_.apply(held_, all_places_);
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
    const auto head = reader.read_http_head();
    if (!head) return;
    for (const auto& [name, value] : head->headers)
      if (base::lower_case(name) == "set-cookie" && cookie_value(value).size() >= 8) redactor.add(cookie_value(value));
    if (record.type != "response" || media_type(header_of(head->headers, "content-type")) != "application/json") return;
    std::string body;
    reader.read_rest([&](std::string_view piece) {
      if (body.size() <= kLargestLearnt) body += piece;
    });
    const auto codings = codings_of(head->headers, "content-encoding");
    if (!codings.empty()) body = decode_body(std::move(body), codings, kLargestLearnt).bytes;
    if (body.size() <= kLargestLearnt) learn(nlohmann::json::parse(body, nullptr, false), redactor);
  });
  each([](Reader&, Rewriter& rewriter, const Record& record) { rewriter.copy(record); });
}

} // namespace holdfast::warc
