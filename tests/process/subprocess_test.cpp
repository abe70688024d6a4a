// Programs started without a shim, and the launcher of Boost.Process that starts both them and shims. Each case holds
// one fault that Boost's own launchers were measured to have.

#include "lib/base/error.hpp"
#include "lib/process/subprocess.hpp"
#include "tests/process/stage.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>

using namespace holdfast;
using namespace holdfast::test;

namespace {

process::Exit outcome(asio::io_context& io, process::Subprocess& program) {
  process::Exit result;
  asio::co_spawn(io, program.wait(), [&](std::exception_ptr, process::Exit exit) { result = std::move(exit); });
  io.restart();
  io.run_for(kDeadline);
  REQUIRE(program.exit().has_value());
  return result;
}

long minor_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

} // namespace

TEST_CASE("a program's exit status or signal is reported, and nothing is left of it") {
  asio::io_context io;
  process::Subprocess first(io.get_executor(), {"/bin/true"});
  CHECK(outcome(io, first).clean()); // whatever is opened once is open now
  const auto descriptors = open_descriptors();
  {
    process::Subprocess program(io.get_executor(), {"/bin/sh", "-c", "exit 3"});
    CHECK(program.pid() > 0);
    const auto exit = outcome(io, program);
    CHECK(exit.code == 3);
    CHECK(exit.describe() == "exit 3");
    CHECK(outcome(io, program).code == 3); // a later call gets the same
  }
  {
    process::Subprocess program(io.get_executor(), {"/bin/sleep", "1000"});
    program.signal(SIGTERM);
    CHECK(outcome(io, program).describe() == "killed by SIGTERM");
    program.signal(SIGKILL); // reaches no process
  }
  CHECK(zombies().empty());
  CHECK(open_descriptors() == descriptors);
}

TEST_CASE("a program that cannot be executed is an error with its name, and no zombie") {
  asio::io_context io;
  asio::steady_timer warm(io); // the reactor's own descriptors
  const auto descriptors = open_descriptors();
  for (int i = 0; i < 50; ++i) {
    try {
      process::Subprocess program(io.get_executor(), {"/nonexistent/program"});
      FAIL("no error");
    } catch (const base::Error& error) {
      CHECK(error.error_class() == base::ErrorClass::system);
      CHECK(std::string(error.what()) == "cannot start /nonexistent/program: No such file or directory");
    }
  }
  CHECK(zombies().empty());
  CHECK(open_descriptors() == descriptors);
}

TEST_CASE("a program that goes out of scope is killed and reaped") {
  asio::io_context io;
  pid_t pid = 0;
  {
    process::Subprocess program(io.get_executor(), {"/bin/sleep", "1000"});
    pid = program.pid();
    io.poll();
  }
  CHECK(::kill(pid, 0) != 0);
  CHECK(zombies().empty());
  io.restart();
  io.run_for(kDeadline); // the wait that was under way comes to its end
  CHECK(io.stopped());
}

TEST_CASE("a program inherits three descriptors and no ignored or blocked signal") {
  asio::io_context io;
  TempDir dir;
  const int extra = ::dup(1);
  ::signal(SIGUSR1, SIG_IGN);
  process::Subprocess program(io.get_executor(), {"/bin/sh", "-c", "exec \"$0\" surroundings >\"$1\"",
                                                  test::program("misbehave").string(), (dir / "out").string()});
  CHECK(outcome(io, program).clean());
  ::signal(SIGUSR1, SIG_DFL);
  ::close(extra);
  const auto said = read_file(dir / "out");
  CAPTURE(said);
  CHECK(said.starts_with("descriptors: 0 1 2\nblocked:\nhandled:\n"));
  CHECK(said.find("leads its group: yes") != std::string::npos);
}

TEST_CASE("threads that start programs at the same time do not block or lose one another's") {
  constexpr int kThreads = 4, kEach = 60;
  const auto descriptors = open_descriptors();
  std::atomic<int> clean{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      asio::io_context io;
      for (int number = 0; number < kEach; ++number) {
        process::Subprocess program(io.get_executor(), {"/bin/true"});
        asio::co_spawn(io, program.wait(), [&](std::exception_ptr, process::Exit exit) { clean += exit.clean(); });
        io.restart();
        io.run_for(kDeadline);
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(clean == kThreads * kEach);
  CHECK(zombies().empty());
  CHECK(open_descriptors() == descriptors);
}

TEST_CASE("starting a program does not copy the pages of a large parent") {
  constexpr std::size_t kSize = 128u << 20;
  void* memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  ::madvise(memory, kSize, MADV_NOHUGEPAGE);
  volatile char* const bytes = static_cast<char*>(memory);
  const auto pages = static_cast<long>(kSize / 4096);
  const auto touch = [&] {
    for (std::size_t at = 0; at < kSize; at += 4096)
      bytes[at] = static_cast<char>(bytes[at] + 1);
  };
  touch();
  asio::io_context io;
  process::Subprocess program(io.get_executor(), {"/bin/true"});
  const long before = minor_faults();
  touch(); // each page of a process that has forked would fault
  CHECK(minor_faults() - before < pages / 8);
  CHECK(outcome(io, program).clean());
  ::munmap(memory, kSize);
}
