#include "lib/formats/gunzip.hpp"

#include "lib/base/error.hpp"
#include "lib/base/inflater.hpp"
#include "lib/base/unpacked.hpp"

namespace holdfast::formats {

bool is_gzip(std::string_view text) { return text.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view packed, std::size_t limit) {
  limit = base::most_unpacked(packed.size(), limit);
  base::Inflater inflater(packed, base::kGzip);
  std::string text, room(1u << 16, '\0');
  for (auto step = base::Step::more; step == base::Step::more;) {
    std::size_t got = 0;
    step = inflater.next(room, got);
    text.append(room, 0, got);
    if (step == base::Step::damaged)
      throw base::Error(base::ErrorClass::refused, "it is packed, and damaged or cut off");
    if (text.size() > limit)
      throw base::Error(base::ErrorClass::refused,
                        "it is packed, and unpacks to more than " + std::to_string(limit >> 20) + " MiB");
  }
  return text;
}

} // namespace holdfast::formats
