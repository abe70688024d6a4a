#include "services/capture/extract/picture.hpp"

#include "lib/base/text/encoding.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace holdfast::capture {

Picture::Picture(std::string_view png) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, png.data(), png.size()) == 0) return;
  image.format = PNG_FORMAT_RGB;
  pixels_.resize(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, pixels_.data(), 0, nullptr) != 0) {
    width_ = static_cast<int>(image.width);
    height_ = static_cast<int>(image.height);
  }
  png_image_free(&image);
}

std::string Picture::cells(const Json& box, double scale) const {
  constexpr int kSide = 8;
  const auto bound = [scale](double at, int most) {
    return std::clamp(static_cast<int>(std::lround(at * scale)), 0, most);
  };
  const double x = box.at(0), y = box.at(1), wide = box.at(2), high = box.at(3);
  const int left = bound(x, width_), right = bound(x + wide, width_), top = bound(y, height_),
            bottom = bound(y + high, height_);
  if (right <= left || bottom <= top) return {};
  std::array<std::uint64_t, kSide * kSide> light{}, count{};
  std::array<std::uint64_t, 3> colour{};
  for (int row = top; row < bottom; ++row)
    for (int column = left; column < right; ++column) {
      const auto* pixel = &pixels_[3 * (static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) +
                                        static_cast<std::size_t>(column))];
      const auto cell = static_cast<std::size_t>((row - top) * kSide / (bottom - top) * kSide +
                                                 (column - left) * kSide / (right - left));
      light[cell] += (pixel[0] * 299U + pixel[1] * 587U + pixel[2] * 114U) / 1000U;
      ++count[cell];
      for (std::size_t i = 0; i < colour.size(); ++i)
        colour[i] += pixel[i];
    }
  std::string bytes;
  for (std::size_t i = 0; i < light.size(); ++i)
    bytes += static_cast<char>(count[i] == 0 ? 0 : light[i] / count[i]);
  for (const auto sum : colour)
    bytes += static_cast<char>(sum / static_cast<std::uint64_t>((right - left) * (bottom - top)));
  return base::base64_encode(bytes);
}

} // namespace holdfast::capture
