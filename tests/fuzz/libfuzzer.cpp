// The target that HOLDFAST_FUZZ_TARGET names, for libFuzzer. See README.md.
#include "tests/fuzz/targets.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

const holdfast::fuzz::Target* target = nullptr;

} // namespace

// Undefined behaviour is a finding: it ends the run, and its input is kept.
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1"; }

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("HOLDFAST_FUZZ_TARGET");
  target = holdfast::fuzz::find_target(name == nullptr ? "" : name);
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
