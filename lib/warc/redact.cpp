#include "lib/warc/redact.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/html.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/spool.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace holdfast::warc {

namespace {

constexpr std::size_t kLargestCoded = 64u << 20, kLargestLearnt = 1u << 20;

// Returns true for a JSON Web Token (RFC 7519), whatever its name: its header is base64 of an object.
bool is_jwt(std::string_view value) {
  return value.starts_with("eyJ") && std::count(value.begin(), value.end(), '.') == 2;
}

// Adds a value that an answer gives for a name, as when a page renews its token, if it is a secret.
void learn(std::string_view name, const std::string& value, Redactor& redactor) {
  constexpr std::size_t kLeast = 12, kLeastRandom = 16;
  // Names that others than secrets have, too: only for values that look random.
  static constexpr std::string_view kAlso[] = {"access",     "refresh", "jwt",    "session", "sessionid",
                                               "session_id", "sid",     "bearer", "apikey",  "api_key"};
  const bool random = value.size() >= kLeastRandom && std::any_of(value.begin(), value.end(), base::is_digit) &&
                      std::any_of(value.begin(), value.end(), base::is_alpha);
  const bool known =
      names_secret(name) || (random && (is_jwt(value) || std::find(std::begin(kAlso), std::end(kAlso),
                                                                   base::lower_case(name)) != std::end(kAlso)));
  if (known && value.size() >= kLeast && value.find(' ') == std::string::npos) redactor.add(value);
}

void learn(const nlohmann::json& json, Redactor& redactor, std::string_view name = {}) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      learn(value, redactor, key);
  } else if (json.is_array()) {
    for (const auto& value : json)
      learn(value, redactor, name);
  } else if (json.is_string()) {
    learn(name, json.get_ref<const std::string&>(), redactor);
  }
}

// Adds secrets of the hidden fields and <meta> of a page, and of the JSON in it.
void learn_page(std::string_view html, Redactor& redactor) {
  bool json = false;
  formats::scan_html(html, [&](const formats::Token& token) {
    using Kind = formats::Token::Kind;
    if (json && token.kind == Kind::text) learn(base::strange_json(token.text), redactor);
    json = token.kind == Kind::start && token.text == "script" &&
           token.attribute("type").find("json") != std::string::npos;
    if (token.kind == Kind::start && (token.text == "input" || token.text == "meta"))
      learn(token.attribute("name"), token.attribute(token.text == "input" ? "value" : "content"), redactor);
    return true;
  });
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
  Rewriter(const Redactor& redactor, int to, bool documents) : redactor_(redactor), to_(to), documents_(documents) {}

  void copy(Reader& reader, const Record& record) {
    HttpHead head;
    if (record.http) {
      auto found = reader.read_http_head();
      if (!found) return;
      head = std::move(*found);
    }
    Spool body;
    const auto media = media_type(header_of(head.headers, "content-type"));
    auto kept = take_body(reader, record, head.headers, body);
    if (!documents_ && body.size() > 0 && media == "application/pdf") kept = Kept::nothing;
    if (kept == Kept::nothing) {
      body.clear();
      auto url = header_of(record.headers, "warc-target-uri");
      redactor_.apply(url);
      redacted.left_out.push_back(std::move(url));
    }
    std::string text = head.first_line.empty() ? "" : head.first_line + "\r\n";
    for (auto& [name, value] : head.headers) {
      mark_field(base::lower_case(name), value);
      text += name + ": " + value + "\r\n";
    }
    if (!text.empty()) text += "\r\n";
    redactor_.apply(text, true);
    write(record, text, media, body, kept != Kept::whole);
  }

  Redacted redacted;

private:
  enum class Kept { whole, cut, nothing };

  // Marks cookies and credentials, which are secrets in any case.
  static void mark_field(const std::string& name, std::string& value) {
    const auto mark_part = [&](std::string_view part) {
      const auto begin = part.empty() ? 0 : static_cast<std::size_t>(part.data() - value.data());
      mark(value, begin, begin + part.size());
    };
    if (name == "set-cookie") mark_part(cookie_value(value));
    if (name == "authorization" || name == "proxy-authorization")
      mark_part(std::string_view(value).substr(std::min(value.find(' '), value.size())));
    for (std::size_t at = 0; name == "cookie" && at < value.size();) {
      const auto pair = std::string_view(value).substr(at, std::min(value.find(';', at), value.size()) - at);
      if (!pair.empty()) mark_part(cookie_value(pair));
      at += pair.size() + 1;
    }
  }

  // Undoes codings that secrets could hide in.
  Kept take_body(Reader& reader, const Record& record, Headers& headers, Spool& body) {
    const auto content = codings_of(headers, "content-encoding"), transfer = codings_of(headers, "transfer-encoding");
    const bool coded = !content.empty() || !transfer.empty(), whole = coded || record.type == "request";
    const auto put = [&](std::string_view bytes) { body.add(bytes); };
    Redactor::Stream stream(redactor_, record.type == "request");
    std::string all;
    reader.read_rest([&](std::string_view piece) {
      if (!whole)
        stream.add(piece, put);
      else if (all.size() <= kLargestCoded)
        all += piece;
    });
    bool cut = all.size() > kLargestCoded || reader.was_cut();
    bool hidden = all.size() > kLargestCoded; // in a coding that cannot be undone
    if (hidden) all.clear();
    if (coded && !all.empty()) {
      auto plain = decode_body(std::move(all), content + "," + transfer, kLargestCoded);
      cut = cut || !plain.whole;
      hidden = !plain.whole && plain.bytes.empty();
      all = std::move(plain.bytes);
    }
    for (auto& [name, value] : headers)
      if (const auto lowered = base::lower_case(name);
          coded && (lowered == "content-encoding" || lowered == "transfer-encoding" || lowered == "content-length"))
        name = "X-Archive-Orig-" + name;
    if (record.type == "request") mark_named(all, nullptr);
    stream.add(all, put);
    stream.add("", put, true);
    redacted.bodies = redacted.bodies || (record.type == "response" && stream.found().any);
    return hidden || stream.found().unsure ? Kept::nothing : cut ? Kept::cut : Kept::whole;
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

  const Redactor& redactor_;
  const int to_;
  const bool documents_;
  GzipMember member_{6};
  std::map<std::string, std::string> digests_; // of payloads, before and after
};

} // namespace

namespace {

template <typename Take>
void each_record(int from, std::uint64_t size, Take&& take) {
  Reader reader(from, 0, size);
  for (;;) {
    try {
      const auto record = reader.next();
      if (!record) return;
      take(reader, *record);
      reader.finish();
    } catch (const Damaged&) { // it goes on with the next one
    }
  }
}

} // namespace

void learn_secrets(int from, std::uint64_t size, Redactor& redactor) {
  each_record(from, size, [&](Reader& reader, const Record& record) {
    const auto head = reader.read_http_head();
    if (!head) return;
    for (const auto& [name, value] : head->headers)
      if (base::lower_case(name) == "set-cookie" && cookie_value(value).size() >= 8) redactor.add(cookie_value(value));
    const auto media = media_type(header_of(head->headers, "content-type"));
    const bool json = media == "application/json" || media.ends_with("+json");
    if (record.type != "response" || (!json && media != "text/html")) return;
    std::string body;
    reader.read_rest([&](std::string_view piece) {
      if (body.size() <= kLargestLearnt) body += piece;
    });
    const auto codings = codings_of(head->headers, "content-encoding");
    if (!codings.empty()) body = decode_body(std::move(body), codings, kLargestLearnt).bytes;
    if (!json)
      learn_page(body, redactor);
    else if (body.size() <= kLargestLearnt)
      learn(base::strange_json(body), redactor);
  });
}

Redacted redact(int from, std::uint64_t size, int to, const Redactor& redactor, bool documents) {
  Rewriter rewriter(redactor, to, documents);
  each_record(from, size, [&](Reader& reader, const Record& record) { rewriter.copy(reader, record); });
  return std::move(rewriter.redacted);
}

} // namespace holdfast::warc
