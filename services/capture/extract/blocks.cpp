#include "services/capture/extract/blocks.hpp"

#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "services/capture/extract/doubt.hpp"
#include "services/capture/hook.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr std::size_t kMostLines = 20'000, kMostLineBytes = 2u << 20, kDeepestBlock = 64, kMostBlockLinks = 5'000;

const std::set<std::string_view> kWithinText{"a",      "abbr", "acronym", "b",    "bdi",    "bdo",  "big", "cite",
                                             "code",   "data", "del",     "dfn",  "em",     "font", "i",   "img",
                                             "ins",    "kbd",  "label",   "mark", "q",      "rp",   "rt",  "ruby",
                                             "s",      "samp", "small",   "span", "strike", "sub",  "sup", "time",
                                             "strong", "tt",   "u",       "var",  "wbr",    "area", "svg", "input"};
const std::set<std::string_view> kStruck{"del", "s", "strike"};
const std::set<std::string_view> kWithoutWords{"script", "style", "template", "noscript", "head", "object", "textarea"};
const std::set<std::string_view> kWithoutEnd{"area", "base", "br",    "col",    "embed", "hr",  "img",
                                             "link", "meta", "param", "source", "track", "wbr", "input"};

// Removes what the patterns match. They see a part of a long text at a time, because std::regex recurses.
std::string without(std::string text, const std::vector<std::regex>& patterns) {
  constexpr std::size_t kPiece = 2000;
  for (const auto& pattern : patterns) {
    std::string left;
    for (std::size_t at = 0; at < text.size(); at += kPiece)
      left += std::regex_replace(text.substr(at, kPiece), pattern, "");
    text = std::move(left);
  }
  return text;
}

// Returns what a reader sees of an element beside its text, as text: whether it is struck through, chosen or disabled,
// and what a field shows.
constexpr std::string_view kStruckMark = "~~";
std::string state_of(const formats::Token& token) {
  static const std::set<std::string> kUnseen{"hidden", "password", "file", "image"};
  if (kStruck.contains(token.text)) return std::string(kStruckMark);
  if (token.text == "option") return token.has("selected") ? "☑ " : "";
  const std::string disabled = token.has("disabled") ? "⊘ " : "";
  if (token.text != "input") return disabled;
  const auto type = lower_case(token.attribute("type"));
  if (type == "checkbox" || type == "radio") return disabled + (token.has("checked") ? "☑ " : "☐ ");
  return kUnseen.contains(type) ? "" : disabled + token.attribute("value") + " ";
}

class Lines {
public:
  void head(const Page& page, const std::string& title, const std::string& choice) {
    const bool browser = page.source == "read" || page.source == "dom" || page.source == "tab";
    Json line = {{"source", browser ? "browser" : "file"}, {"url", clean(page.url)}, {"title", clean(title)}};
    if (!choice.empty()) {
      line["choice"] = clean(choice);
      ++count_; // also of a choice that finds nothing
    }
    add(line);
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
  BlockReader(Lines& lines, const std::string& url, const Choice& choice)
      : lines_(lines), url_(url), choice_(choice), chosen_(choice.selected.empty() ? 1 : 0) {}
  void split(const std::string& html) {
    formats::scan_html(html, [this](const formats::Token& token) { return take(token); });
    end();
  }

private:
  bool take(const formats::Token& token) {
    if (token.kind == formats::Token::Kind::text) {
      if (counts()) text_ += token.text;
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
  bool counts() const { return silent_ == 0 && chosen_ > 0; }
  // Marks of an element: what its end takes back.
  struct Marks {
    bool chosen{false}, ignored{false};
  };
  void choose(const formats::Token& token) {
    if (choice_.selected.empty() && choice_.ignored.empty()) return;
    const auto any = [this](const auto& selectors) {
      return std::any_of(selectors.begin(), selectors.end(), [this](const auto& one) { return one.selects(path_); });
    };
    path_.push_back(formats::element_of(token));
    marks_.push_back({any(choice_.selected), any(choice_.ignored)});
    if (!marks_.back().chosen && !marks_.back().ignored) return;
    end();
    chosen_ += marks_.back().chosen ? 1 : 0;
    silent_ += marks_.back().ignored ? 1 : 0;
  }
  void leave() {
    if (marks_.empty()) return;
    if (marks_.back().chosen || marks_.back().ignored) end();
    chosen_ -= marks_.back().chosen ? 1 : 0;
    silent_ -= marks_.back().ignored ? 1 : 0;
    marks_.pop_back();
    path_.pop_back();
  }
  void open(const formats::Token& token) {
    if (!kWithoutEnd.contains(token.text) && open_.size() < kDeepestBlock) choose(token);
    if (token.text == "a" && token.has("href") && counts() && count_ < kMostBlockLinks) {
      const auto link = formats::absolute_link(url_, token.attribute("href"));
      const auto given = lower_case(token.attribute("href"));
      const bool contact = given.starts_with("mailto:") || given.starts_with("tel:");
      if ((link || contact) && ++count_ > 0) links_.push_back(clean(link.value_or(given)));
    }
    if (counts()) text_ += state_of(token);
    if (kWithoutEnd.contains(token.text) || open_.size() >= kDeepestBlock) return;
    open_.push_back(token.text);
    if (kWithoutWords.contains(token.text)) ++silent_;
  }
  void close(const std::string& name) {
    const auto found = std::find(open_.rbegin(), open_.rend(), name);
    if (found == open_.rend()) return;
    for (auto left = found - open_.rbegin() + 1; left > 0; --left) {
      leave();
      if (kStruck.contains(open_.back()) && counts()) text_ += kStruckMark;
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
    auto text = one_line(clean(without(std::exchange(text_, {}), choice_.removed)), kMostLineBytes);
    if (text.empty() && links_.empty()) return;
    room_ = lines_.block(place(), text, std::exchange(links_, {}));
  }

  Lines& lines_;
  const std::string& url_;
  const Choice& choice_;
  int chosen_;                         // open elements that are selected; 1 and more without a selector
  std::vector<formats::Element> path_; // with a choice: the elements of open_
  std::vector<Marks> marks_;
  std::vector<std::string> open_, links_;
  std::string text_;
  std::size_t count_{0};
  int silent_{0};
  bool room_{true};
};

} // namespace

std::string page_blocks(const Page& page, const std::vector<Block>& document, const Choice& choice) {
  Lines lines;
  const auto text = page.text();
  const auto type = page.type();
  if (page.is_plain_text()) {
    lines.head(page, "", choice.name);
    for (const auto& line : base::split(text, "\n"))
      if (const auto words = one_line(clean(without(line, choice.removed)), kMostLineBytes);
          !words.empty() && !lines.block("line", words, {}))
        break;
  } else if (page.is_html() || type.ends_with("xml")) {
    lines.head(page, title_of(text), choice.name);
    BlockReader(lines, page.url, choice).split(page.is_html() ? text : formats::xml_as_html(text));
  } else {
    lines.head(page, "", choice.name);
    for (const auto& block : document)
      if (const auto words = one_line(without(block.text(), choice.removed), kMostLineBytes);
          !words.empty() && !lines.block(block.tag, words, {}))
        break;
  }
  return lines.take();
}

namespace {

// Returns the first number of a text as JSON writes it: "1.299,00" and "1,299.00" are 1299.00. One separator with three
// digits after it is one of thousands. Empty: there is none.
std::string number_in(const std::string& text) {
  static const std::regex pattern(
      "(-?)([0-9]{1,3}(?:(?: |\xC2\xA0|')[0-9]{3})+(?![0-9])(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)*)");
  std::smatch found;
  if (!std::regex_search(text, found, pattern)) return "";
  auto digits = found[2].str();
  const auto last = digits.find_last_of(".,");
  const auto same = last == std::string::npos ? 0 : std::count(digits.begin(), digits.end(), digits[last]);
  const bool other = last != std::string::npos && digits.find(digits[last] == '.' ? ',' : '.') != std::string::npos;
  const bool decimal =
      last != std::string::npos && same == 1 && (other || digits.size() - last != 4 || digits[0] == '0');
  std::string number;
  for (std::size_t i = 0; i < digits.size(); ++i)
    if (std::isdigit(static_cast<unsigned char>(digits[i])) != 0)
      number += digits[i];
    else if (decimal && i == last)
      number += '.';
  number.erase(0, std::min(number.find_first_not_of('0'), number.size()));
  if (number.empty() || number[0] == '.') number.insert(0, "0");
  return found[1].str() + number.substr(0, 30);
}

bool has_words(const std::string& text, const std::string& words) {
  const auto part_of_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || (text[at] & 0x80) != 0);
  };
  for (auto at = text.find(words); !words.empty() && at != std::string::npos; at = text.find(words, at + 1))
    if ((at == 0 || !part_of_word(at - 1)) && !part_of_word(at + words.size())) return true;
  return false;
}

std::vector<std::string> list_setting(const char* name) {
  const auto json = Json::parse(Job::setting(name, "[]"), nullptr, false);
  std::vector<std::string> list;
  for (const auto& one : json)
    if (one.is_string()) list.push_back(one);
  return list;
}

} // namespace

Choice Choice::from_settings() {
  Choice choice;
  const auto select = Job::setting("TEXT_SELECT");
  const auto ignore = list_setting("TEXT_IGNORE");
  try {
    if (!select.empty()) choice.selected.emplace_back(select);
    for (const auto& one : ignore)
      if (one.size() > 2 && one.starts_with("/") && one.ends_with("/"))
        choice.removed.emplace_back(one.substr(1, one.size() - 2), std::regex::ECMAScript);
      else
        choice.ignored.emplace_back(one);
  } catch (const std::exception& error) {
    throw failed(std::string("TEXT_SELECT or TEXT_IGNORE: ") + error.what());
  }
  choice.find = list_setting("TEXT_FIND");
  if (!select.empty() || !ignore.empty()) choice.name = json_text({select, ignore});
  return choice;
}

Json facts_of(const std::string& blocks, const Choice& choice) {
  constexpr std::size_t kMostSelected = 300;
  if (choice.selected.empty() && choice.find.empty()) return nullptr;
  std::string text;
  for (const auto& line : base::split(blocks, "\n"))
    if (const auto json = Json::parse(line, nullptr, false); json.contains("text"))
      text += (text.empty() ? "" : " ") + json["text"].get<std::string>();
  Json facts = {{"type", "Facts"}};
  if (!choice.selected.empty()) {
    facts["selected"] = one_line(text, kMostSelected);
    const auto number = Json::parse(number_in(text.substr(0, kMostSelected)), nullptr, false);
    if (number.is_number() && std::abs(number.get<double>()) < 1e15) facts["number"] = number;
  }
  const auto lower = base::lower_case(text);
  if (!choice.find.empty()) facts["found"] = Json::array();
  for (const auto& words : choice.find)
    if (has_words(lower, base::lower_case(words))) facts["found"].push_back(words);
  return facts;
}

} // namespace holdfast::capture
