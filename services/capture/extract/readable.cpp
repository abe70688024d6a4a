#include "services/capture/extract/readable.hpp"

#include "lib/base/text/text.hpp"
#include "lib/formats/html.hpp"
#include "services/capture/hook.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace holdfast::capture {

namespace {

using Names = std::set<std::string_view>;

const Names kNever{"script", "style",  "template", "noscript", "svg",   "head",
                   "select", "button", "textarea", "iframe",   "object"};
const Names kSurroundings{"nav", "footer", "aside", "dialog", "menu"};
const Names kMain{"article", "main"};
const Names kBlocks{"h1",  "h2",         "h3", "h4", "h5", "h6", "p",          "li",     "tr",
                    "pre", "blockquote", "dt", "dd", "td", "th", "figcaption", "caption"};
const Names kOtherBreaks{"address", "body", "center", "details", "div",     "dl",      "fieldset", "figure", "form",
                         "header",  "hr",   "ol",     "option",  "section", "summary", "table",    "tbody",  "ul"};
constexpr std::size_t kMostBlocks = 100'000;
constexpr std::size_t kLongestTitle = 1000;
constexpr std::size_t kEnoughMain = 200; // characters: less is not the page

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const auto begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char letter) { return (static_cast<unsigned char>(letter) & 0xC0) != 0x80; }));
}

// Counts, not a stack: a page may open a hundred thousand elements and close them in any order.
class Splitter {
public:
  std::vector<Block> split(const std::string& html) {
    begin("p");
    formats::scan_html(html, [this](const formats::Token& token) { return take(token); });
    end_block();
    return std::move(found_);
  }
  // Several articles and no main element: none of them is the page, as comments below a post.
  bool is_list() const { return articles_ > 1 && !has_main_; }

private:
  void begin(std::string_view tag) { current_ = Block{std::string(tag), "", main_ > 0, surroundings_ > 0, frame_ > 0}; }
  void end_block() {
    if (current_.size > 0) found_.push_back(std::move(current_));
    current_.size = 0;
  }
  void take_text(const std::string& text) {
    if (never_ > 0) return;
    const auto size = characters(trimmed(text, " \t\r\n\f\v"));
    current_.pieces += text;
    current_.size += size;
    if (anchor_ > 0) current_.linked += size;
  }
  // Counts how deep the page is inside the elements of a kind.
  void count(std::string_view name, bool start) {
    int& depth = depth_[name];
    const int before = depth;
    depth = std::max(0, depth + (start ? 1 : -1));
    if ((name == "head" || name == "a") && depth > 1) depth = 1; // neither nests
    const int change = depth - before;
    if (kNever.contains(name)) never_ += change;
    if (kSurroundings.contains(name)) surroundings_ += change;
    if (name == "nav" || name == "footer") frame_ += change;
    if (name == "article" && main_ == 0 && change > 0) ++articles_;
    if (name == "main") has_main_ = true;
    if (kMain.contains(name)) main_ += change;
    if (name == "a") anchor_ += change;
    if (name == "pre") pre_ += change;
  }
  bool take(const formats::Token& token) {
    if (token.kind == formats::Token::Kind::text) {
      take_text(token.text);
      return true;
    }
    const std::string_view name = token.text;
    const bool start = token.kind == formats::Token::Kind::start;
    const bool counted =
        kNever.contains(name) || kSurroundings.contains(name) || kMain.contains(name) || name == "a" || name == "pre";
    const bool cell = current_.tag == "tr" && (name == "td" || name == "th");
    const bool breaks = !cell && (kBlocks.contains(name) || kSurroundings.contains(name) || kMain.contains(name) ||
                                  kOtherBreaks.contains(name));
    if (name == "br")
      current_.pieces += '\n';
    else if (cell && start)
      current_.cells.push_back(current_.pieces.size());
    else if (breaks)
      end_block();
    if (found_.size() >= kMostBlocks) return false;
    const bool question = name == "button" && start && (current_.tag[0] == 'h' || current_.tag == "dt");
    if (counted && !question) count(*own_names_.insert(token.text).first, start);
    if (name == "body" && depth_["head"] > 0) { // its end tag may be left out
      never_ -= depth_["head"];
      depth_["head"] = 0;
    }
    if (breaks) begin(start && kBlocks.contains(name) ? name : pre_ > 0 ? "pre" : "p");
    return true;
  }

  std::vector<Block> found_;
  Block current_;
  std::set<std::string> own_names_; // what depth_ points to
  std::map<std::string_view, int> depth_;
  int never_{0}, surroundings_{0}, frame_{0}, main_{0}, anchor_{0}, pre_{0}, articles_{0};
  bool has_main_{false};
};

std::string without_breaks(std::string_view text) {
  std::string result;
  bool blank = false;
  for (const char letter : text) {
    if (letter == ' ' || (letter >= '\t' && letter <= '\r')) {
      blank = !result.empty();
      continue;
    }
    if (blank) result += ' ';
    blank = false;
    result += letter;
  }
  return result;
}

// The element around blocks of a kind; empty: they stand alone.
std::string_view group_of(const Block& block) { return block.tag == "li" ? "ul" : block.tag == "tr" ? "table" : ""; }

bool is_heading(const Block& block) { return block.tag[0] == 'h'; }

bool is_menu(const Block& block) {
  return !is_heading(block) && block.size < 400 &&
         static_cast<double>(block.linked) > 0.7 * static_cast<double>(block.size);
}

// Returns the readable blocks, and the others that have words of the page.
std::pair<std::vector<Block>, std::vector<Block>> split_page(const std::string& html) {
  Splitter splitter;
  auto found = splitter.split(html);
  std::vector<Block> beside;
  std::vector<Block> in_main;
  std::size_t size = 0, rest = 0;
  for (const auto& block : found)
    if (block.in_main) {
      in_main.push_back(block);
      size += block.size;
    } else if (!block.in_surroundings && !is_menu(block)) {
      rest += block.size;
    }
  // A single element does not count against most of the page.
  const bool only_main = size >= kEnoughMain && size >= rest / 3 && !splitter.is_list();
  std::vector<Block> worth;
  for (const auto& block : found) {
    const bool chosen = !only_main || block.in_main;
    if (chosen && !block.in_surroundings && !is_menu(block))
      worth.push_back(block);
    else if (!block.in_frame || block.tag == "h1")
      beside.push_back(block);
  }
  if (!std::all_of(worth.begin(), worth.end(), is_heading)) return {worth, beside};
  return {only_main ? in_main : found, {}};
}

} // namespace

std::string Block::text() const {
  if (tag == "pre") return std::string(trimmed(pieces, "\r\n"));
  return base::join(row(), "\t");
}

std::vector<std::string> Block::row() const {
  std::vector<std::string> texts;
  std::size_t begin = 0; // text in front of the first cell belongs to it
  for (std::size_t i = 1; i < cells.size(); begin = cells[i++])
    texts.push_back(without_breaks(std::string_view(pieces).substr(begin, cells[i] - begin)));
  texts.push_back(without_breaks(std::string_view(pieces).substr(begin)));
  return texts;
}

std::vector<Block> readable_blocks(const std::string& html) { return split_page(html).first; }
std::vector<Block> blocks_beside(const std::string& html) { return split_page(html).second; }

std::string blocks_as_text(const std::vector<Block>& blocks) {
  std::string text;
  bool in_table = false;
  for (const auto& block : blocks) {
    const bool row = block.tag == "tr";
    if (!text.empty()) text += in_table && row ? "\n" : "\n\n";
    text += (block.tag == "li" ? "- " : "") + block.text();
    in_table = row;
  }
  return text + "\n";
}

std::string blocks_as_html(const std::vector<Block>& blocks, const std::string& title, const std::string& url) {
  std::string html = "<!doctype html>\n<html><head><meta charset=\"utf-8\">\n<title>" + formats::escape_html(title) +
                     "</title>\n<style>body{max-width:40em;margin:2em auto;padding:0 1em;font:18px/1.6 serif}"
                     "pre{overflow:auto}td{padding-right:1em;vertical-align:top}</style>\n</head><body><p><small>" +
                     formats::escape_html(url) + "</small></p>\n";
  const auto element = [&](const std::string& tag, const std::string& text) {
    html += "<" + tag + ">" + formats::escape_html(text) + "</" + tag + ">";
  };
  std::string group;
  const auto enter = [&](std::string_view next) {
    if (group == next) return;
    if (!group.empty()) html += "</" + group + ">\n";
    group = next;
    if (!group.empty()) html += "<" + group + ">\n";
  };
  for (const auto& block : blocks) {
    enter(group_of(block));
    if (block.tag == "tr") {
      html += "<tr>";
      for (const auto& cell : block.row())
        element("td", cell);
      html += "</tr>\n";
      continue;
    }
    const bool own = is_heading(block) || block.tag == "li" || block.tag == "pre" || block.tag == "blockquote";
    element(own ? block.tag : "p", block.text());
    html += "\n";
  }
  enter("");
  return html + "</body></html>\n";
}

std::string title_of(const std::string& html) {
  int drawings = 0;
  bool inside = false;
  std::string title;
  formats::scan_html(html, [&](const formats::Token& token) {
    const bool start = token.kind == formats::Token::Kind::start;
    if (token.kind == formats::Token::Kind::text) {
      if (inside && token.text.find_first_not_of(" \t\r\n\f") != std::string::npos)
        title = one_line(token.text, kLongestTitle);
      return title.empty();
    }
    if (token.text == "svg")
      drawings = std::max(0, drawings + (start ? 1 : -1));
    else
      inside = start && token.text == "title" && drawings == 0;
    return true;
  });
  return title;
}

} // namespace holdfast::capture
