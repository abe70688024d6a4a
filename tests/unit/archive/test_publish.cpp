#include "lib/archive/attempt.hpp"
#include "lib/base/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/text.hpp"
#include "tests/unit/archive/error_of.hpp"
#include "tests/unit/archive/private_mounts.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>

using namespace holdfast;
using archive::publish;
using archive::Root;
using archive::SnapshotView;
using base::ErrorClass;
using test::error_of;
using test::TempDir;
using test::text_of;
namespace fs = std::filesystem;

namespace {

const std::string kCollection = "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21";
const fs::path kSnapshot = "2026/08/example.com/0198f7c2-5a10-7c33-9a5e-000000000001";

SnapshotView attempt_view(std::int64_t fence = 3) {
  SnapshotView view;
  view.id = "0198f7c2-5a10-7c33-9a5e-000000000001";
  view.url = "https://example.com/";
  view.title = "Example";
  view.outcome = "succeeded";
  view.fence = fence;
  view.ended_at = "2026-08-01T09:14:22Z";
  return view;
}

archive::Published publish_sample(const Root& root, const TempDir& dir, std::int64_t fence = 3) {
  auto view = attempt_view(fence);
  return publish(root, dir / "attempt", kSnapshot, view);
}

// Runs the real `sha256sum -c --strict` in `directory`; its exit code.
int check_with_sha256sum(const fs::path& directory) {
  const std::string command =
      "cd '" + directory.string() + "' && exec sha256sum --check --strict --quiet manifest-sha256.txt";
  const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t pid = -1;
  REQUIRE(::posix_spawnp(&pid, "sh", nullptr, nullptr, const_cast<char**>(argv), environ) == 0);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void make_attempt(const TempDir& dir) {
  dir.write("attempt/title/title.txt", "Example");
  dir.write("attempt/dom/output.html", "<p>hello");
  dir.write("attempt/dom/on_Snapshot__53_dom.0123456789abcdef0123456789abcdef.stderr.log", "noise");
}

using Names = std::vector<std::string>;

// A directory on another file system than the temporary ones, or none.
class OtherDisk {
public:
  explicit OtherDisk(const fs::path& than) {
    std::string name = "/dev/shm/holdfast-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return;
    path_ = name;
    struct stat here {};
    struct stat there {};
    differs_ = ::stat(name.c_str(), &there) == 0 && ::stat(than.c_str(), &here) == 0 && here.st_dev != there.st_dev;
  }
  ~OtherDisk() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  OtherDisk(const OtherDisk&) = delete;
  OtherDisk& operator=(const OtherDisk&) = delete;

  bool differs() const { return differs_; }
  const fs::path& path() const { return path_; }

private:
  fs::path path_;
  bool differs_{false};
};

void check_published(const Root& root, const archive::Published& published) {
  const auto directory = root.path() / published.directory;
  CHECK(published.directory == kSnapshot / "a3");
  CHECK(names_in(directory) == Names{"dom", "index.html", "index.jsonl", "manifest-sha256.txt", "title"});
  CHECK(names_in(directory.parent_path()) == Names{"a3"});
  CHECK(check_with_sha256sum(directory) == 0);
  CHECK(archive::sha256_file(directory / "manifest-sha256.txt") == published.manifest_sha256);
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const auto mode = entry.status().permissions();
    CHECK(mode == static_cast<fs::perms>(entry.is_directory() ? 0755 : 0444));
    if (!entry.is_regular_file()) continue;
    bytes += entry.file_size();
    ++files;
  }
  CHECK(published.bytes == bytes);
  CHECK(published.files == files);
  CHECK(files == 6);
}

} // namespace

TEST_SUITE_BEGIN("publish");

TEST_CASE("an attempt on the archive's own file system is moved into place, complete and read-only") {
  const TempDir dir;
  make_attempt(dir);
  const auto root = Root::open(dir / "archive", kCollection, true);
  check_published(root, publish_sample(root, dir));
  CHECK_FALSE(fs::exists(dir / "attempt"));
}

TEST_CASE("an attempt on another file system is copied into place and its source removed") {
  const TempDir dir;
  const OtherDisk other(dir.path());
  if (!other.differs()) {
    MESSAGE("skipped: there is no second file system at /dev/shm");
    return;
  }
  make_attempt(dir);
  fs::create_symlink("title.txt", dir / "attempt/title/link");
  const auto root = Root::open(other.path() / "archive", kCollection, true);
  const auto published = publish_sample(root, dir);
  CHECK(fs::read_symlink(root.path() / published.directory / "title/link") == "title.txt");
  fs::remove(root.path() / published.directory / "title/link");
  CHECK_FALSE(fs::exists(dir / "attempt"));
  CHECK(published.files == 6);
  CHECK(names_in(root.path() / kSnapshot) == Names{"a3"});
}

TEST_CASE("the copy on another file system passes the same checks as a move") {
  const TempDir dir;
  const OtherDisk other(dir.path());
  if (!other.differs()) {
    MESSAGE("skipped: there is no second file system at /dev/shm");
    return;
  }
  make_attempt(dir);
  const auto root = Root::open(other.path() / "archive", kCollection, true);
  check_published(root, publish_sample(root, dir));
}

TEST_CASE("a copy on another file system keeps the holes of files") {
  const TempDir dir;
  const OtherDisk other(dir.path());
  if (!other.differs()) {
    MESSAGE("skipped: there is no second file system at /dev/shm");
    return;
  }
  constexpr std::uint64_t kSize = 64u << 20;
  dir.write("attempt/page/sparse", "begin");
  REQUIRE(::truncate((dir / "attempt/page/sparse").c_str(), kSize) == 0);
  std::fstream(dir / "attempt/page/sparse", std::ios::in | std::ios::out).seekp(32u << 20) << "middle";
  const auto digest = archive::sha256_file(dir / "attempt/page/sparse");
  const auto root = Root::open(other.path() / "archive", kCollection, true);
  const auto copy = root.path() / publish_sample(root, dir).directory / "page/sparse";
  struct stat status {};
  REQUIRE(::stat(copy.c_str(), &status) == 0);
  CHECK(status.st_size == kSize);
  CHECK(status.st_blocks * 512 < 1 << 20);
  CHECK(archive::sha256_file(copy) == digest);
}

TEST_CASE("a publication that is cancelled publishes nothing and keeps the attempt") {
  const TempDir dir;
  make_attempt(dir);
  const auto root = Root::open(dir / "archive", kCollection, true);
  const std::atomic<bool> cancelled{true};
  auto view = attempt_view();
  const auto error = error_of([&] { publish(root, dir / "attempt", kSnapshot, view, &cancelled); });
  REQUIRE(error);
  CHECK(error->error_class() == ErrorClass::temporary);
  CHECK_FALSE(fs::exists(root.path() / kSnapshot));
  CHECK(fs::exists(dir / "attempt/title/title.txt"));
  publish_sample(root, dir);
}

TEST_CASE("what is listed gets the size and the digest that it is published with") {
  const TempDir dir;
  dir.write("attempt/p/a.txt", "abc");
  fs::create_symlink("a.txt", dir / "attempt/p/link.txt");
  auto view = attempt_view();
  view.results.resize(1);
  view.results[0].plugin = "p";
  view.results[0].files = {{"p/a.txt", "text/plain", 9, ""}, {"p/link.txt", "text/plain", 9, ""}};
  const auto root = Root::open(dir / "archive", kCollection, true);
  const auto published = publish(root, dir / "attempt", kSnapshot, view);
  const std::string digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  for (const auto& file : view.results[0].files) {
    CHECK(file.size == 3);
    CHECK(file.sha256 == digest);
  }
  const auto index = text_of(root.path() / published.directory / "index.jsonl");
  CHECK(index.find(digest) != std::string::npos);
}

TEST_CASE("sha256sum checks the manifest whatever the files are called, and finds a changed byte") {
  const TempDir dir;
  for (const char* name : {"plain", "-rf", "new\nline", "back\\slash", "back\\nslash", "\\leading", "return\rinside",
                           "trailing\r", " blanks ", "latin-\xe9", "umlaut-\xc3\xbc", "*star", "#hash"})
    dir.write(std::string("attempt/p/") + name, name);
  dir.write("attempt/line\nin directory/file", "x");
  const auto root = Root::open(dir / "archive", kCollection, true);
  const auto published = publish_sample(root, dir);
  const auto directory = root.path() / published.directory;
  REQUIRE(check_with_sha256sum(directory) == 0);
  const std::string manifest = text_of(directory / "manifest-sha256.txt");
  CHECK(static_cast<std::size_t>(std::count(manifest.begin(), manifest.end(), '\n')) == published.files - 1);
  fs::permissions(directory / "p/new\nline", fs::perms::owner_all);
  std::ofstream(directory / "p/new\nline") << "changed";
  CHECK(check_with_sha256sum(directory) == 1);
}

TEST_CASE("publishing the same attempt again replaces what an earlier try left") {
  const TempDir dir;
  const auto root = Root::open(dir / "archive", kCollection, true);
  dir.write("attempt/old/only.txt", "old");
  publish_sample(root, dir);
  make_attempt(dir);
  check_published(root, publish_sample(root, dir));
}

TEST_CASE("attempts with other fences stay untouched") {
  const TempDir dir;
  const auto root = Root::open(dir / "archive", kCollection, true);
  make_attempt(dir);
  publish_sample(root, dir, 3);
  make_attempt(dir);
  publish_sample(root, dir, 4);
  CHECK(names_in(root.path() / kSnapshot) == Names{"a3", "a4"});
  CHECK(check_with_sha256sum(root.path() / kSnapshot / "a3") == 0);
}

TEST_CASE("what hooks put in the place of our own files does not lead us astray") {
  const TempDir dir;
  const auto secret = dir.write("secret", "secret");
  make_attempt(dir);
  fs::create_symlink(secret, dir / "attempt/index.jsonl");
  dir.write("attempt/index.html/file", "a directory here");
  dir.write("attempt/manifest-sha256.txt", "forged");
  const auto root = Root::open(dir / "archive", kCollection, true);
  const auto published = publish_sample(root, dir);
  const auto directory = root.path() / published.directory;
  CHECK(text_of(secret) == "secret");
  CHECK(fs::is_regular_file(fs::symlink_status(directory / "index.jsonl")));
  CHECK(fs::is_regular_file(fs::symlink_status(directory / "index.html")));
  CHECK(check_with_sha256sum(directory) == 0);
}

TEST_CASE("a full disk publishes nothing, leaves nothing and keeps the attempt") {
  const TempDir dir;
  fs::create_directory(dir / "archive");
  if (!test::mount_small_disk(dir / "archive", 1 << 20)) {
    MESSAGE("skipped: this system does not allow mounts in a namespace");
    return;
  }
  {
    make_attempt(dir);
    dir.write("attempt/wget/big.bin", std::string(4 << 20, 'x'));
    const auto root = Root::open(dir / "archive", kCollection, true);
    const auto error = error_of([&] { publish_sample(root, dir); });
    REQUIRE(error);
    CHECK(error->error_class() == ErrorClass::cannot_create);
    CHECK_FALSE(error->hint().empty());
    CHECK(names_in(root.path() / kSnapshot).empty());
    CHECK(text_of(dir / "attempt/title/title.txt") == "Example");
    CHECK(fs::file_size(dir / "attempt/wget/big.bin") == 4 << 20);

    // Once there is room again, the same attempt goes through.
    fs::remove(dir / "attempt/wget/big.bin");
    fs::remove(dir / "attempt/wget");
    check_published(root, publish_sample(root, dir));
  }
  test::unmount(dir / "archive");
}

TEST_CASE("a vanished sentinel stops a publication before anything is written") {
  const TempDir dir;
  make_attempt(dir);
  const auto root = Root::open(dir / "archive", kCollection, true);
  fs::remove(dir / "archive/.holdfast-archive");
  const auto error = error_of([&] { publish_sample(root, dir); });
  REQUIRE(error);
  CHECK(error->error_class() == ErrorClass::unavailable);
  CHECK(names_in(dir / "archive").empty());
  CHECK(names_in(dir / "attempt") == Names{"dom", "title"});
}

TEST_CASE("a target outside the root is refused") {
  const TempDir dir;
  make_attempt(dir);
  const auto root = Root::open(dir / "archive", kCollection, true);
  auto view = attempt_view();
  CHECK_THROWS_AS(publish(root, dir / "attempt", "../elsewhere", view), base::Error);
  CHECK_THROWS_AS(publish(root, dir / "attempt", dir / "elsewhere", view), base::Error);
}

TEST_CASE("leftovers of crashed publications are collected, attempts and later owners are spared") {
  const TempDir dir;
  const auto root = Root::open(dir / "archive", kCollection, true);
  const auto at = [](const std::string& name) { return "archive/" + (kSnapshot / name).string(); };
  dir.write(at("a1/index.html"), "kept");
  dir.write(at(".a1.replaced-00ff/index.html"), "older");
  dir.write(at(".a2.partial-00ff/deep/er/file"), "half");
  dir.write(at(".a3.replaced-00ff/index.html"), "complete");
  dir.write(at(".a9.partial-00ff/file"), "being written");
  dir.write(at(".another"), "not ours");
  archive::remove_partials(root, kSnapshot, 9);
  CHECK(names_in(root.path() / kSnapshot) == Names{".a9.partial-00ff", ".another", "a1", "a3"});
  CHECK(text_of(root.path() / kSnapshot / "a1/index.html") == "kept");
  CHECK(text_of(root.path() / kSnapshot / "a3/index.html") == "complete");
  archive::remove_partials(root, kSnapshot);
  CHECK(names_in(root.path() / kSnapshot) == Names{".another", "a1", "a3"});
  CHECK_NOTHROW(archive::remove_partials(root, "2026/08/never.example/00"));
}

TEST_SUITE_END();
