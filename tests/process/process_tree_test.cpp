// The shim's two ways of finding descendants must agree: the second is for kernels that lack the first.

#include "lib/process/shim/process_tree.hpp"
#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::vector<pid_t> sorted(const process::tree::PidList& list) {
  std::vector<pid_t> pids(list.pids, list.pids + list.count);
  std::ranges::sort(pids);
  return pids;
}

} // namespace

TEST_CASE("descendants are the same by the kernel's lists and by everyone's parent") {
  Stage stage;
  const auto child = stage.start({"chain", "50"});
  REQUIRE(stage.wait_ready());
  static process::tree::PidList by_children, by_parents;
  process::tree::descendants_by_parents(child->shim_pid(), by_parents);
  CHECK(by_parents.count == 51);
  if (process::tree::kernel_lists_children()) {
    process::tree::descendants_by_children(child->shim_pid(), by_children);
    CHECK(sorted(by_children) == sorted(by_parents));
  }
  child->kill();
  (void)stage.finish(*child);
}
