#include "lib/archive/diff_page.hpp"

#include "lib/archive/embedded.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/change/mask.hpp"
#include "lib/html/parts.hpp"

#include <utility>

namespace holdfast::archive {

namespace {

constexpr std::size_t kMostBlocks = 16u << 20; // bytes

std::string blocks_of(const OpenFile& open, const std::string& directory) {
  const auto path = directory + "/text/blocks.jsonl";
  const auto file = directory.empty() ? base::Fd() : open(path);
  if (!file)
    throw base::Error(base::ErrorClass::refused, "no text to compare in " + (directory.empty() ? "the snapshot" : path),
                      "the plugin text leaves it; snapshots of files without words have none");
  return read_rest(file.get(), path, kMostBlocks);
}

html::List side(const std::vector<change::Piece>& pieces, change::Piece::Kind marked) {
  html::List list;
  for (const auto& piece : pieces)
    if (piece.kind == marked || piece.kind == change::Piece::Kind::same)
      list.push_back({{"text", piece.text}, {"marked", piece.kind == marked}});
  return list;
}

} // namespace

change::Difference difference(const OpenFile& open, const std::string& before, const std::string& now) {
  return change::difference(blocks_of(open, before), blocks_of(open, now));
}

std::vector<std::string> noise(const OpenFile& open, const std::string& fingerprint, const std::string& directory) {
  const auto read = [&](const std::string& path) {
    const auto file = open(path);
    return file ? read_rest(file.get(), path, kMostBlocks) : std::string();
  };
  return change::noise(change::from_bytes(base::base64_decode(fingerprint)), read(directory + "/text/blocks.jsonl"),
                       read(directory + "/screenshot/look.json"));
}

std::string screenshot_of(const OpenFile& open, const std::string& directory) {
  for (const char* name : {"screenshot.png", "screenshot.jpg", "screenshot.webp"})
    if (const auto path = directory + "/screenshot/" + name; open(path)) return path;
  return {};
}

std::string thumbnail_of(const OpenFile& open, const std::string& directory) {
  constexpr std::size_t kMost = 256 << 10;
  const auto path = directory + "/screenshot/thumbnail.jpg";
  const auto file = directory.empty() ? base::Fd() : open(path);
  auto bytes = file ? read_rest(file.get(), path, kMost + 1) : std::string();
  return bytes.size() <= kMost && bytes.starts_with("\xFF\xD8\xFF") ? bytes : "";
}

html::Html difference_html(const change::Difference& difference, const std::string& picture_before,
                           const std::string& picture) {
  html::List rows, links;
  for (const auto& pieces : difference.blocks)
    rows.push_back(
        {{"before", side(pieces, change::Piece::Kind::removed)}, {"now", side(pieces, change::Piece::Kind::added)}});
  for (const auto& url : difference.links_added)
    links.push_back({{"url", url}, {"added", true}});
  for (const auto& url : difference.links_removed)
    links.push_back({{"url", url}, {"added", false}});
  const bool retitled = difference.title != difference.title_before, moved = difference.url != difference.url_before;
  const bool pictures = !picture.empty() && !picture_before.empty();
  return html::fill(embedded::diff_html, {{"words", html::counted(difference.words_added, "word") + " added, " +
                                                        html::counted(difference.words_removed, "word") + " removed"},
                                          {"blocks_same", html::grouped(difference.blocks_same)},
                                          {"title", retitled ? difference.title : ""},
                                          {"title_before", difference.title_before},
                                          {"address", moved ? difference.url : ""},
                                          {"address_before", difference.url_before},
                                          {"rows", std::move(rows)},
                                          {"links", std::move(links)},
                                          {"picture", pictures ? picture : ""},
                                          {"picture_before", picture_before}});
}

} // namespace holdfast::archive
