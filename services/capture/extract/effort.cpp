#include "services/capture/extract/effort.hpp"

#include "services/capture/browser/page_record.hpp"

#include <algorithm>

namespace holdfast::capture {

namespace {

// The behavior for the host of the page: HOST.js, or that of a domain that the host belongs to; any.js is for all.
std::string behavior_for(const std::string& host) {
  constexpr std::size_t kLargest = 256u << 10;
  const std::filesystem::path directory = Job::setting("BROWSER_BEHAVIORS_DIR");
  if (directory.empty() || host.find('/') != std::string::npos) return {};
  if (!std::filesystem::is_directory(directory))
    throw failed("BROWSER_BEHAVIORS_DIR=" + directory.string() + " is no directory that hooks can read");
  for (auto domain = host; !domain.empty(); domain.erase(0, std::min(domain.find('.'), domain.size() - 1) + 1))
    if (auto source = read_file(directory / (domain + ".js"), kLargest); !source.empty()) return source;
  return read_file(directory / "any.js", kLargest);
}

} // namespace

Effort effort_of(const Job& job, bool signed_in) {
  Effort effort;
  const auto name = Job::setting("BROWSER_EFFORT", "normal");
  if (name == "quick") {
    effort = {false, false, Seconds(0.25), Seconds(8), Seconds(8), Seconds(0), Seconds(8), 1, 16'000, 0};
  } else if (name == "thorough") {
    const Seconds most(std::max(job.timeout() / 5, 20.0));
    effort = {true, true, Seconds(1), most, most, most, most, 0.6, 0, 2000};
  } else if (name != "normal") {
    throw failed("BROWSER_EFFORT='" + name + "' is not quick, normal or thorough");
  }
  const double height = Job::number("BROWSER_SCROLL_HEIGHT", 40'000);
  effort.height = name == "quick" ? std::min(height, effort.height) : name == "thorough" ? 5 * height : height;
  effort.own = behavior_for(host_in(job.url()));
  effort.media = Job::size("BROWSER_MEDIA_SIZE", "100m");
  effort.quality = static_cast<int>(Job::number("BROWSER_MEDIA_HEIGHT", effort.quality));
  const auto presses = Job::setting("BROWSER_PRESSES", "auto");
  if (presses != "auto" && presses != "shows" && presses != "all")
    throw failed("BROWSER_PRESSES='" + presses + "' is not auto, shows or all");
  effort.presses = presses == "shows" || (presses == "auto" && signed_in) ? Presses::shows : Presses::all;
  return effort;
}

} // namespace holdfast::capture
