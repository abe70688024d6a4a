#include "lib/archive/redact_attempt.hpp"
#include "services/worker/attempt/steps.hpp"

#include <algorithm>

namespace holdfast::worker {

void redact(PageWork& work) {
  constexpr std::size_t kNamed = 3;
  if (!work.redactor) return;
  const auto left_out =
      archive::redact_attempt(work.files.directory(), work.view, *work.redactor, &work.files.abandoned());
  if (left_out.empty()) return;
  std::string why = archive::kLeftOut + (": " + left_out.front());
  for (std::size_t i = 1; i < std::min(left_out.size(), kNamed); ++i)
    why += ", " + left_out[i];
  if (left_out.size() > kNamed) why += " and " + std::to_string(left_out.size() - kNamed) + " more";
  work.add_reason(why);
}

} // namespace holdfast::worker
