#pragma once
// The state machines as rows: from, event, to, and the sentence a log prints. Their twin is holdfast.lifecycle_edge
// (migrations/0001_basics.sql), where triggers enforce them; tests/store holds the two equal. Constant data.

#include <array>
#include <string>
#include <string_view>

namespace holdfast::store {

struct Edge {
  std::string_view lifecycle, from, event, to, why;
};

// clang-format off
inline constexpr std::array kEdges = {
  Edge{"crawl",          "queued",    "start",        "started",   "its first seeds became snapshots"},
  Edge{"crawl",          "queued",    "seal",         "sealed",    "none of its seeds became a snapshot"},
  Edge{"crawl",          "queued",    "pause",        "paused",    "it was paused"},
  Edge{"crawl",          "queued",    "cancel",       "sealed",    "it was cancelled"},
  Edge{"crawl",          "started",   "seal",         "sealed",    "its last snapshot was sealed"},
  Edge{"crawl",          "started",   "pause",        "paused",    "it was paused"},
  Edge{"crawl",          "started",   "cancel",       "sealed",    "it was cancelled"},
  Edge{"crawl",          "paused",    "resume",       "queued",    "it was resumed"},
  Edge{"crawl",          "paused",    "cancel",       "sealed",    "it was cancelled"},
  Edge{"snapshot",       "queued",    "start",        "started",   "a worker claimed it"},
  Edge{"snapshot",       "queued",    "pause",        "paused",    "it was paused, or its scope excludes it"},
  Edge{"snapshot",       "queued",    "cancel",       "sealed",    "it or its crawl was cancelled"},
  Edge{"snapshot",       "started",   "seal",         "sealed",    "every hook has ended and its files are published"},
  Edge{"snapshot",       "started",   "release",      "queued",    "its worker released it"},
  Edge{"snapshot",       "started",   "lapse",        "queued",    "its worker lapsed"},
  Edge{"snapshot",       "started",   "pause",        "paused",    "it was paused, or its scope excludes it"},
  Edge{"snapshot",       "started",   "refuse",       "sealed",    "its URL is not allowed"},
  Edge{"snapshot",       "started",   "quarantine",   "sealed",    "its workers lapsed too often"},
  Edge{"snapshot",       "started",   "cancel",       "sealed",    "it or its crawl was cancelled"},
  Edge{"snapshot",       "paused",    "resume",       "queued",    "it was resumed, or its scope includes it"},
  Edge{"snapshot",       "paused",    "cancel",       "sealed",    "it or its crawl was cancelled"},
  Edge{"archive_result", "started",   "succeed",      "succeeded", "its hook did its work"},
  Edge{"archive_result", "started",   "fail",         "failed",    "its hook failed"},
  Edge{"archive_result", "started",   "skip",         "skipped",   "its hook had nothing to run with"},
  Edge{"archive_result", "started",   "find_nothing", "noresults", "its hook found nothing"},
  Edge{"binary",         "queued",    "install",      "installed", "the binary was found"},
  Edge{"binary",         "installed", "recheck",      "queued",    "the binary is gone or has changed"},
  Edge{"session",        "opening",   "open",         "ready",     "its crawl hooks are done or ready"},
  Edge{"session",        "opening",   "fail",         "failed",    "a crawl hook failed"},
  Edge{"session",        "opening",   "drain",        "draining",  "its worker is stopping"},
  Edge{"session",        "opening",   "lapse",        "closed",    "its worker lapsed"},
  Edge{"session",        "ready",     "fail",         "failed",    "a crawl hook that should stay has ended"},
  Edge{"session",        "ready",     "drain",        "draining",  "no page needs it, or its worker is stopping"},
  Edge{"session",        "ready",     "lapse",        "closed",    "its worker lapsed"},
  Edge{"session",        "draining",  "close",        "closed",    "its hooks have ended"},
  Edge{"session",        "draining",  "lapse",        "closed",    "its worker lapsed"},
  Edge{"process",        "running",   "exit",         "exited",    "it stopped, or its lease lapsed"},
  Edge{"delivery",       "waiting",   "deliver",      "delivered", "its receiver accepted it"},
  Edge{"delivery",       "waiting",   "give_up",      "given_up",  "its receiver did not accept it in time"},
  Edge{"delivery",       "given_up",  "retry",        "waiting",   "it was retried by hand"},
};
// clang-format on

inline constexpr std::array<std::string_view, 7> kLifecycles = {"crawl",   "snapshot", "archive_result", "binary",
                                                                "session", "process",  "delivery"};

// Returns true if an event leads from a state to one other state only.
constexpr bool is_deterministic() {
  for (std::size_t i = 0; i < kEdges.size(); ++i)
    for (std::size_t j = i + 1; j < kEdges.size(); ++j)
      if (kEdges[i].lifecycle == kEdges[j].lifecycle && kEdges[i].from == kEdges[j].from &&
          kEdges[i].event == kEdges[j].event)
        return false;
  return true;
}

constexpr bool leaves(std::string_view lifecycle, std::string_view state) {
  for (const Edge& edge : kEdges)
    if (edge.lifecycle == lifecycle && edge.from == state) return true;
  return false;
}

// Returns true if `to` can be reached from `from`; the graphs are small, so the depth bound is generous.
constexpr bool reaches(std::string_view lifecycle, std::string_view from, std::string_view to, int depth = 6) {
  if (from == to) return true;
  if (depth == 0) return false;
  for (const Edge& edge : kEdges)
    if (edge.lifecycle == lifecycle && edge.from == from && reaches(lifecycle, edge.to, to, depth - 1)) return true;
  return false;
}

constexpr bool every_state_can_be_sealed(std::string_view lifecycle) {
  for (const Edge& edge : kEdges)
    if (edge.lifecycle == lifecycle && !reaches(lifecycle, edge.from, "sealed")) return false;
  return true;
}

static_assert(is_deterministic());
static_assert(!leaves("crawl", "sealed") && !leaves("snapshot", "sealed"), "sealed is final");
static_assert(every_state_can_be_sealed("crawl") && every_state_can_be_sealed("snapshot"), "nothing is stuck for ever");

// The lifecycle as a Mermaid state diagram, for `holdfast inspect lifecycle --mermaid`.
std::string mermaid(std::string_view lifecycle);

} // namespace holdfast::store
