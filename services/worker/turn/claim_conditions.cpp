#include "services/worker/turn/claim_conditions.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "services/worker/machine/free_resources.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::chrono::minutes kRest{1};

} // namespace

// Cached, because it takes reading several files of /proc and of the control groups at each turn.
std::optional<std::uint64_t> ClaimConditions::memory() {
  const auto now = std::chrono::steady_clock::now();
  if (now - memory_read_ >= std::chrono::seconds(1)) {
    memory_ = available_memory();
    memory_read_ = now;
  }
  return memory_;
}

ClaimConditions::Shortage ClaimConditions::shortage() {
  if (const auto why = clock_trouble(); !why.empty()) return {"clock", why};
  if (const auto why = clock_difference_trouble(clock_ahead_); !why.empty()) return {"clock", why};
  // A page that could not be published in the end is not begun.
  if (!archive_.trouble().empty()) return {"archive", archive_.trouble()};
  check_work_dir();
  if (!work_dir_.empty()) return {"work_dir", work_dir_};
  auto free = scratch_.free_bytes();
  std::string where = "work_dir";
  if (archive_.free_bytes() < free) {
    free = archive_.free_bytes();
    where = "archive.root";
  }
  if (free < options_.minimum_free_bytes)
    return {"disk", "only " + base::format_size(free) + " free in " + where + ", disk.minimum_free is " +
                        base::format_size(options_.minimum_free_bytes)};
  if (std::chrono::steady_clock::now() < rests_until_) return {"network", network_};
  if (options_.minimum_free_memory_bytes > 0) {
    const auto left = memory();
    if (left && *left < options_.minimum_free_memory_bytes)
      return {"memory", "only " + base::format_size(*left) + " of memory left, memory.minimum_free is " +
                            base::format_size(options_.minimum_free_memory_bytes)};
  }
  if (options_.maximum_load > 0) {
    const double load = load_per_processor();
    if (load > static_cast<double>(options_.maximum_load))
      return {"load", fmt::format("the load of the last minute is {:.1f} for each processor, load.maximum is {}", load,
                                  options_.maximum_load)};
  }
  return {};
}

void ClaimConditions::check_work_dir() {
  const auto now = std::chrono::steady_clock::now();
  if (!work_dir_suspect_ || now - probed_ < std::chrono::seconds(1)) return;
  probed_ = now;
  try {
    probe_work_dir(scratch_.path());
    work_dir_.clear();
    work_dir_suspect_ = false;
  } catch (const base::Error& error) {
    work_dir_ = error.what();
  }
}

void ClaimConditions::rest(std::string why) {
  network_ = std::move(why);
  rests_until_ = std::chrono::steady_clock::now() + kRest;
}

bool ClaimConditions::look(const std::string& draining) {
  const auto found = draining.empty() ? shortage() : Shortage{"draining", draining};
  const bool changed = found.text != not_claiming_;
  if (found.kind != kind_ && draining.empty()) {
    if (found.text.empty())
      spdlog::info("claiming again");
    else
      spdlog::warn("not claiming: {}", found.text);
  }
  kind_ = found.kind;
  not_claiming_ = found.text;
  return changed;
}

} // namespace holdfast::worker
