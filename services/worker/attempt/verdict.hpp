#pragma once
// Decides the outcome of a snapshot from the ends of its hooks. Pure.

#include "lib/hooks/record.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::worker {

struct HookEnd {
  hooks::Status status{hooks::Status::failed};
  bool captures_page{true};                      // as its plugin says (hooks::Plugin)
  std::optional<hooks::ResponseRecord> response; // what the server answered it, if it has told
  std::string error{};                           // of a failed one
};

struct Verdict {
  std::string outcome;                           // succeeded, partial, failed
  std::string reason;                            // of failed, and of partial where a hook does not say it itself
  std::optional<hooks::ResponseRecord> response; // of the page
};

// Decides the outcome. The page is archived if a hook that captures pages has succeeded; if no such hook was selected,
// any hook will do. It is partial if some other hook failed. An answer of 400 or above is never a page: then it has
// failed, even if hooks have saved files of it. The response that counts is that of the last hook that captured the
// page, else the last reported one. `unreachable`: the reason of a hook for an unreachable page; empty: none.
// `overdue`: the time of the page was over before its hooks had ended: then it is partial at best.
Verdict judge_hooks(const std::vector<HookEnd>& hooks, const std::string& unreachable, bool overdue = false);

// Why no further hook of the page is started; empty: the next one is.
std::string reason_to_skip(const std::vector<HookEnd>& hooks, const std::string& unreachable, bool overdue);

// Added to the error of a hook that failed after the time of its page.
inline constexpr const char* kTimeOver = "the time of the page was over";

} // namespace holdfast::worker
