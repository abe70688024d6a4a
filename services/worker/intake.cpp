#include "services/worker/intake.hpp"

#include "lib/base/duration.hpp"
#include "services/worker/machine_room.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace holdfast::worker {

// It is in several files of /proc and of the control groups, and is asked for at each turn.
std::optional<std::uint64_t> Intake::memory() {
  const auto now = std::chrono::steady_clock::now();
  if (now - memory_read_ >= std::chrono::seconds(1)) {
    memory_ = available_memory();
    memory_read_ = now;
  }
  return memory_;
}

std::string Intake::shortage() {
  // A page that could not be published in the end is not begun.
  if (!archive_.trouble().empty()) return archive_.trouble();
  auto free = scratch_.free_bytes();
  std::string where = "work_dir";
  if (archive_.free_bytes() < free) {
    free = archive_.free_bytes();
    where = "archive.root";
  }
  if (free < options_.minimum_free_bytes)
    return "only " + base::format_size(free) + " free in " + where + ", disk.minimum_free is " +
           base::format_size(options_.minimum_free_bytes);
  if (options_.minimum_free_memory_bytes > 0) {
    const auto left = memory();
    if (left && *left < options_.minimum_free_memory_bytes)
      return "only " + base::format_size(*left) + " of memory left, memory.minimum_free is " +
             base::format_size(options_.minimum_free_memory_bytes);
  }
  if (options_.maximum_load > 0) {
    const double load = load_per_processor();
    if (load > static_cast<double>(options_.maximum_load))
      return fmt::format("the load of the last minute is {:.1f} for each processor, load.maximum is {}", load,
                         options_.maximum_load);
  }
  return {};
}

bool Intake::look(const std::string& draining) {
  auto why = draining.empty() ? shortage() : draining;
  if (why == not_claiming_) return false;
  if (draining.empty() && why.empty())
    spdlog::info("claiming again");
  else if (draining.empty())
    spdlog::warn("not claiming: {}", why);
  not_claiming_ = std::move(why);
  return true;
}

} // namespace holdfast::worker
