#include "lib/change/diff.hpp"

#include "lib/base/text/text.hpp"
#include "lib/change/block_lines.hpp"
#include "lib/change/sequence.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace holdfast::change {

namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

struct Block {
  std::string at;
  Words words;
  friend bool operator==(const Block&, const Block&) = default;
};
struct Text {
  std::string title, url;
  std::vector<Block> blocks;
  std::set<std::string> links;
};

Text read(std::string_view lines) {
  Text text;
  const auto page = [&](const Json& json) {
    text.title = json.value("title", "");
    text.url = json.value("url", "");
  };
  each_block(lines, page, [&](const Json& json) {
    Block block{json.value("at", ""), base::split(json.value("text", ""), " ")};
    if (!block.words.empty()) text.blocks.push_back(std::move(block));
    for (const auto& link : json.value("links", Words()))
      text.links.insert(link);
  });
  return text;
}

auto common_words(const Words& a, const Words& b) {
  return common(a.size(), b.size(), [&](std::size_t i, std::size_t j) { return a[i] == b[j]; });
}

class Writer {
public:
  explicit Writer(Difference& into) : into_(into) {}
  void words(const Words& before, const Words& now) {
    std::vector<Piece> pieces;
    const auto add = [&](Piece::Kind kind, const Words& words, std::size_t begin, std::size_t end) {
      if (begin == end) return;
      const Words some(words.begin() + static_cast<std::ptrdiff_t>(begin),
                       words.begin() + static_cast<std::ptrdiff_t>(end));
      if (!pieces.empty() && pieces.back().kind == kind)
        pieces.back().text += " " + base::join(some, " ");
      else
        pieces.push_back({kind, base::join(some, " ")});
      if (kind == Piece::Kind::added) into_.words_added += some.size();
      if (kind == Piece::Kind::removed) into_.words_removed += some.size();
    };
    std::size_t i = 0, j = 0;
    const auto gap = [&](std::size_t end_i, std::size_t end_j) {
      add(Piece::Kind::removed, before, i, end_i);
      add(Piece::Kind::added, now, j, end_j);
    };
    for (const auto& [x, y] : common_words(before, now)) {
      gap(x, y);
      add(Piece::Kind::same, now, y, y + 1);
      i = x + 1;
      j = y + 1;
    }
    gap(before.size(), now.size());
    if (!pieces.empty()) into_.blocks.push_back(std::move(pieces));
  }

private:
  Difference& into_;
};

// Returns true if a block is the other one with some other words.
bool alike(const Block& a, const Block& b) {
  return a.at == b.at && 2 * common_words(a.words, b.words).size() >= std::max(a.words.size(), b.words.size());
}

} // namespace

Difference difference(std::string_view blocks_before, std::string_view blocks) {
  const auto before = read(blocks_before), now = read(blocks);
  Difference result;
  result.title_before = before.title;
  result.title = now.title;
  result.url_before = before.url;
  result.url = now.url;
  std::set_difference(now.links.begin(), now.links.end(), before.links.begin(), before.links.end(),
                      std::back_inserter(result.links_added));
  std::set_difference(before.links.begin(), before.links.end(), now.links.begin(), now.links.end(),
                      std::back_inserter(result.links_removed));
  Writer writer(result);
  std::size_t i = 0, j = 0;
  const auto gap = [&](std::size_t end_i, std::size_t end_j) {
    for (; j < end_j; ++j) {
      auto like = i;
      while (like < end_i && like - i < 100 && !alike(before.blocks[like], now.blocks[j]))
        ++like;
      const bool found = like < end_i && like - i < 100;
      while (found && i < like)
        writer.words(before.blocks[i++].words, {});
      writer.words(found ? before.blocks[i++].words : Words(), now.blocks[j].words);
    }
    for (; i < end_i; ++i)
      writer.words(before.blocks[i].words, {});
  };
  for (const auto& [x, y] : common(before.blocks.size(), now.blocks.size(),
                                   [&](std::size_t p, std::size_t q) { return before.blocks[p] == now.blocks[q]; })) {
    gap(x, y);
    ++result.blocks_same;
    i = x + 1;
    j = y + 1;
  }
  gap(before.blocks.size(), now.blocks.size());
  return result;
}

Json to_json(const Difference& difference) {
  constexpr const char* kNames[] = {"same", "removed", "added"};
  auto blocks = Json::array();
  for (const auto& pieces : difference.blocks) {
    auto block = Json::array();
    for (const auto& piece : pieces)
      block.push_back({{kNames[static_cast<std::size_t>(piece.kind)], piece.text}});
    blocks.push_back(std::move(block));
  }
  return {{"title_before", difference.title_before},
          {"title", difference.title},
          {"url_before", difference.url_before},
          {"url", difference.url},
          {"words_added", difference.words_added},
          {"words_removed", difference.words_removed},
          {"links_added", difference.links_added},
          {"links_removed", difference.links_removed},
          {"blocks", std::move(blocks)}};
}

std::string word_mark(const Piece& piece) {
  if (piece.kind == Piece::Kind::same) return piece.text;
  return piece.kind == Piece::Kind::added ? "{+" + piece.text + "+}" : "[-" + piece.text + "-]";
}

std::string to_text(const Difference& difference, const std::function<std::string(const Piece&)>& mark) {
  using Kind = Piece::Kind;
  std::string text;
  const auto changed = [&](const char* what, const std::string& before, const std::string& now) {
    if (before != now) text += what + (": " + mark({Kind::removed, before})) + " " + mark({Kind::added, now}) + "\n";
  };
  changed("title", difference.title_before, difference.title);
  changed("address", difference.url_before, difference.url);
  for (const auto& pieces : difference.blocks) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      text += (i == 0 ? "" : " ") + mark(pieces[i]);
    text += "\n\n";
  }
  for (const auto& url : difference.links_removed)
    text += "link " + mark({Kind::removed, url}) + "\n";
  for (const auto& url : difference.links_added)
    text += "link " + mark({Kind::added, url}) + "\n";
  return text;
}

} // namespace holdfast::change
