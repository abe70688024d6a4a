#include "lib/change/compare.hpp"

#include "lib/change/mask.hpp"
#include "lib/change/units.hpp"

#include <climits>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <map>
#include <utility>
#include <vector>

namespace holdfast::change {

namespace {

constexpr int kGone = 410, kNotFound = 404;
constexpr std::size_t kCells = 64;
constexpr int kAlways = 3, kAtOnce = 2; // changes in a row after which a word is noise

// Compares two pictures, of which one may be encoded again, or be drawn between two pixels.
bool alike(const Picture& a, const Picture& b) {
  constexpr int kMostCell = 14, kMostColour = 8;
  constexpr double kSmall = 20'000; // pixels: a cell is drawn by few
  if (a.cells.size() != b.cells.size()) return false;
  const auto value = [](char byte) { return static_cast<int>(static_cast<unsigned char>(byte)); };
  int odd = 0;
  for (std::size_t i = 0; i < a.cells.size(); ++i) {
    const int apart = std::abs(value(a.cells[i]) - value(b.cells[i]));
    if (i >= kCells && apart > kMostColour) return false;
    if (apart > 4 * kMostCell) return false;
    odd += apart > kMostCell ? 1 : 0;
  }
  const double larger = std::max(a.area, b.area);
  return odd <= (larger < kSmall ? 1 : 0) && larger - std::min(a.area, b.area) <= 0.02 * larger;
}

// The area of pictures that came, went or look otherwise.
double compare_pictures(const std::vector<Picture>& earlier, const std::vector<Picture>& now, Mask& mask, bool learn) {
  const auto noise = [&](const Picture& one) {
    return mask.pictures.contains(one.place) || mask.pictures.contains(one.source);
  };
  std::vector<bool> used(earlier.size());
  std::map<Place, std::size_t> same; // by place
  std::vector<const Picture*> others;
  std::map<Place, std::list<std::size_t>> left; // of the earlier ones
  for (std::size_t i = 0; i < earlier.size(); ++i)
    left[earlier[i].place].push_back(i);
  for (const auto& picture : now) {
    auto& here = left[picture.place];
    const auto tried = std::next(here.begin(), static_cast<std::ptrdiff_t>(std::min(here.size(), kMostTried)));
    const auto found = std::find_if(here.begin(), tried, [&](std::size_t i) { return alike(earlier[i], picture); });
    if (found == tried) {
      others.push_back(&picture);
      continue;
    }
    used[*found] = true;
    here.erase(found);
    ++same[picture.place];
  }
  for (std::size_t i = 0; i < earlier.size(); ++i)
    if (!used[i]) others.push_back(&earlier[i]);
  std::map<Place, std::size_t> other;
  for (const auto* picture : others)
    ++other[picture->place];
  double area = 0;
  for (const auto* picture : others)
    if (learn)
      mask.pictures.insert(other[picture->place] <= 2 * same[picture->place] ? picture->source : picture->place);
    else if (!noise(*picture))
      area += picture->area;
  return area;
}

double compare_styles(const Shape& earlier, const Shape& now, Mask& mask, bool learn) {
  double area = 0;
  for (const auto& [place, style] : now.styles) {
    const auto before = earlier.styles.find(place);
    if (before == earlier.styles.end() || before->second.first == style.first) continue;
    if (learn)
      mask.styles.insert(place);
    else if (!mask.styles.contains(place) && !mask.text.contains(place))
      area += std::max(style.second, 1.0);
  }
  return area;
}

} // namespace

Compared compare(const Fingerprint& earlier, Shape now, bool learn) {
  Compared result;
  auto& [change, next] = result;
  auto mask = earlier.mask;
  const bool learns = learn && !mask.learnt && earlier.state == "page";
  const int most = !now.choice.empty() ? INT_MAX : learn ? kAtOnce : kAlways;
  const auto text =
      compare_units(earlier.shape.text, now.text, {learns, true, true, most, mask.text, mask.order, mask.known_text});
  const auto links = compare_units(earlier.shape.links, now.links,
                                   {learns, false, true, most, mask.links, mask.order, mask.known_links});
  std::set<Place> none;
  std::vector<Unit> unknown;
  const auto title = compare_units(earlier.shape.title, now.title, {learns, true, false, most, none, none, unknown});
  const bool drawn = now.area > 0 && (!earlier.shape.pictures.empty() || !earlier.shape.styles.empty());
  double area = 0;
  if (drawn) {
    area = compare_pictures(earlier.shape.pictures, now.pictures, mask, learns);
    area += compare_styles(earlier.shape, now, mask, learns);
  }
  mask.learnt = mask.learnt || learns;
  change.words_added = text.added;
  change.words_removed = text.removed;
  change.words_moved = text.moved;
  change.links_added = links.added;
  change.links_removed = links.removed;
  change.look_share = now.area > 0 ? std::min(area / now.area, 1.0) : 0;
  change.learnt = learns;
  const bool titled = title.any && earlier.shape.title.size() == 2 && now.title.size() == 2;
  const bool retitled = titled && !fits(earlier.shape.title[0].words, now.title[0].words, false);
  const bool moved = titled && !fits(earlier.shape.title[1].words, now.title[1].words);
  change.kind = earlier.state != "page" ? "back"
                : text.any              ? "text"
                : retitled              ? "title"
                : moved                 ? "status"
                : links.any             ? "links"
                : area > 0              ? "look"
                                        : "same";
  next.shape = std::move(now);
  next.shape.text = text.next;
  next.shape.links = links.next;
  next.shape.title = title.next;
  if (!drawn && next.shape.pictures.empty() && next.shape.styles.empty()) { // no picture this time
    next.shape.pictures = earlier.shape.pictures;
    next.shape.styles = earlier.shape.styles;
  }
  next.mask = std::move(mask);
  next.state = "page";
  return result;
}

Compared compare_status(Fingerprint earlier, int status) {
  Compared result;
  const bool gone = status == kGone || status == kNotFound;
  const auto state = gone ? "gone" : "status " + std::to_string(status);
  result.change.kind = earlier.state == state ? "same" : gone ? "gone" : "status";
  result.next = std::move(earlier);
  result.next.state = state;
  return result;
}

} // namespace holdfast::change
