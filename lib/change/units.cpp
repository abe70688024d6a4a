#include "lib/change/units.hpp"

#include "lib/change/edits.hpp"
#include "lib/change/mask.hpp"
#include "lib/change/sequence.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace holdfast::change {

namespace {

constexpr std::size_t kMostOfMark = 40;          // units that a mark of a mask stands for
constexpr std::size_t kMostKnown = 500;          // masks of units that are not on the page now
constexpr double kEdited = 0.66;                 // words that stay in an edit beside noise
constexpr std::int64_t kMostSteps = 200'000'000; // comparisons of words; what would take more counts as changed

class Comparison {
public:
  Comparison(const std::vector<Unit>& earlier, const std::vector<Unit>& later, UnitRules rules) : rules_(rules) {
    for (const auto& unit : earlier)
      if (unit.any)
        marks_.emplace_back(a_.size(), unit.place);
      else if (!rules_.noise.contains(unit.place))
        a_.push_back(unit);
    for (const auto& unit : later)
      if (unit.any)
        marks_b_.emplace_back(b_.size(), unit.place);
      else if (!rules_.noise.contains(unit.place))
        b_.push_back(unit);
      else
        beside_.insert({b_.size(), b_.size() - 1});
  }

  UnitChanges run() {
    for (auto* side : {&a_, &b_})
      for (const auto& unit : *side) {
        auto& words = (side == &a_ ? words_a_ : words_b_).emplace_back(numbered(unit.words));
        std::sort(words.begin(), words.end());
      }
    match();
    drop_marked();
    pair_moved([shuffled = shuffled()](Place place) { return shuffled.contains(place); });
    for (const auto& run : runs_)
      pair_alike(run, [&](std::size_t i, std::size_t j) { return alike(i, j); });
    pair_moved([](Place) { return true; });
    if (rules_.learn) part_unlike();
    drop_known();
    if (rules_.learn) refuse_to_learn_all();
    if (rules_.learn) learn_places();
    settle();
    return std::move(result_);
  }

private:
  static constexpr std::size_t kNone = SIZE_MAX;
  enum class Fate { open, same, edited, moved, noise, known };
  struct Run {
    std::size_t a, end_a, b, end_b;
  };

  bool same(std::size_t i, std::size_t j) const {
    if (a_[i].place != b_[j].place) return false;
    if (a_[i].words == b_[j].words) return true;
    const auto masked = std::any_of(a_[i].words.begin(), a_[i].words.end(), is_mask);
    return masked && fit(a_[i].words, b_[j].words);
  }
  bool spend(const std::vector<Word>& a, const std::vector<Word>& b) const {
    constexpr std::int64_t kCall = 50;
    return (steps_ -= static_cast<std::int64_t>(a.size() * b.size()) + kCall) > 0;
  }
  bool fit(const std::vector<Word>& pattern, const std::vector<Word>& words) const {
    return spend(pattern, words) && fits(pattern, words, rules_.soft);
  }
  // Returns true if two blocks are one with other words in it, or other numbers, of which this share is the same. Most
  // are not, as their words show in any order.
  bool alike(std::size_t i, std::size_t j, double share = 0.5) const {
    const auto &a = a_[i].words, &b = b_[j].words;
    if (a_[i].place != b_[j].place) return false;
    const auto longest = static_cast<double>(std::max(fixed_words(a), fixed_words(b)));
    const auto enough = [&](std::size_t words) { return longest > 0 && static_cast<double>(words) >= share * longest; };
    std::size_t common = 0;
    for (auto x = words_a_[i].begin(), y = words_b_[j].begin(); x != words_a_[i].end() && y != words_b_[j].end();)
      if (*x == *y)
        ++common, ++x, ++y;
      else
        ++(*x < *y ? x : y);
    return enough(common) && spend(a, b) && enough(pairs_of(numbered(a), numbered(b)).size());
  }
  void join(std::size_t i, std::size_t j, Fate fate) {
    fate_a_[i] = fate_b_[j] = fate;
    other_[j] = i;
  }
  void match() {
    fate_a_.assign(a_.size(), Fate::open);
    fate_b_.assign(b_.size(), Fate::open);
    other_.assign(b_.size(), kNone);
    std::size_t i = 0, j = 0;
    const auto close = [&](std::size_t end_a, std::size_t end_b) {
      if (i < end_a || j < end_b || marked(i, end_a)) runs_.push_back({i, end_a, j, end_b});
    };
    for (const auto& [x, y] :
         common(a_.size(), b_.size(), [this](std::size_t p, std::size_t q) { return same(p, q); })) {
      close(x, y);
      join(x, y, Fate::same);
      i = x + 1;
      j = y + 1;
    }
    close(a_.size(), b_.size());
  }
  using Marks = std::vector<std::pair<std::size_t, Place>>;
  // The marks at positions from begin to end; they are in order until some are learnt.
  static std::pair<Marks::const_iterator, Marks::const_iterator> within(const Marks& marks, std::size_t begin,
                                                                        std::size_t end) {
    return {std::lower_bound(marks.begin(), marks.end(), std::pair(begin, Place(0))),
            std::lower_bound(marks.begin(), marks.end(), std::pair(end + 1, Place(0)))};
  }
  bool marked(std::size_t begin, std::size_t end) const {
    const auto [first, last] = within(marks_, begin, end);
    return first != last;
  }
  // Pairs what is open in a run, in order: one block with other words.
  template <class May>
  void pair_alike(const Run& run, const May& may) {
    auto from = run.a;
    for (auto j = run.b; j < run.end_b; ++j)
      for (auto i = from; fate_b_[j] == Fate::open && i < run.end_a && i - from < kMostTried; ++i)
        if (fate_a_[i] == Fate::open && may(i, j)) {
          join(i, j, Fate::edited);
          from = i + 1;
        }
  }
  // Drops what stands beside a mark, within what lies between two units that are the same. What stood there when the
  // mark was learnt may be edited.
  void drop_marked() {
    for (const auto& run : runs_) {
      std::set<Place> noise;
      for (const auto& [first, last] : {within(marks_, run.a, run.end_a), within(marks_b_, run.b, run.end_b)})
        for (auto mark = first; mark != last; ++mark)
          noise.insert(mark->second);
      std::map<Place, std::size_t> count; // a page of other words is not what was seen in this place
      for (auto j = run.b; j < run.end_b; ++j)
        ++count[b_[j].place];
      const auto is_noise = [&](Place place) { return noise.contains(place) && count[place] <= kMostOfMark; };
      pair_alike(run, [&](std::size_t i, std::size_t j) {
        const auto place = b_[j].place;
        if (!is_noise(place) || !alike(i, j, kEdited)) return false;
        const auto mark = [&](std::size_t at) {
          return std::binary_search(marks_.begin(), marks_.end(), std::pair(at, place));
        };
        return !(mark(i) && mark(i + 1)) && fixed_words(a_[i].words) == a_[i].words.size();
      });
      for (auto i = run.a; i < run.end_a; ++i)
        if (fate_a_[i] == Fate::open && is_noise(a_[i].place)) fate_a_[i] = Fate::noise;
      for (auto j = run.b; j < run.end_b; ++j)
        if (fate_b_[j] == Fate::open && is_noise(b_[j].place)) fate_b_[j] = Fate::noise;
    }
  }
  // The places where the order does not count, and those that have almost the same units in another order.
  std::set<Place> shuffled() const {
    std::map<Place, std::map<std::vector<Word>, int>> left;
    std::map<Place, std::pair<int, int>> all; // and those that both have
    for (std::size_t i = 0; i < a_.size(); ++i)
      if (fate_a_[i] == Fate::open) ++left[a_[i].place][a_[i].words];
    for (std::size_t j = 0; j < b_.size(); ++j) {
      if (fate_b_[j] != Fate::open) continue;
      auto& [count, both] = all[b_[j].place];
      ++count;
      if (left[b_[j].place][b_[j].words]-- > 0) ++both;
    }
    std::set<Place> places;
    for (const auto& [place, counts] : all)
      if (!rules_.ordered || rules_.order.contains(place) || 10 * counts.second >= 9 * counts.first)
        places.insert(place);
    return places;
  }
  template <class May>
  void pair_moved(const May& may) {
    std::multimap<Place, std::size_t> left;
    for (std::size_t i = 0; i < a_.size() && left.size() < 2000; ++i)
      if (fate_a_[i] == Fate::open) left.emplace(a_[i].place, i);
    for (std::size_t j = 0; j < b_.size(); ++j) {
      if (fate_b_[j] != Fate::open || !may(b_[j].place)) continue;
      const auto [begin, end] = left.equal_range(b_[j].place);
      for (auto one = begin; one != end; ++one)
        if (same(one->second, j)) {
          join(one->second, j, Fate::moved);
          left.erase(one);
          break;
        }
    }
  }
  // Two blocks that share less than two thirds of their words are not one that varies: any may stand in their place.
  void part_unlike() {
    for (std::size_t j = 0; j < b_.size(); ++j) {
      if (fate_b_[j] != Fate::edited) continue;
      const auto i = other_[j];
      const auto one = names_of(a_[i].words), two = names_of(b_[j].words);
      if (3 * pairs_of(one, two).size() >= 2 * std::max(one.size(), two.size())) continue;
      fate_a_[i] = fate_b_[j] = Fate::open;
      other_[j] = kNone;
    }
  }
  // Units that a mask of their place stands for are noise, however many there are.
  void drop_known() {
    std::multimap<Place, const std::vector<Word>*> known;
    for (const auto* units : {&a_, &rules_.known})
      for (const auto& unit : *units)
        if (is_pattern(unit.words) && known.size() < 2000) known.emplace(unit.place, &unit.words);
    const auto contexts = contexts_of(rules_.known, contexts_of(a_, {}));
    const auto is_known = [&](const Unit& unit) {
      const auto [begin, end] = known.equal_range(unit.place);
      return std::any_of(begin, end, [&](const auto& one) {
        return *one.second == unit.words ||
               (fixed_words(unit.words) == unit.words.size() && fit(*one.second, unit.words));
      });
    };
    for (std::size_t j = 0; j < b_.size(); ++j)
      if (fate_b_[j] == Fate::edited && is_known(b_[j])) {
        fate_a_[other_[j]] = is_known(a_[other_[j]]) ? Fate::noise : Fate::open;
        fate_b_[j] = Fate::known;
        other_[j] = kNone;
      } else if (fate_b_[j] == Fate::edited && varies_within(contexts, a_[other_[j]], b_[j])) {
        a_[other_[j]].words = carried(a_[other_[j]].words, b_[j].words, true);
        fate_a_[other_[j]] = fate_b_[j] = Fate::same;
      } else if (fate_b_[j] == Fate::open && is_known(b_[j])) {
        fate_b_[j] = Fate::known;
      }
    for (std::size_t i = 0; i < a_.size(); ++i)
      if (fate_a_[i] == Fate::open && is_known(a_[i])) fate_a_[i] = Fate::noise;
  }
  // A page of other words is another page, not noise.
  void refuse_to_learn_all() {
    std::size_t all = 0, other = 0;
    const auto count = [&](const std::vector<Unit>& units, const std::vector<Fate>& fates) {
      for (std::size_t i = 0; i < units.size(); ++i) {
        all += units[i].words.size();
        if (fates[i] == Fate::open) other += units[i].words.size();
      }
    };
    count(a_, fate_a_);
    count(b_, fate_b_);
    if (rules_.ordered && 10 * other > 8 * all && all > 20) rules_.learn = false;
  }
  void learn_places() {
    struct Count {
      std::size_t same{0}, other{0}, moved{0};
    };
    std::map<Place, Count> places;
    for (std::size_t j = 0; j < b_.size(); ++j) {
      auto& count = places[b_[j].place];
      ++(fate_b_[j] == Fate::open ? count.other : fate_b_[j] == Fate::moved ? count.moved : count.same);
    }
    for (std::size_t i = 0; i < a_.size(); ++i)
      if (fate_a_[i] == Fate::open) ++places[a_[i].place].other;
    for (const auto& [place, count] : places) // those that moved are a draw of the same, once there are others
      if (count.other > 0 && count.other + count.moved > 2 * count.same) rules_.noise.insert(place);
    for (const auto& run : runs_) {
      std::set<Place> here;
      for (auto i = run.a; i < run.end_a; ++i)
        if (fate_a_[i] == Fate::open) here.insert(a_[i].place);
      for (auto j = run.b; j < run.end_b; ++j)
        if (fate_b_[j] == Fate::open) here.insert(b_[j].place);
      for (const auto place : here) {
        marks_.emplace_back(run.a, place);
        for (auto i = run.a; i < run.end_a; ++i) // they part the run once they are masks
          if (fate_a_[i] == Fate::edited) marks_.emplace_back(i + 1, place);
      }
    }
    for (auto* fates : {&fate_a_, &fate_b_})
      std::replace(fates->begin(), fates->end(), Fate::open, Fate::noise);
  }
  void report(std::size_t removed, std::size_t added) {
    const std::size_t most = rules_.ordered ? SIZE_MAX : 1;
    result_.removed += std::min(removed, most);
    result_.added += std::min(added, most);
    result_.any = true;
  }
  // The masks that units of a place have or had.
  void find_models() {
    for (const auto* units : {&a_, &rules_.known})
      for (const auto& unit : *units)
        if (auto& here = models_[unit.place];
            here.size() < kMostTried && std::any_of(unit.words.begin(), unit.words.end(), is_mask))
          here.push_back(&unit.words);
  }
  // The mask that other units of this place have, for a new one.
  const std::vector<Word>* model(const Unit& unit) const {
    const auto here = models_.find(unit.place);
    if (here == models_.end()) return nullptr;
    const auto found = std::find_if(here->second.begin(), here->second.end(),
                                    [&](const auto* pattern) { return fit(*pattern, unit.words); });
    return found == here->second.end() ? nullptr : *found;
  }
  Unit take(std::size_t j) {
    auto unit = b_[j];
    const auto i = other_[j];
    switch (fate_b_[j]) {
    case Fate::same:
    case Fate::moved:
      unit.words = a_[i].words == unit.words ? unit.words : widened(a_[i].words, unit.words);
      if (fate_b_[j] == Fate::same) break;
      if (rules_.learn && rules_.ordered) rules_.order.insert(unit.place);
      if (rules_.ordered && !rules_.order.contains(unit.place) && !beside_.contains(j)) {
        result_.moved += unit.words.size();
        result_.any = true;
      }
      break;
    case Fate::edited: {
      const bool noise =
          (rules_.learn && !(rules_.ordered && is_edit(a_[i], unit))) || a_[i].changes + 1 >= rules_.most_changes;
      if (!noise) {
        const auto kept = pairs_of(a_[i].words, unit.words).size();
        const auto masked = carried(a_[i].words, unit.words, false);
        const auto fixed = fixed_words(masked);
        report(fixed_words(a_[i].words) - kept, fixed - std::min(fixed, kept));
      }
      unit.changes = noise ? 0 : a_[i].changes + 1;
      unit.words = carried(a_[i].words, unit.words, noise);
      break;
    }
    case Fate::open:
      report(0, unit.words.size());
      [[fallthrough]];
    case Fate::known:
    case Fate::noise:
      if (const auto* known = model(unit)) unit.words = std::vector<Word>(*known);
    }
    return unit;
  }
  static std::vector<Word> widened(const std::vector<Word>& pattern, const std::vector<Word>& words) {
    return carried(pattern, words, true);
  }
  void settle() {
    for (std::size_t i = 0; i < a_.size(); ++i) {
      if (fate_a_[i] == Fate::open) report(fixed_words(a_[i].words), 0);
      const bool left = fate_a_[i] == Fate::open || fate_a_[i] == Fate::noise;
      if (left && is_pattern(a_[i].words) && rules_.known.size() < kMostKnown &&
          std::find(rules_.known.begin(), rules_.known.end(), a_[i]) == rules_.known.end())
        rules_.known.push_back(a_[i]);
    }
    find_models();
    // A mark stays where it was among the units that are still there.
    std::multimap<std::size_t, Place> marks;
    std::vector<std::size_t> at(a_.size() + 1, b_.size());
    const auto stays = [](Fate fate) { return fate == Fate::same || fate == Fate::edited; };
    for (std::size_t j = b_.size(); j-- > 0;)
      if (stays(fate_b_[j])) at[other_[j]] = j;
    for (std::size_t i = a_.size(); i-- > 0;)
      at[i] = std::min(at[i], at[i + 1]);
    std::vector<std::size_t> behind(a_.size() + 1); // the last unit before that is still there
    for (std::size_t i = 0; i < a_.size(); ++i)
      behind[i + 1] = stays(fate_a_[i]) ? at[i] + 1 : behind[i];
    std::set<std::pair<std::size_t, Place>> once;
    for (const auto& [before, place] : marks_)
      if (!rules_.noise.contains(place)) once.emplace(behind[before], place);
    for (const auto& [position, place] : marks_b_)
      if (!rules_.noise.contains(place)) once.emplace(position, place);
    for (const auto& mark : once)
      marks.insert(mark);
    for (std::size_t j = 0; j <= b_.size(); ++j) {
      for (auto [one, end] = marks.equal_range(j); one != end; ++one)
        result_.next.push_back({one->second, {}, true, 0});
      if (j < b_.size()) {
        auto unit = take(j);
        if (fate_b_[j] != Fate::noise) result_.next.push_back(std::move(unit));
      }
    }
  }

  UnitRules rules_;
  std::vector<Unit> a_, b_;
  std::vector<std::vector<Word>> words_a_, words_b_; // of each, sorted, with all numbers alike
  std::map<Place, std::vector<const std::vector<Word>*>> models_;
  mutable std::int64_t steps_{kMostSteps};
  std::vector<std::pair<std::size_t, Place>> marks_, marks_b_; // in front of which unit of a_, of b_
  std::set<std::size_t> beside_; // units of b_ beside one that is noise: a heading, say, that moves with it
  std::vector<Fate> fate_a_, fate_b_;
  std::vector<std::size_t> other_; // by unit of b_
  std::vector<Run> runs_;
  UnitChanges result_;
};

} // namespace

UnitChanges compare_units(const std::vector<Unit>& earlier, const std::vector<Unit>& later, UnitRules rules) {
  return Comparison(earlier, later, rules).run();
}

} // namespace holdfast::change
