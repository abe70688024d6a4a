#pragma once
// A picture of a page in memory, and what parts of it look like: eight by eight cells of brightness, so that the same
// part drawn again, or a hair off, can be recognised.

#include "services/capture/hook.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::capture {

class Picture {
public:
  // Reads a PNG; what cannot be read is empty.
  explicit Picture(std::string_view png);
  // Returns 64 cells and the mean red, green and blue of a box [x, y, width, height] as base64; empty: the
  // box is outside. `scale`: pixels of this picture for one of the page.
  std::string cells(const Json& box, double scale) const;

private:
  std::vector<std::uint8_t> pixels_; // red, green, blue
  int width_{0}, height_{0};
};

} // namespace holdfast::capture
