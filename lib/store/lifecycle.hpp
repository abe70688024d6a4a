#pragma once
// The state machines as rows: from, event, to, and the sentence a log prints. Their twin is holdfast.lifecycle_edge
// (migrations/0002_lifecycle.sql), where a trigger enforces them; tests/store holds the two equal. Constant data.

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
  Edge{"crawl",          "queued",    "seal",         "sealed",    "none of its seeds gave a snapshot"},
  Edge{"crawl",          "queued",    "pause",        "paused",    "somebody paused it"},
  Edge{"crawl",          "queued",    "cancel",       "sealed",    "somebody cancelled it"},
  Edge{"crawl",          "started",   "seal",         "sealed",    "its last snapshot was sealed"},
  Edge{"crawl",          "started",   "pause",        "paused",    "somebody paused it"},
  Edge{"crawl",          "started",   "cancel",       "sealed",    "somebody cancelled it"},
  Edge{"crawl",          "paused",    "resume",       "queued",    "somebody resumed it"},
  Edge{"crawl",          "paused",    "cancel",       "sealed",    "somebody cancelled it"},
  Edge{"snapshot",       "queued",    "start",        "started",   "its owner is about to run its first hook"},
  Edge{"snapshot",       "queued",    "pause",        "paused",    "it or its crawl was paused"},
  Edge{"snapshot",       "queued",    "refuse",       "sealed",    "its URL is not allowed"},
  Edge{"snapshot",       "queued",    "quarantine",   "sealed",    "its owners kept dying"},
  Edge{"snapshot",       "queued",    "cancel",       "sealed",    "it or its crawl was cancelled"},
  Edge{"snapshot",       "started",   "seal",         "sealed",    "every hook has ended and its files are published"},
  Edge{"snapshot",       "started",   "release",      "queued",    "its owner put it back"},
  Edge{"snapshot",       "started",   "lapse",        "queued",    "its owner was lost"},
  Edge{"snapshot",       "started",   "pause",        "paused",    "it or its crawl was paused"},
  Edge{"snapshot",       "started",   "refuse",       "sealed",    "its URL is not allowed"},
  Edge{"snapshot",       "started",   "quarantine",   "sealed",    "its owners kept dying"},
  Edge{"snapshot",       "started",   "cancel",       "sealed",    "it or its crawl was cancelled"},
  Edge{"snapshot",       "paused",    "resume",       "queued",    "it or its crawl was resumed"},
  Edge{"snapshot",       "paused",    "cancel",       "sealed",    "it or its crawl was cancelled"},
  Edge{"archive_result", "queued",    "start",        "started",   "its hook was started"},
  Edge{"archive_result", "queued",    "skip",         "skipped",   "its hook cannot run here"},
  Edge{"archive_result", "started",   "succeed",      "succeeded", "its hook did what it is for"},
  Edge{"archive_result", "started",   "fail",         "failed",    "its hook failed"},
  Edge{"archive_result", "started",   "skip",         "skipped",   "its hook had nothing to run with"},
  Edge{"archive_result", "started",   "find_nothing", "noresults", "its hook found nothing"},
  Edge{"binary",         "queued",    "install",      "installed", "the program was found"},
  Edge{"binary",         "installed", "recheck",      "queued",    "the program is gone or has changed"},
  Edge{"crawl_session",  "opening",   "open",         "ready",     "its crawl hooks are done or ready"},
  Edge{"crawl_session",  "opening",   "fail",         "failed",    "a crawl hook failed"},
  Edge{"crawl_session",  "opening",   "drain",        "draining",  "its node is leaving"},
  Edge{"crawl_session",  "opening",   "lapse",        "closed",    "its node was given up"},
  Edge{"crawl_session",  "ready",     "fail",         "failed",    "a crawl hook that should stay has ended"},
  Edge{"crawl_session",  "ready",     "drain",        "draining",  "nobody needs it any more, or its node is leaving"},
  Edge{"crawl_session",  "ready",     "lapse",        "closed",    "its node was given up"},
  Edge{"crawl_session",  "draining",  "close",        "closed",    "its hooks have ended"},
  Edge{"crawl_session",  "draining",  "lapse",        "closed",    "its node was given up"},
  Edge{"process",        "running",   "exit",         "exited",    "it left, or its lease lapsed"},
  Edge{"delivery",       "waiting",   "deliver",      "delivered", "its receiver said yes"},
  Edge{"delivery",       "waiting",   "give_up",      "given_up",  "its receiver did not say yes for too long"},
  Edge{"delivery",       "given_up",  "retry",        "waiting",   "somebody wants it tried again"},
};
// clang-format on

inline constexpr std::array<std::string_view, 7> kLifecycles = {"crawl",         "snapshot", "archive_result", "binary",
                                                                "crawl_session", "process",  "delivery"};

// One event leads from a state to one other state only.
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

// Whether `to` can be reached from `from`; the graphs are small, so the depth bound is generous.
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
