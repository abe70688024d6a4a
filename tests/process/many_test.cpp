// Two hundred at once.

#include "tests/process/stage.hpp"

#include <boost/asio/co_spawn.hpp>
#include <doctest/doctest.h>

#include <signal.h>

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("two hundred hooks of five kinds at once leave no descriptor, no zombie and no process") {
  Stage stage;
  CHECK(stage.run({"exit", "0"}).clean()); // whatever is opened once is open now
  const std::size_t descriptors = open_descriptors();

  constexpr int kHooks = 200;
  std::vector<std::unique_ptr<process::Child>> children;
  std::vector<process::Exit> exits(kHooks);
  int ended = 0;
  for (int i = 0; i < kHooks; ++i) {
    auto command = stage.command({});
    command.stdout_path = stage.dir / ("out." + std::to_string(i));
    constexpr const char* kinds[][2] = {{"exit", "3"}, {"die", "6"}, {"stay", ""}, {"deaf", ""}, {"leave-daemon", ""}};
    command.argv = {program("misbehave").string(), kinds[i % 5][0], kinds[i % 5][1]};
    children.push_back(stage.start(command));
    asio::co_spawn(stage.io, children.back()->wait(), [&, i](std::exception_ptr, process::Exit exit) {
      exits[static_cast<std::size_t>(i)] = std::move(exit);
      ++ended;
    });
  }
  for (int i = 0; i < kHooks; ++i) {
    if (i % 5 != 2 && i % 5 != 3) continue;
    const auto file = stage.dir / ("out." + std::to_string(i));
    REQUIRE(stage.pump_until([&] { return read_file(file) == "ready\n"; }));
    children[static_cast<std::size_t>(i)]->terminate(std::chrono::milliseconds(50));
  }
  REQUIRE(stage.pump_until([&] { return ended == kHooks; }));

  for (int i = 0; i < kHooks; ++i) {
    const auto& exit = exits[static_cast<std::size_t>(i)];
    CAPTURE(i);
    CAPTURE(exit.describe());
    switch (i % 5) {
    case 0:
      CHECK(exit.code == 3);
      break;
    case 1:
      CHECK(exit.signal == SIGABRT);
      break;
    case 2: // on a busy machine the grace may be over before the signal is taken
      CHECK((exit.signal == SIGTERM || exit.signal == SIGKILL));
      break;
    case 3:
      CHECK(exit.signal == SIGKILL);
      break;
    default:
      CHECK(exit.clean());
      CHECK(exit.leftovers == 1);
    }
  }
  children.clear();
  CHECK(open_descriptors() == descriptors);
  CHECK(zombies().empty());
  CHECK(stage.survivors().empty());
}
