#include "lib/formats/list.hpp"

#include "lib/base/error.hpp"
#include "lib/base/inflater.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "lib/formats/rows.hpp"

#include <algorithm>

namespace holdfast::formats {

namespace {

constexpr std::size_t kMostUnpacked = std::size_t{256} << 20; // sitemaps may have 50 MB

struct Reader {
  std::string_view names;
  std::optional<List> (*read)(std::string_view text, bool asked);
};
constexpr Reader kReaders[] = {{" rss sitemap opml xbel xspf ", read_xml},
                               {" netscape html ", read_html},
                               {" json ", read_json},
                               {" csv ", read_csv},
                               {" m3u ", read_m3u},
                               {" txt jsonl ", read_lines}};

struct Binary {
  std::string_view begin, what, remedy;
};
constexpr Binary kBinaries[] = {
    {"PK\3\4", "a zip file", "unpack it, and give the files in it"},
    {"mozLz40", "a backup of Firefox in its own packing",
     "Firefox exports bookmarks as HTML, under Import and Backup in its library"},
    {"SQLite format 3", "a database of SQLite", "let the program that it belongs to export its bookmarks"},
    {"bplist00", "a binary property list", "\"plutil -convert xml1\" makes it readable"},
    {"%PDF-", "a PDF file", "\"pdftotext\" makes its text readable"}};

std::string gunzip(std::string_view packed) {
  const auto most = base::most_unpacked(packed.size(), kMostUnpacked);
  auto unpacked = base::unpack(base::Inflater(packed, base::kGzip), most);
  if (!unpacked.whole)
    throw base::Error(base::ErrorClass::refused,
                      unpacked.bytes.size() < most
                          ? "it is packed, and damaged or cut off"
                          : "it is packed, and unpacks to more than " + std::to_string(most >> 20) + " MiB");
  return std::move(unpacked.bytes);
}

// The text with its parts that mail was sent in (base64, quoted-printable) as they were before: of a message, a mailbox
// or a page that a browser saved as one file.
std::string without_transfer_encoding(std::string text) {
  constexpr std::string_view kCoding = "content-transfer-encoding:", kType = "content-type:";
  if (base::lower_case(text).find(kCoding) == std::string::npos) return text;
  std::string result, coding, type, body; // coding: of the part whose head or body is read
  bool inside = false;
  const auto end_part = [&] {
    if (inside) result += decode_page(coding == "base64" ? base::base64_decode(body) : quoted_printable(body), type);
    if (inside && !result.ends_with('\n')) result += '\n';
    body.clear();
    coding.clear();
    type.clear();
    inside = false;
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const auto line = std::string_view(text).substr(at, end - at);
    const auto lower = base::lower_case(base::trimmed(line));
    at = end;
    if (line.starts_with("--") || line.starts_with("From ")) end_part();
    if (inside) {
      body += line;
      continue;
    }
    result += line;
    if (lower.starts_with(kCoding)) coding = base::trimmed(std::string_view(lower).substr(kCoding.size()));
    if (lower.starts_with(kType)) type = lower.substr(kType.size());
    inside = lower.empty() && (coding == "base64" || coding == "quoted-printable");
  }
  end_part();
  return result;
}

// With the same end for each line, and the long lines of vCard and iCalendar, which go on behind a blank, in one.
std::string with_whole_lines(std::string text) {
  for (std::size_t at = text.find('\r'); at != std::string::npos; at = text.find('\r', at + 1))
    if (at + 1 == text.size() || text[at + 1] != '\n') text[at] = '\n';
  if (!base::lower_case(text.substr(0, 7)).starts_with("begin:v")) return text;
  std::string whole;
  for (const char c : text)
    if ((c == ' ' || c == '\t') && whole.ends_with('\n'))
      whole.erase(whole.size() - (whole.ends_with("\r\n") ? 2 : 1));
    else
      whole += c;
  return whole;
}

} // namespace

std::vector<std::string> parsers() {
  std::string names("auto pocket pinboard"); // may be any: the first reader that fits
  for (const auto& reader : kReaders)
    names += reader.names;
  return base::split(names, " ");
}

List read_list(std::string_view bytes, std::string_view parser) {
  std::string unpacked;
  if (bytes.starts_with("\x1f\x8b")) bytes = unpacked = gunzip(bytes);
  for (const auto& binary : kBinaries)
    if (bytes.starts_with(binary.begin))
      throw base::Error(base::ErrorClass::refused, "it is " + std::string(binary.what) + ", which cannot be read here",
                        std::string(binary.remedy));
  const auto text = with_whole_lines(without_transfer_encoding(decode_file(bytes)));
  if (text.substr(0, kSniffed).find('\0') != std::string::npos)
    throw base::Error(base::ErrorClass::refused, "not a text file",
                      "let the program that it belongs to export its URLs");
  const auto name = " " + std::string(parser) + " ";
  for (const auto& reader : kReaders)
    if (reader.names.find(name) != std::string_view::npos)
      if (auto list = reader.read(text, true)) return *std::move(list);
  for (const auto& reader : kReaders)
    if (auto list = reader.read(text, false)) return *std::move(list);
  return {};
}

namespace {

constexpr std::size_t kLongestDescription = 10000;
constexpr std::size_t kMostJoined = 16; // times the size of a page: what its base may add to its links

void trim_notes(std::string& notes) { notes = base::repair_utf8(base::trimmed(notes).substr(0, kLongestDescription)); }

// The folders of a bookmark file around a place in it: <H3> is the name of the <DL> that follows. The folders that each
// browser has by itself (its toolbar) are no tags.
class Folders {
public:
  void take(const Token& token) {
    const bool start = token.kind == Token::Kind::start;
    if (token.kind == Token::Kind::text) {
      if (naming_ && name_.size() < 4 * kLongestFolder) name_.append(token.text, 0, 4 * kLongestFolder);
    } else if (token.text == "h3") {
      naming_ = start && token.attribute("personal_toolbar_folder").empty() &&
                token.attribute("unfiled_bookmarks_folder").empty();
      if (start) name_.clear();
    } else if (token.text == "dl" && start) {
      open_.push_back(std::exchange(name_, ""));
    } else if (token.text == "dl" && !open_.empty()) {
      open_.pop_back();
    }
  }
  const std::vector<std::string>& open() const noexcept { return open_; } // may hold empty names

private:
  std::vector<std::string> open_;
  std::string name_;
  bool naming_{false};
};

} // namespace

// Links of an HTML page: bookmark files of browsers, HTML exports of Pocket and Pinboard, any saved page. Of a bookmark
// file, folders are tags, and a description (<DD>) is the notes of the bookmark before it; it may hold links, which are
// no bookmarks.
std::optional<List> read_html(std::string_view text, bool asked) {
  const auto start = base::lower_case(base::trimmed(text.substr(0, 4096)));
  const bool bookmarks = start.find("<!doctype netscape-bookmark-file") != std::string::npos;
  const bool document = bookmarks || start.find("<!doctype html") != std::string::npos ||
                        start.find("<html") != std::string::npos || start.starts_with("<meta");
  if (!asked && !document && (!start.starts_with("<") || text.find("](http") != std::string_view::npos))
    return std::nullopt;
  List list;
  Row row;
  std::string title, where, base;         // base: of links, in a saved page
  bool inside = false, described = false; // in a link; in a description
  bool fresh = false, noted = false;      // a bookmark has just ended; the description is its notes
  Folders folders;
  std::size_t line = 1, counted = 0, joined = 0;
  const auto end = [&] {
    if (std::exchange(inside, false)) {
      row.add("title", title);
      fresh = row.has_url();
      if (fresh) list.entries.push_back(row.entry(where));
    }
    row = {};
    title.clear();
  };
  scan_html(text, [&](const Token& token) {
    if (bookmarks) folders.take(token);
    if (token.kind == Token::Kind::text) {
      if (inside) title += token.text;
      if (noted) list.entries.back().notes += token.text;
      return true;
    }
    const auto& name = token.text;
    if (bookmarks && (name == "dd" || name == "dt" || name == "dl")) {
      end();
      if (noted) trim_notes(list.entries.back().notes);
      described = name == "dd" && token.kind == Token::Kind::start;
      noted = described && fresh;
      fresh = false;
    }
    if (name == "base" && base.empty())
      if (auto href = plain_link(token.attribute("href")); base::is_web_url(href)) base = std::move(href);
    if (name != "a") return true;
    end();
    if (token.kind != Token::Kind::start || described || token.attribute("href").starts_with('#')) return true;
    inside = true;
    const auto href = plain_link(token.attribute("href"));
    joined += base.size();
    row.add("href", base.empty() || joined > kMostJoined * text.size() ? href : join_url(base, href).value_or(href));
    for (const auto* time : {"add_date", "time_added"})
      row.add(time, token.attribute(time));
    row.add_tags(token.attribute("tags"));
    row.add_folders(folders.open());
    line += static_cast<std::size_t>(std::count(text.data() + counted, text.data() + token.at, '\n'));
    counted = token.at;
    where = "line " + std::to_string(line);
    return true;
  });
  end();
  if (noted) trim_notes(list.entries.back().notes);
  if (list.entries.empty() && !asked && !document) return std::nullopt;
  return list;
}

namespace {

// The number of lines that end with one of these marks.
std::ptrdiff_t ends_of_lines(std::string_view text, std::string_view marks) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1) {
    const auto line = base::trimmed(text.substr(at, text.find('\n', at) - at));
    count += !line.empty() && marks.find(line.back()) != marks.npos;
  }
  return count;
}

} // namespace

// A line gives what is in it: one URL or several, or a JSON object.
std::optional<List> read_lines(std::string_view text, bool) {
  List list;
  list.lines = true;
  const auto head = base::lower_case(base::trimmed(text.substr(0, kSniffed)));
  const bool shortcut = head.starts_with('[') && (head.find("[internetshortcut]") != head.npos || // .url of Windows
                                                  head.starts_with("[desktop entry]"));
  const bool separated = ends_of_lines(text, ",;") > 1; // the marks separate the lines
  for (std::size_t number = 1, at = 0; at < text.size(); ++number) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = base::trimmed(text.substr(at, end - at));
    at = end + 1;
    const auto where = std::to_string(number);
    if (shortcut && base::lower_case(line.substr(0, 4)) == "url=")
      list.entries.push_back({base::percent_encode(line.substr(4), [](char c) { return c != ' '; }), "", {}, where});
    if (line.empty() || shortcut) continue;
    const auto next = std::min(line.find_first_not_of(" \t", 1), line.size() - 1);
    if (line.front() == '{' && (line[next] == '"' || line[next] == '}' || next == 0)) {
      auto entries = read_json_line(line, where);
      if (entries.empty()) entries.push_back({"", "", {}, where, "", "not a JSON object with a \"url\""});
      std::move(entries.begin(), entries.end(), std::back_inserter(list.entries));
      continue;
    }
    if (is_bare_url(line) && !(separated && (line.ends_with(',') || line.ends_with(';')))) {
      list.entries.push_back({std::string(line), "", {}, where});
      continue;
    }
    if (const auto bar = line.find(" | "); bar != line.npos && is_bare_url(line.substr(0, bar))) { // OneTab
      list.entries.push_back({std::string(line.substr(0, bar)), std::string(line.substr(bar + 3)), {}, where});
      continue;
    }
    auto urls = urls_in(line);
    if (line.front() == '#' && line.find("](") == std::string_view::npos) { // not a heading with a link
      list.comments += urls.empty() ? 0 : 1;
      continue;
    }
    if (!urls.empty() && (urls.size() > 1 || urls.front().size() < line.size())) ++list.prose;
    if (urls.empty()) urls.emplace_back(line); // to be refused, with the reason
    for (auto& url : urls)
      list.entries.push_back({std::move(url), "", {}, where});
  }
  return list;
}

} // namespace holdfast::formats
