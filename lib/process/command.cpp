#include "lib/process/command.hpp"

#include "lib/base/error.hpp"

#include <string.h>

namespace holdfast::process {

namespace {

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation != nullptr ? std::string("SIG") + abbreviation : "signal " + std::to_string(signal);
}

std::string step_name(StartStep step) {
  switch (step) {
  case StartStep::fork:
    return "cannot start a process";
  case StartStep::sandbox:
    return "cannot make its sandbox";
  case StartStep::directory:
    return "cannot enter its directory";
  case StartStep::limits:
    return "cannot set its limits";
  case StartStep::none:
  case StartStep::execute:
    break;
  }
  return "cannot execute";
}

} // namespace

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

std::string Exit::describe() const {
  if (start_errno != 0) return step_name(failed_step) + ": " + base::errno_text(start_errno);
  if (shim_lost)
    return signal != 0 ? "lost: its shim was killed by " + signal_name(signal) : "lost: its shim ended too early";
  if (signal != 0) return "killed by " + signal_name(signal);
  return "exit " + std::to_string(code);
}

} // namespace holdfast::process
