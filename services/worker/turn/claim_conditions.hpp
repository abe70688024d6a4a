#pragma once
// Decides whether this machine takes new work. Owned by Worker; main thread only.

#include "services/worker/machine/archive_watch.hpp"
#include "services/worker/machine/scratch.hpp"
#include "services/worker/options.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::worker {

class ClaimConditions {
public:
  ClaimConditions(const Options& options, const Scratch& scratch, const ArchiveWatch& archive)
      : options_(options), scratch_(scratch), archive_(archive) {}

  // Resource that this machine lacks. `kind` stays while its figures change.
  struct Shortage {
    std::string_view kind{};
    std::string text{}; // for users; empty: none
  };
  Shortage shortage();
  // A page could not be archived for the network of this machine: the next is tried in a minute.
  void rest(std::string why);
  // A file or directory of work_dir could not be made, perhaps: the next check tries it, and all until it is possible.
  void suspect_work_dir() noexcept { work_dir_suspect_ = true; }
  // Sets how far this machine's clock is ahead of the database's; negative: behind.
  void set_clock_ahead(std::chrono::milliseconds ahead) noexcept { clock_ahead_ = ahead; }
  // Checks again; logs a change and returns true. `draining`: why it leaves, which is logged already; empty: it does
  // not.
  bool look(const std::string& draining);
  // Returns why no new work was taken at the last check; empty: it was.
  const std::string& not_claiming() const noexcept { return not_claiming_; }

private:
  void check_work_dir();
  std::optional<std::uint64_t> memory(); // available; at most a second old

  const Options& options_;
  const Scratch& scratch_;
  const ArchiveWatch& archive_;
  std::string not_claiming_;
  std::string_view kind_;          // of it
  std::string network_, work_dir_; // their errors
  bool work_dir_suspect_{false};
  std::chrono::milliseconds clock_ahead_{0};
  std::chrono::steady_clock::time_point rests_until_{}, probed_{};
  std::optional<std::uint64_t> memory_;
  std::chrono::steady_clock::time_point memory_read_{};
};

} // namespace holdfast::worker
