#include "services/webhook/notice.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/html/template.hpp"
#include "services/webhook/embedded.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace holdfast::webhook {

namespace {

using Json = nlohmann::json;
using change::Piece;

constexpr std::size_t kMostWords = 20'000; // bytes, of what has changed

// Text of a page in a line of its own: hostile, so without control characters.
std::string line_of(const Json& data, const char* name) {
  constexpr std::size_t kMost = 2000;
  return data.contains(name) && data[name].is_string() ? base::one_line(data[name].get<std::string>(), kMost) : "";
}

std::string text_of(const Json& data, const std::string& page, const change::Difference& difference) {
  std::string text;
  const auto said = data.value("said", std::vector<std::string>());
  for (const auto& one : said)
    text += base::one_line(one, 2000) + "\n";
  text += "\n" + line_of(data, "title") + "\n" + line_of(data, "url") + "\n";
  if (data.contains("selected_before"))
    text += "\nbefore: " + line_of(data, "selected_before") + "\nnow:    " + line_of(data, "selected") + "\n";
  auto words = change::to_text(difference, &change::word_mark);
  if (words.size() > kMostWords) words = base::repair_utf8(words.substr(0, words.rfind('\n', kMostWords))) + "\n...\n";
  if (!words.empty()) text += "\n" + words;
  for (const auto& entry : data.value("entries", Json::array()))
    text += "\n" + line_of(entry, "title") + "\n" + line_of(entry, "url") + "\n";
  text += "\nWatched: " + line_of(data, "when") + (data.contains("label") ? " (" + line_of(data, "label") + ")" : "") +
          "\n";
  if (page.empty()) return text + "Capture: " + line_of(data, "id") + "\n";
  text += "This capture, compared with the one before: " + page + "/snapshot/" + line_of(data, "id") + "\n";
  if (data.contains("change_from"))
    text += "The one before: " + page + "/snapshot/" + line_of(data, "change_from") + "\n";
  return text;
}

std::string html_of(const Json& data, const std::string& subject, const std::string& page,
                    const Comparison& comparison) {
  html::List said, pictures, rows, entries;
  for (const auto& one : data.value("said", std::vector<std::string>()))
    said.push_back({{"text", base::one_line(one, 2000)}});
  if (!comparison.picture_before.empty()) pictures.push_back({{"caption", "before"}, {"cid", "before"}});
  if (!comparison.picture.empty()) pictures.push_back({{"caption", "now"}, {"cid", "now"}});
  std::size_t written = 0;
  const auto add = [&](const std::vector<Piece>& block) {
    html::List pieces;
    for (const auto& piece : block) {
      if ((written += piece.text.size()) > kMostWords) break;
      pieces.push_back({{"text", piece.text},
                        {"added", piece.kind == Piece::Kind::added},
                        {"removed", piece.kind == Piece::Kind::removed},
                        {"same", piece.kind == Piece::Kind::same}});
    }
    if (!pieces.empty()) rows.push_back({{"pieces", std::move(pieces)}});
  };
  const auto& difference = comparison.difference;
  for (const auto& block : difference.blocks)
    add(block);
  for (const auto& url : difference.links_removed)
    add({{Piece::Kind::removed, url}});
  for (const auto& url : difference.links_added)
    add({{Piece::Kind::added, url}});
  for (const auto& entry : data.value("entries", Json::array()))
    entries.push_back({{"entry_url", line_of(entry, "url")},
                       {"entry_title", line_of(entry, entry.contains("title") ? "title" : "url")}});
  return html::fill(embedded::notice_html, {{"subject", subject},
                                            {"said", std::move(said)},
                                            {"url", line_of(data, "url")},
                                            {"title", line_of(data, line_of(data, "title").empty() ? "url" : "title")},
                                            {"pictures", std::move(pictures)},
                                            {"selected_before", line_of(data, "selected_before")},
                                            {"selected", line_of(data, "selected")},
                                            {"rows", std::move(rows)},
                                            {"cut", written > kMostWords},
                                            {"entries", std::move(entries)},
                                            {"when", line_of(data, "when")},
                                            {"label", line_of(data, "label")},
                                            {"page", page},
                                            {"id", line_of(data, "id")},
                                            {"before", line_of(data, "change_from")}})
      .text();
}

} // namespace

Comparison compare(const archive::OpenFile& open, const std::string& before, const std::string& now) {
  Comparison comparison;
  comparison.picture_before = archive::thumbnail_of(open, before);
  comparison.picture = archive::thumbnail_of(open, now);
  try {
    comparison.difference = archive::difference(open, before, now);
  } catch (const base::Error& error) {
    spdlog::debug("no words of a notice: {}", error.what());
  }
  return comparison;
}

Notice notice_of(const Json& event, const std::string& page, const Comparison& comparison) {
  constexpr std::size_t kSubject = 200;
  const auto data = event.value("data", Json::object());
  const auto type = line_of(event, "type");
  Notice notice{"holdfast: " + type, event.dump(2) + "\n", "", "", "", line_of(event, "timestamp")};
  if (type != "watch.matched") return notice;
  auto name = line_of(data, "label");
  if (name.empty()) name = line_of(data, "title");
  if (name.empty()) name = line_of(data, "url");
  notice.subject =
      base::one_line(name + ": " + base::join(data.value("said", std::vector<std::string>()), "; "), kSubject);
  notice.text = text_of(data, page, comparison.difference);
  notice.html = html_of(data, notice.subject, page, comparison);
  notice.picture_before = comparison.picture_before;
  notice.picture = comparison.picture;
  return notice;
}

} // namespace holdfast::webhook
