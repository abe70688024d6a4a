#include "services/capture/extract/blocks.hpp"

#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "services/capture/extract/doubt.hpp"
#include "services/capture/hook.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::size_t kMostLines = 20'000, kMostLineBytes = 2u << 20, kDeepestBlock = 64, kMostBlockLinks = 5'000;

const std::set<std::string_view> kWithinText{
    "a",     "abbr", "acronym", "b",   "bdi", "bdo",   "big",    "cite", "code", "data", "del",  "dfn",  "em",
    "font",  "i",    "img",     "ins", "kbd", "label", "mark",   "q",    "rp",   "rt",   "ruby", "s",    "samp",
    "small", "span", "strike",  "sub", "sup", "time",  "strong", "tt",   "u",    "var",  "wbr",  "area", "svg"};
const std::set<std::string_view> kWithoutWords{"script", "style", "template", "noscript", "head", "object", "textarea"};
const std::set<std::string_view> kWithoutEnd{"area", "base", "br",    "col",    "embed", "hr",  "img",
                                             "link", "meta", "param", "source", "track", "wbr", "input"};

class Lines {
public:
  void head(const Page& page, const std::string& title) {
    const bool browser = page.source == "read" || page.source == "dom" || page.source == "tab";
    add({{"source", browser ? "browser" : "file"}, {"url", clean(page.url)}, {"title", clean(title)}});
  }
  // Returns false if there is no room for more.
  bool block(const std::string& at, const std::string& text, const std::vector<std::string>& links) {
    Json line = {{"at", at}, {"text", text}};
    if (!links.empty()) line["links"] = links;
    if (announces_more(text)) line["pending"] = true;
    add(line);
    return ++count_ < kMostLines && lines_.size() < kMostLineBytes;
  }
  std::string take() { return count_ == 0 ? std::string() : std::move(lines_); }

private:
  void add(const Json& line) { lines_ += json_text(line) + "\n"; }
  std::string lines_;
  std::size_t count_{0};
};

// Follows the elements of a text, of which only so many may be open.
class BlockReader {
public:
  BlockReader(Lines& lines, const std::string& url) : lines_(lines), url_(url) {}
  void split(const std::string& html) {
    formats::scan_html(html, [this](const formats::Token& token) { return take(token); });
    end();
  }

private:
  bool take(const formats::Token& token) {
    if (token.kind == formats::Token::Kind::text) {
      if (silent_ == 0) text_ += token.text;
      return room_;
    }
    const auto& name = token.text;
    if (!kWithinText.contains(name)) end();
    if (token.kind == formats::Token::Kind::end)
      close(name);
    else
      open(token);
    return room_;
  }
  void open(const formats::Token& token) {
    if (token.text == "a" && token.has("href") && silent_ == 0 && count_ < kMostBlockLinks) {
      const auto link = formats::absolute_link(url_, token.attribute("href"));
      if (link && ++count_ > 0) links_.push_back(clean(*link));
    }
    if (kWithoutEnd.contains(token.text) || open_.size() >= kDeepestBlock) return;
    open_.push_back(token.text);
    if (kWithoutWords.contains(token.text)) ++silent_;
  }
  void close(const std::string& name) {
    const auto found = std::find(open_.rbegin(), open_.rend(), name);
    if (found == open_.rend()) return;
    for (auto left = found - open_.rbegin() + 1; left > 0; --left) {
      if (kWithoutWords.contains(open_.back())) --silent_;
      open_.pop_back();
    }
  }
  std::string place() const {
    std::string at;
    for (const auto& name : open_)
      if (name != "html" && name != "body" && !kWithinText.contains(name)) at += (at.empty() ? "" : "/") + clean(name);
    return at.size() > 300 ? at.substr(at.size() - 300) : at;
  }
  void end() {
    auto text = one_line(clean(std::exchange(text_, {})), kMostLineBytes);
    if (text.empty() && links_.empty()) return;
    room_ = lines_.block(place(), text, std::exchange(links_, {}));
  }

  Lines& lines_;
  const std::string& url_;
  std::vector<std::string> open_, links_;
  std::string text_;
  std::size_t count_{0};
  int silent_{0};
  bool room_{true};
};

} // namespace

std::string page_blocks(const Page& page, const std::vector<Block>& document) {
  Lines lines;
  const auto text = page.text();
  const auto type = page.type();
  if (page.is_plain_text()) {
    lines.head(page, "");
    for (const auto& line : base::split(text, "\n"))
      if (const auto words = one_line(clean(line), kMostLineBytes); !words.empty() && !lines.block("line", words, {}))
        break;
  } else if (page.is_html() || type.ends_with("xml")) {
    lines.head(page, title_of(text));
    BlockReader(lines, page.url).split(page.is_html() ? text : formats::xml_as_html(text));
  } else {
    lines.head(page, "");
    for (const auto& block : document)
      if (const auto words = one_line(block.text(), kMostLineBytes);
          !words.empty() && !lines.block(block.tag, words, {}))
        break;
  }
  return lines.take();
}

} // namespace holdfast::capture
