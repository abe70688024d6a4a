#include "lib/base/error.hpp"
#include "lib/base/test_point.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>

namespace holdfast::base {

namespace {

constexpr std::string_view kPrefix = "HOLDFAST_TEST_";

struct Fault {
  std::string action, point;
  int pass{1};
  std::atomic<int> passed{0};
};

std::deque<Fault> read_faults() {
  std::deque<Fault> faults;
  const char* text = std::getenv("HOLDFAST_TEST_POINT");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    auto& fault = faults.emplace_back();
    const auto colon = std::min(one.find(':'), one.size());
    fault.action = one.substr(0, colon);
    one.remove_prefix(std::min(colon + 1, one.size()));
    const auto second = std::min(one.find(':'), one.size());
    fault.point = one.substr(0, second);
    one.remove_prefix(std::min(second + 1, one.size()));
    std::from_chars(one.data(), one.data() + one.size(), fault.pass);
  }
  return faults;
}

} // namespace

bool test_switch(const char* name) { return std::getenv((std::string(kPrefix) + name).c_str()) != nullptr; }

bool is_test_variable(std::string_view variable) { return variable.starts_with(kPrefix); }

void test_point(const char* name) {
  static std::deque<Fault> faults = read_faults();
  for (auto& fault : faults) {
    if (fault.point != name || ++fault.passed != fault.pass) continue;
    if (fault.action == "kill") ::kill(::getpid(), SIGKILL);
    // To this thread: one that is sent to the process may stop another first, and this one goes on for a while.
    if (fault.action.starts_with("stop")) ::raise(SIGSTOP);
    while (fault.action == "hang")
      ::pause();
    if (fault.action.ends_with("fail"))
      throw Error(ErrorClass::temporary, "the answer was lost, as the test wanted it");
  }
}

} // namespace holdfast::base
