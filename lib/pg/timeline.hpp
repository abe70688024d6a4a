#pragma once
// Distinguishes the primary from an old primary. All servers of a database with standbys share a system identifier; a
// standby that is promoted begins a new timeline, whose number is greater. This process remembers the greatest timeline
// of each system that it has seen. A session whose server is on an earlier one is superseded: the connection refuses to
// use it.
//
// Two standbys that are promoted at the same time may begin the same timeline; nothing here notices that.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace holdfast::pg {

// Shares seen timelines with earlier and later processes through `file`. A missing directory is not created: then only
// this process remembers. Any thread.
void remember_timelines(const std::filesystem::path& file);

// The server of one session. A standby, and a server without a timeline, has timeline 0 and is never superseded.
struct SessionTimeline {
  std::uint32_t own{0};
  bool news{false};                                         // the first session of this process that sees it
  std::shared_ptr<const std::atomic<std::uint32_t>> newest; // seen of its system

  bool superseded() const noexcept { return newest && own < newest->load(std::memory_order_relaxed); }
};

// Notes that a server of this system is on this timeline.
SessionTimeline see_timeline(const std::string& system, std::uint32_t timeline);

// The file in which timelines are remembered; empty if there is none. Any thread.
std::filesystem::path timelines_file();

} // namespace holdfast::pg
