#pragma once
// The longest common subsequence of two sequences (Myers, "An O(ND) Difference Algorithm"), by any relation. Debian 12
// has no library for it: dtl is not packaged, and xdiff is private to git and libgit2. Pure; any thread.

#include <cstddef>
#include <utility>
#include <vector>

namespace holdfast::change {

inline constexpr int kMostEdits = 1200; // beyond, only the common beginning and end are found

// Returns the pairs of positions that correspond, in order. `same(i, j)`: whether a[i] and b[j] do.
template <class Same>
std::vector<std::pair<std::size_t, std::size_t>> common(std::size_t a, std::size_t b, const Same& same) {
  std::vector<std::pair<std::size_t, std::size_t>> head, tail;
  std::size_t begin = 0;
  for (; begin < a && begin < b && same(begin, begin); ++begin)
    head.emplace_back(begin, begin);
  for (; a > begin && b > begin && same(a - 1, b - 1); --a, --b)
    tail.emplace_back(a - 1, b - 1);
  const auto n = static_cast<int>(a - begin), m = static_cast<int>(b - begin);
  const auto at = [&](int i) { return begin + static_cast<std::size_t>(i); };
  std::vector<std::vector<int>> reached; // by number of edits, by diagonal: the furthest x
  std::vector<std::pair<std::size_t, std::size_t>> middle;
  bool found = n == 0 || m == 0;
  for (int d = 0; !found && d <= n + m && d <= kMostEdits; ++d) {
    std::vector<int> row(static_cast<std::size_t>(2 * d + 1));
    const auto before = [&](int k) { return reached.back()[static_cast<std::size_t>(k + d - 1)]; };
    for (int k = -d; k <= d && !found; k += 2) {
      int x = d == 0 ? 0 : k == -d || (k != d && before(k - 1) < before(k + 1)) ? before(k + 1) : before(k - 1) + 1;
      while (x < n && x - k < m && x - k >= 0 && same(at(x), at(x - k)))
        ++x;
      row[static_cast<std::size_t>(k + d)] = x;
      found = x >= n && x - k >= m;
    }
    reached.push_back(std::move(row));
  }
  if (found && n > 0 && m > 0) {
    int x = n, y = m;
    for (int d = static_cast<int>(reached.size()) - 1; d >= 0; --d) {
      const int k = x - y;
      int from_x = 0, from_y = 0;
      if (d > 0) {
        const auto& row = reached[static_cast<std::size_t>(d - 1)];
        const auto before = [&](int j) { return row[static_cast<std::size_t>(j + d - 1)]; };
        const bool down = k == -d || (k != d && before(k - 1) < before(k + 1));
        from_x = before(down ? k + 1 : k - 1);
        from_y = from_x - (down ? k + 1 : k - 1);
      }
      const int start = d == 0 ? 0 : k == x - y && from_x - from_y < k ? from_x + 1 : from_x;
      while (x > start)
        middle.emplace_back(at(--x), at(--y));
      x = from_x;
      y = from_y;
    }
  }
  head.insert(head.end(), middle.rbegin(), middle.rend());
  head.insert(head.end(), tail.rbegin(), tail.rend());
  return head;
}

} // namespace holdfast::change
