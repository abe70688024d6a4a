#include "services/worker/attempt/verdict.hpp"

#include <algorithm>

namespace holdfast::worker {

namespace {

constexpr int kFirstError = 400; // of the statuses of HTTP

bool succeeded(const HookEnd& hook) { return hook.status == hooks::Status::succeeded; }

std::optional<hooks::ResponseRecord> response_of(const std::vector<HookEnd>& hooks) {
  const HookEnd* best = nullptr;
  const auto captured = [](const HookEnd& hook) { return hook.captures_page && succeeded(hook); };
  for (const auto& hook : hooks)
    if (hook.response && (best == nullptr || captured(hook) || !captured(*best))) best = &hook;
  return best == nullptr ? std::nullopt : best->response;
}

bool is_captured(const std::vector<HookEnd>& hooks) {
  return std::any_of(hooks.begin(), hooks.end(),
                     [](const HookEnd& hook) { return hook.captures_page && succeeded(hook); });
}

// Returns ": " and why the first plugin that captures pages has failed; empty if none has.
std::string first_error(const std::vector<HookEnd>& hooks) {
  for (const auto& hook : hooks)
    if (hook.captures_page && hook.status == hooks::Status::failed && !hook.error.empty()) return ": " + hook.error;
  return {};
}

} // namespace

std::string reason_to_skip(const std::vector<HookEnd>& hooks, const std::string& unreachable, bool overdue) {
  if (overdue) return kTimeOver;
  return unreachable.empty() || is_captured(hooks) ? "" : "the page cannot be fetched: " + unreachable;
}

Verdict judge_hooks(const std::vector<HookEnd>& hooks, const std::string& unreachable, bool overdue) {
  Verdict verdict{"failed", "", response_of(hooks)};
  const bool any_succeeded = std::any_of(hooks.begin(), hooks.end(), succeeded);
  const bool any_failed =
      std::any_of(hooks.begin(), hooks.end(), [](const HookEnd& hook) { return hook.status == hooks::Status::failed; });
  const bool can_capture =
      std::any_of(hooks.begin(), hooks.end(), [](const HookEnd& hook) { return hook.captures_page; });
  const bool captured = is_captured(hooks);
  if (verdict.response && verdict.response->status >= kFirstError)
    verdict.reason = "HTTP " + std::to_string(verdict.response->status);
  else if (!captured && !unreachable.empty())
    verdict.reason = unreachable;
  else if (!any_succeeded)
    verdict.reason = "no hook succeeded";
  else if (can_capture && !captured)
    verdict.reason = "no plugin captured the page" + first_error(hooks);
  else
    verdict.outcome = any_failed || overdue ? "partial" : "succeeded";
  if (overdue && verdict.outcome == "partial") verdict.reason = "its time was over (worker.snapshot_timeout)";
  return verdict;
}

} // namespace holdfast::worker
