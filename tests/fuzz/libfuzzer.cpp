// The target that HOLDFAST_FUZZ_TARGET names, for libFuzzer, for HOLDFAST_FUZZ_CPU seconds of CPU time. See README.md.
#include "tests/fuzz/targets.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

const holdfast::fuzz::Target* target = nullptr;

// libFuzzer's own limit is wall-clock time, which says nothing of the work done on a busy machine. On SIGUSR1,
// libFuzzer finishes its input, prints its statistics and exits with 0. The input in which the last second falls may
// take as long as -timeout allows.
bool end_after_cpu_seconds(const char* text) {
  char* rest = nullptr;
  const long seconds = std::strtol(text, &rest, 10);
  if (seconds <= 0 || *rest != '\0') return false;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_sec = seconds;
  return timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0 && timer_settime(timer, 0, &when, nullptr) == 0;
}

} // namespace

// Undefined behaviour is a finding: it ends the run, and its input is kept.
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1"; }

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("HOLDFAST_FUZZ_TARGET");
  target = holdfast::fuzz::find_target(name == nullptr ? "" : name);
  const char* seconds = std::getenv("HOLDFAST_FUZZ_CPU");
  if (seconds != nullptr && !end_after_cpu_seconds(seconds)) {
    std::fputs("HOLDFAST_FUZZ_CPU: a number of seconds of CPU time\n", stderr);
    std::exit(64);
  }
  if (target != nullptr) return 0;
  std::fputs("set HOLDFAST_FUZZ_TARGET to one of:", stderr);
  for (const auto& one : holdfast::fuzz::targets())
    std::fprintf(stderr, " %.*s", static_cast<int>(one.name.size()), one.name.data());
  std::fputs("\n", stderr);
  std::exit(64);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
