#include "lib/archive/attempt.hpp"
#include "lib/base/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/text.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <exception>
#include <thread>

using namespace holdfast;
using archive::OutputFile;
using archive::scan_outputs;
using archive::ScanReport;
using archive::survey_attempt;
using test::TempDir;
using test::text_of;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> paths_of(const ScanReport& report) {
  std::vector<std::string> paths;
  for (const OutputFile& file : report.files)
    paths.push_back(file.path);
  return paths;
}

mode_t mode_of(const fs::path& file) {
  struct stat status {};
  REQUIRE(::lstat(file.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

using Paths = std::vector<std::string>;

} // namespace

TEST_SUITE_BEGIN("scan");

TEST_CASE("outputs are listed by path with type and size") {
  const TempDir dir;
  dir.write("out/b.txt", "abc");
  dir.write("out/sub/a.html", "<p>");
  dir.write("out/A", "%PDF-1.4");
  const auto report = scan_outputs(dir / "out");
  CHECK(paths_of(report) == Paths{"A", "b.txt", "sub/a.html"});
  CHECK(report.files[0].type == "application/pdf");
  CHECK(report.files[1].size == 3);
  CHECK(report.bytes == 3 + 3 + 8);
  CHECK(report.skipped == 0);
}

TEST_CASE("the runner's own files are left out, files that only look like them are not") {
  const TempDir dir;
  const std::string cookie = "0123456789abcdef0123456789abcdef";
  for (const char* suffix : {".stdout.log", ".stderr.log", ".pid", ".sh"}) {
    dir.write("on_Snapshot__51_x.py." + cookie + suffix, "runner");
  }
  dir.write("chrome.pid", "1");
  dir.write("deeper/chrome.pid", "content");
  dir.write("build.sh", "content");
  dir.write("x.0123456789ABCDEF0123456789abcdef.sh", "content");
  dir.write("stdout.log", "content");
  CHECK(paths_of(scan_outputs(dir.path())) ==
        Paths{"build.sh", "chrome.pid", "deeper/chrome.pid", "stdout.log", "x.0123456789ABCDEF0123456789abcdef.sh"});
}

TEST_CASE("executable and set-id bits are stripped and unreadable files made readable") {
  const TempDir dir;
  const auto program = dir.write("out/run", "#!/bin/sh\n");
  const auto locked = dir.write("out/locked/file", "x");
  ::chmod(program.c_str(), 06755);
  ::chmod(locked.c_str(), 0000);
  ::chmod((dir / "out/locked").c_str(), 0000);
  CHECK(scan_outputs(dir / "out").files.size() == 2);
  CHECK(mode_of(program) == 0644);
  CHECK((mode_of(locked) & 0400) == 0400);
}

TEST_CASE("a directory that its hook has locked is unlocked") {
  for (const mode_t mode : {0, 0400, 0300}) {
    TempDir directory;
    const auto top = directory.path() / "plugin";
    fs::create_directory(top);
    std::ofstream(top / "file") << "x";
    REQUIRE(::chmod(top.c_str(), mode) == 0);
    CHECK(paths_of(scan_outputs(top)) == Paths{"file"});
    CHECK((mode_of(top) & 0700) == 0700);
    REQUIRE(::chmod(top.c_str(), mode) == 0);
    CHECK(survey_attempt(directory.path()).at("plugin").trace.size() == 1);
  }
}

TEST_CASE("a trace tells what was changed, not what was read") {
  TempDir directory;
  const auto top = directory.path() / "plugin";
  const auto trace = [&] { return survey_attempt(directory.path())["plugin"].trace; };
  CHECK(trace().empty());
  fs::create_directory(top);
  std::ofstream(top / "file") << "x";
  std::ofstream(top / "hook.0123456789abcdef0123456789abcdef.stdout.log") << "the runner's";
  const auto before = scan_outputs(top).trace;
  CHECK(before.size() == 1);
  CHECK(text_of(top / "file") == "x");
  CHECK(trace() == before);
  std::ofstream(top / "file", std::ios::app) << "y";
  CHECK(trace() != before);
  auto deep = top;
  for (int i = 0; i < 101; ++i)
    deep /= "d";
  fs::create_directories(deep);
  CHECK(trace() != trace()); // like no other
}

TEST_CASE("a link that leaves the directory becomes a text file saying where it pointed") {
  const TempDir dir;
  const auto secret = dir.write("secret.txt", "secret");
  fs::create_directories(dir / "out/sub");
  fs::create_symlink(secret, dir / "out/absolute");
  fs::create_symlink("../secret.txt", dir / "out/relative");
  fs::create_symlink("../../secret.txt", dir / "out/sub/deep");
  fs::create_symlink("..", dir / "out/parent");
  fs::create_symlink("nowhere", dir / "out/dangling");
  fs::create_symlink("loop", dir / "out/loop");
  fs::create_symlink("absolute", dir / "out/chain");
  fs::create_symlink("/proc/self/root/etc/passwd", dir / "out/magic");
  const auto report = scan_outputs(dir / "out");
  CHECK(paths_of(report) == Paths{"absolute.broken-symlink.txt", "chain.broken-symlink.txt",
                                  "dangling.broken-symlink.txt", "loop.broken-symlink.txt", "magic.broken-symlink.txt",
                                  "parent.broken-symlink.txt", "relative.broken-symlink.txt",
                                  "sub/deep.broken-symlink.txt"});
  CHECK(text_of(dir / "out/absolute.broken-symlink.txt").find(secret.string()) != std::string::npos);
  CHECK(text_of(secret) == "secret");
  for (const auto& entry : fs::recursive_directory_iterator(dir / "out"))
    CHECK_FALSE(entry.is_symlink());
}

TEST_CASE("a replaced link never overwrites what has its new name already") {
  const TempDir dir;
  dir.write("out/x.broken-symlink.txt", "mine");
  fs::create_symlink("/etc/passwd", dir / "out/x");
  CHECK(paths_of(scan_outputs(dir / "out")) == Paths{"x.2.broken-symlink.txt", "x.broken-symlink.txt"});
  CHECK(text_of(dir / "out/x.broken-symlink.txt") == "mine");
}

TEST_CASE("links that stay inside are kept, absolute ones are made relative") {
  const TempDir dir;
  dir.write("out/real.txt", "abc");
  fs::create_directories(dir / "out/sub");
  fs::create_symlink("real.txt", dir / "out/near");
  fs::create_symlink("../real.txt", dir / "out/sub/up");
  fs::create_symlink(dir / "out/real.txt", dir / "out/sub/absolute");
  fs::create_directory_symlink(".", dir / "out/self");
  const auto report = scan_outputs(dir / "out");
  CHECK(paths_of(report) == Paths{"near", "real.txt", "sub/absolute", "sub/up"});
  CHECK(fs::read_symlink(dir / "out/sub/absolute") == "../real.txt");
  CHECK(fs::is_symlink(dir / "out/self"));
  CHECK(report.bytes == 3); // the file counts once
  CHECK(report.files[0].size == report.files[1].size);
}

TEST_CASE("sockets and fifos are removed and counted") {
  const TempDir dir;
  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0644) == 0);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (dir / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);
  dir.write("file", "x");
  const auto report = scan_outputs(dir.path());
  CHECK(paths_of(report) == Paths{"file"});
  CHECK(report.skipped == 2);
  CHECK_FALSE(fs::exists(fs::symlink_status(dir / "fifo")));
  CHECK_FALSE(fs::exists(fs::symlink_status(dir / "socket")));
}

TEST_CASE("a file with a second name outside gets a body of its own") {
  const TempDir dir;
  const auto outside = dir.write("outside", "precious");
  ::chmod(outside.c_str(), 0755);
  fs::create_directory(dir / "out");
  fs::create_hard_link(outside, dir / "out/inside");
  scan_outputs(dir / "out");
  CHECK(mode_of(outside) == 0755);
  dir.write("out/inside", "changed");
  CHECK(text_of(outside) == "precious");
}

TEST_CASE("strange names are listed and still lead to their files") {
  const TempDir dir;
  const Paths names{" blank ", "-rf", "a\nb", "back\\slash", "quote\"'<>&", "umlaut-\xc3\xbc"};
  for (const auto& name : names)
    dir.write("out/" + name, name);
  const auto report = scan_outputs(dir / "out");
  CHECK(paths_of(report) == names);
  for (const auto& file : report.files)
    CHECK(text_of(dir / "out" / file.path) == file.path);
}

TEST_CASE("names that are not UTF-8 are renamed to what is reported, without a collision") {
  const TempDir dir;
  dir.write("out/caf\xe9", "latin");
  dir.write("out/caf%E9", "spelled");
  dir.write("out/d\xff/inner\xfe.txt", "deep");
  fs::create_directories(dir / "out");
  const auto report = scan_outputs(dir / "out");
  CHECK(paths_of(report) == Paths{"caf%E9", "caf%E9~1", "d%FF/inner%FE.txt"});
  CHECK(text_of(dir / "out/caf%E9") == "spelled");
  CHECK(text_of(dir / "out/caf%E9~1") == "latin");
  CHECK(text_of(dir / "out/d%FF/inner%FE.txt") == "deep");
}

TEST_CASE("a tree deeper than the bound is cut off without exhausting anything") {
  const TempDir dir;
  fs::create_directory(dir / "out");
  dir.write("out/top.txt", "x");
  int fd = ::open((dir / "out").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  for (int level = 0; level < 1500; ++level) { // beyond PATH_MAX and the descriptor limit
    REQUIRE(::mkdirat(fd, "a-directory", 0755) == 0);
    const int next = ::openat(fd, "a-directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(fd);
    REQUIRE(next >= 0);
    fd = next;
  }
  ::close(::openat(fd, "bottom.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ::close(fd);
  const auto report = scan_outputs(dir / "out");
  CHECK(paths_of(report) == Paths{"top.txt"});
  CHECK(report.skipped == 0);
  REQUIRE(report.lost.size() == 1);
  CHECK(report.lost[0].starts_with("a-directory/a-directory/"));
  int depth = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir / "out"))
    depth += entry.is_directory() ? 1 : 0;
  CHECK(depth < 100);
}

TEST_CASE("a file whose path is too long is removed and named") {
  const TempDir dir;
  fs::create_directory(dir / "out");
  int fd = ::open((dir / "out").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::string name(250, 'n');
  for (int level = 0; level < 12; ++level) {
    REQUIRE(::mkdirat(fd, name.c_str(), 0755) == 0);
    const int next = ::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(fd);
    REQUIRE(next >= 0);
    fd = next;
  }
  ::close(::openat(fd, "lost.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ::close(fd);
  dir.write("out/kept.txt", "x");
  const auto report = scan_outputs(dir / "out");
  CHECK(paths_of(report) == Paths{"kept.txt"});
  REQUIRE(report.lost.size() == 1);
  CHECK(report.lost[0].starts_with(name + "/" + name));
}

TEST_CASE("an attempt is weighed by name without reading it") {
  const TempDir dir;
  dir.write("attempt/page/page.txt", std::string(5000, 'x'));
  dir.write("attempt/page/on_Snapshot__10_page.0123456789abcdef0123456789abcdef.stdout.log", "1234");
  dir.write("attempt/page/deep/er/on.pid", "12");
  dir.write("attempt/elsewhere/sparse", "");
  REQUIRE(::truncate((dir / "attempt/elsewhere/sparse").c_str(), 1l << 40) == 0);
  fs::create_hard_link(dir / "attempt/elsewhere/sparse", dir / "attempt/elsewhere/again");
  fs::permissions(dir / "attempt/page/deep", fs::perms::none);
  fs::create_symlink("/", dir / "attempt/link");
  auto survey = survey_attempt(dir / "attempt");
  CHECK(survey["page"].apparent == 5006);
  CHECK(survey["page"].allocated >= 5006);
  CHECK(survey["page"].logs == 4);
  CHECK(survey["elsewhere"].apparent == 2ull << 40);
  CHECK(survey["elsewhere"].allocated < 1u << 20);
  CHECK(survey["link"].apparent == 0);
  archive::drop_outputs(dir / "attempt/page");
  CHECK(survey_attempt(dir / "attempt")["page"].apparent == 4);
}

TEST_CASE("a scan ends when its attempt is over") {
  const TempDir dir;
  dir.write("out/large", "");
  REQUIRE(::truncate((dir / "out/large").c_str(), 1l << 40) == 0);
  const std::atomic<bool> cancelled{true};
  archive::ScanLimits limits;
  limits.cancelled = &cancelled;
  CHECK_THROWS_WITH_AS(scan_outputs(dir / "out", limits), doctest::Contains("attempt is over"), base::Error);
}

TEST_CASE("files beyond the limit are counted, and the listed ones are always the same") {
  const TempDir dir;
  for (int i = 0; i < 30; ++i)
    dir.write("file-" + std::to_string(100 + i), "x");
  const auto report = scan_outputs(dir.path(), {.files = 10});
  CHECK(report.files.size() == 10);
  CHECK(report.skipped == 20);
  CHECK(report.files.back().path == "file-109");
  CHECK(paths_of(scan_outputs(dir.path(), {.files = 10})) == paths_of(report));
}

TEST_CASE("a directory that is missing is an error that names it") {
  const TempDir dir;
  CHECK_THROWS_WITH_AS(scan_outputs(dir / "missing"), doctest::Contains("missing"), base::Error);
}

TEST_CASE("two that remove the same attempt agree, and one that has gone is removed") {
  const TempDir dir;
  archive::remove_attempt(dir / "missing" / "snapshot" / "a1");
  archive::remove_directory(dir / "missing" / "scratch");
  for (int round = 0; round < 100; ++round) {
    for (int file = 0; file < 30; ++file)
      dir.write("work/snapshot/a1/plugin/" + std::to_string(file % 5) + "/deep/" + std::to_string(file), "x");
    std::barrier both(2);
    std::array<std::exception_ptr, 2> thrown;
    const auto remove = [&](std::exception_ptr& trouble) {
      both.arrive_and_wait();
      try {
        archive::remove_attempt(dir / "work" / "snapshot" / "a1");
      } catch (...) {
        trouble = std::current_exception();
      }
    };
    std::thread other(remove, std::ref(thrown[0]));
    remove(thrown[1]);
    other.join();
    for (const auto& trouble : thrown)
      if (trouble) std::rethrow_exception(trouble);
    REQUIRE_FALSE(fs::exists(dir / "work" / "snapshot"));
  }
}

TEST_CASE("a snapshot's directory is filed by month, host and id") {
  CHECK(archive::snapshot_directory("2026-08-01T09:14:22Z", "example.com", "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21") ==
        "2026/08/example.com/0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21");
  CHECK_THROWS_AS(archive::snapshot_directory("yesterday", "example.com", "00"), base::Error);
  CHECK_THROWS_AS(archive::snapshot_directory("2026-08-01", "..", "00"), base::Error);
  CHECK_THROWS_AS(archive::snapshot_directory("2026-08-01", "a/b", "00"), base::Error);
  CHECK_THROWS_AS(archive::snapshot_directory("2026-08-01", "a", "../00"), base::Error);
}

TEST_CASE("the digest of one file") {
  const TempDir dir;
  dir.write("abc", "abc");
  CHECK(archive::sha256_file(dir / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_THROWS_AS(archive::sha256_file(dir / "missing"), base::Error);
}

TEST_SUITE_END();
