// The document of a saved page, written again token by token: what may act is left out, addresses lead to records.
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "lib/formats/saved_page.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::formats {

namespace {

constexpr std::size_t kMostFrames = 40, kLongestList = 64u << 10;
constexpr int kDeepestFrame = 5;

bool has_word(std::string_view text, std::size_t at, std::string_view word) {
  return at + word.size() <= text.size() && base::lower_case(text.substr(at, word.size())) == word;
}

bool is_one_of(std::string_view list, const std::string& word) {
  return list.find(" " + word + " ") != std::string_view::npos;
}

std::string record_href(std::string_view written, const std::string& base, std::string_view to) {
  const auto link = plain_link(written);
  if (link.starts_with('#') || has_word(link, 0, "data:"))
    return base::percent_encode(link, [](char c) { return c != '"' && c != '\n'; });
  const auto url = has_word(link, 0, "cid:") ? link : join_url(base, link).value_or("");
  if (url.empty()) return "data:,";
  const auto hash = std::min(url.find('#'), url.size());
  return std::string(to) + base::percent_encode(url.substr(0, hash), "") +
         base::percent_encode(url.substr(hash), "#/!=&;:,");
}

// Writes one document, and those in its frames.
class StillWriter {
public:
  StillWriter(const SavedPage& page, StillPage& still) : still_(still) {
    for (const auto& part : page.parts)
      for (const auto& address : {part.id, part.url})
        if (!address.empty()) parts_.emplace(address, &part);
  }

  std::string document(const std::string& html, std::string base, int depth) {
    std::string out = "\xEF\xBB\xBF";
    constexpr std::size_t kDoctypeIn = 4096;
    const auto head = std::string_view(html).substr(0, kDoctypeIn);
    if (const auto at = base::lower_case(head).find("<!doctype"); at != std::string::npos)
      if (const auto end = head.find_first_of("<>", at + 1); end != std::string_view::npos && head[end] == '>')
        out += head.substr(at, end + 1 - at);
    bool based = false;
    std::string dropped, raw; // names of elements: within which nothing is kept; whose content is not markup
    scan_html(html, [&](const Token& token) {
      if (!dropped.empty()) {
        if (token.kind == Token::Kind::end && token.text == dropped) dropped.clear();
      } else if (token.kind == Token::Kind::text) {
        out += raw == "style" ? style(token.text, base) : escape_html(token.text);
      } else if (!is_name(token.text)) {
        return true;
      } else if (token.kind == Token::Kind::end) {
        if (!is_one_of(kGone, token.text)) out += "</" + token.text + ">";
        raw.clear();
      } else if (token.text == "base") {
        if (token.has("href") && !std::exchange(based, true)) // the first counts
          base = join_url(base, plain_link(token.attribute("href"))).value_or(base);
      } else if (is_one_of(kDropped, token.text)) {
        dropped = token.text;
      } else if (!is_one_of(kGone, token.text)) {
        start(token, base, depth, out);
        raw = token.text;
      }
      return true;
    });
    return out;
  }

private:
  // Elements of which nothing stays, and those whose content does.
  static constexpr std::string_view kDropped = " script noscript noframes noembed xmp applet ",
                                    kGone = " base object embed portal fencedframe plaintext ";

  static bool is_name(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) {
      return base::is_alpha(c) || base::is_digit(c) || std::string_view("-_:.").find(c) != std::string_view::npos;
    });
  }

  // Within SVG, a browser reads tags in a style element.
  static std::string style(const std::string& css, const std::string& base) {
    const auto text = with_records(css, base, "r/");
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char next = at + 1 < text.size() ? text[at + 1] : '\0';
      const bool tag =
          text[at] == '<' && (base::is_alpha(next) || std::string_view("/!?").find(next) != std::string_view::npos);
      tag ? void(out += "\\3c ") : out.push_back(text[at]);
    }
    return out;
  }

  static bool shows_more(const std::string& rel) {
    return is_one_of(" stylesheet icon ", rel) || rel == "alternate stylesheet" || rel == "shortcut icon" ||
           rel == "apple-touch-icon";
  }

  void start(const Token& token, const std::string& base, int depth, std::string& out) {
    const auto& name = token.text;
    if (name == "meta" && (token.has("http-equiv") || token.has("charset"))) return;
    const auto rel = base::lower_case(base::trimmed(token.attribute("rel")));
    if (name == "link" && !shows_more(rel)) return;
    const bool frame = name == "iframe" || name == "frame";
    out += "<" + name;
    const auto put = [&](std::string_view key, std::string_view value) {
      out.append(" ").append(key).append("=\"").append(escape_html(value)).append("\"");
    };
    for (const auto& [key, value] : token.attributes) {
      if (!is_name(key) || key.starts_with("on") || is_one_of(kNoAttributes, key)) continue;
      if (key == "srcset") {
        if (const auto url = candidate(value, base); !url.empty()) put(key, "r/" + base::percent_encode(url, ""));
        continue;
      }
      if ((frame && (key == "src" || key == "srcdoc")) || (key == "rel" && name != "link")) continue;
      const bool link = key == "href" || key == "xlink:href";
      if (key == "style")
        put(key, with_records(value, base, "r/"));
      else if (link && (name == "a" || name == "area"))
        outside(value, base, put);
      else if (key == "src" || key == "poster" || key == "background" || link)
        put(key, record_href(value, base, "r/"));
      else
        put(key == "shadowmode" ? "shadowrootmode" : key, value); // as Chromium writes it
    }
    if (frame)
      if (const auto shown = frame_of(token, base, depth); !shown.empty()) put("src", shown);
    out += token.self_closed ? "/>" : ">";
  }

  template <typename Put>
  static void outside(const std::string& written, const std::string& base, const Put& put) {
    const auto link = plain_link(written);
    if (link.starts_with('#')) return put("href", link);
    const auto url = join_url(base, link).value_or("");
    if (!base::is_web_url(url) && !url.starts_with("mailto:")) return;
    put("href", url);
    put("target", "_blank");
    put("rel", "noreferrer");
  }

  // The first of the candidates that the file holds; empty: none.
  std::string candidate(const std::string& list, const std::string& base) const {
    for (const auto& one : base::split(list.substr(0, kLongestList), ",")) {
      const auto url = join_url(base, one.substr(0, one.find_first_of(" \t\r\n"))).value_or("");
      if (parts_.contains(url)) return url;
    }
    return {};
  }

  std::string frame_of(const Token& token, const std::string& base, int depth) {
    if (depth == kDeepestFrame || still_.frames.size() == kMostFrames) return {};
    std::string html, url = base;
    if (token.has("srcdoc")) {
      html = token.attribute("srcdoc");
    } else {
      const auto link = plain_link(token.attribute("src"));
      const auto found = parts_.find(has_word(link, 0, "cid:") ? link : join_url(base, link).value_or(""));
      if (found == parts_.end() || base::lower_case(found->second->type).find("html") == std::string::npos) return {};
      const auto& part = *found->second;
      html = decode_page(part.body, part.type);
      if (base::is_web_url(part.url)) url = part.url;
    }
    const auto number = still_.frames.size();
    still_.frames.emplace_back();
    auto written = document(html, url, depth + 1);
    still_.frames[number] = std::move(written);
    return "frame-" + std::to_string(number + 1) + ".html";
  }

  static constexpr std::string_view kNoAttributes =
      " integrity crossorigin nonce ping sandbox autofocus loading action formaction imagesrcset "
      "target manifest ";

  StillPage& still_;
  std::map<std::string, const SavedPart*, std::less<>> parts_;
};

} // namespace

StillPage still_page(const SavedPage& page) {
  StillPage still;
  const auto& document = page.parts.front();
  still.html = StillWriter(page, still).document(decode_page(document.body, document.type), page.url, 0);
  return still;
}

std::string with_records(std::string_view css, const std::string& base, std::string_view to) {
  std::string out;
  std::size_t done = 0;
  // Replaces what stands in [begin, end) by an address in quotes.
  const auto replace = [&](std::size_t begin, std::size_t end, std::string_view written) {
    out.append(css, done, begin - done).append("\"").append(record_href(written, base, to)).append("\"");
    done = end;
  };
  for (std::size_t at = 0; at < css.size();) {
    if (css.substr(at).starts_with("/*")) {
      at = std::min(css.find("*/", at + 2), css.size());
    } else if (has_word(css, at, "url(") || has_word(css, at, "@import")) {
      const bool function = css[at] != '@';
      const auto begin = std::min(css.find_first_not_of(" \t\r\n\f", at + (function ? 4 : 7)), css.size());
      at = begin;
      if (begin == css.size()) break;
      const char quote = css[begin];
      if (quote == '"' || quote == '\'') {
        const auto end = std::min(css.find(quote, begin + 1), css.size());
        replace(begin, std::min(end + 1, css.size()), css.substr(begin + 1, end - begin - 1));
        at = std::min(end + 1, css.size());
      } else if (function) {
        const auto end = std::min(css.find_first_of(") \t\r\n\f", begin), css.size());
        replace(begin, end, css.substr(begin, end - begin));
        at = end;
      }
    } else {
      ++at;
    }
  }
  return out.append(css, done, css.size() - done);
}

} // namespace holdfast::formats
