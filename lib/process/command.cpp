#include "lib/process/command.hpp"

#include "lib/base/error.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

namespace holdfast::process {

namespace {

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation != nullptr ? std::string("SIG") + abbreviation : "signal " + std::to_string(signal);
}

// Ordered as StartStep, except for `none`, which reads as `execute`.
std::string step_name(StartStep step) {
  constexpr const char* kNames[] = {"cannot execute",          "cannot start a process",
                                    "cannot make its sandbox", "cannot enter its directory",
                                    "cannot set its limits",   "cannot execute"};
  return kNames[std::min(static_cast<std::size_t>(step), std::size(kNames) - 1)];
}

} // namespace

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

EndedBy Exit::ended_by() const {
  constexpr std::array kShort{ENOMEM, EAGAIN, ENFILE, EMFILE, ENOSPC};
  const bool cannot_start = std::find(kShort.begin(), kShort.end(), start_errno) != kShort.end();
  if (shim_lost || failed_step == StartStep::fork || cannot_start) return EndedBy::machine;
  if (exceeded != TreeLimit::none) return EndedBy::limit;
  return terminated ? EndedBy::request : EndedBy::itself;
}

std::string Exit::describe() const {
  if (start_errno != 0) return step_name(failed_step) + ": " + base::errno_text(start_errno);
  if (shim_lost)
    return signal != 0 ? "lost: its shim was killed by " + signal_name(signal) : "lost: its shim ended too early";
  if (signal != 0) return "killed by " + signal_name(signal);
  return "exit " + std::to_string(code);
}

} // namespace holdfast::process
