#include "lib/archive/attempt.hpp"
#include "lib/archive/captures.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/page_text.hpp"
#include "lib/archive/recover.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <sstream>

using namespace holdfast;
using archive::Root;
namespace fs = std::filesystem;

// People read an archive with programs that may do more than the user whose hooks can write to it. A link in place of
// a directory must lead none of them elsewhere.

namespace {

const std::string kLinkedId = "0198f7c2-5a10-7c33-9a5e-000000000001";
const fs::path kLinkedSnapshot = "2026/08/example.com/" + kLinkedId;

std::string text_in(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// An archive with one page. moved() puts one of its directories elsewhere, and a link in its place.
struct LinkedArchive {
  test::TempDir directory;
  Root root = Root::open(directory / "archive", "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21", true);
  archive::Published published;

  LinkedArchive() {
    const auto attempt = directory / "attempt";
    fs::create_directories(attempt / "text");
    std::ofstream(attempt / "text/content.txt") << "hunter2";
    archive::SnapshotView view;
    view.id = kLinkedId;
    view.fence = 1;
    published = archive::publish(root, attempt, kLinkedSnapshot, view);
  }

  void move(const fs::path& relative) {
    fs::rename(root.path() / relative, directory / "elsewhere");
    fs::create_directory_symlink(directory / "elsewhere", root.path() / relative);
  }

  std::string defect() const {
    const auto defects = archive::verify_attempt(root, published.directory, published.manifest_sha256);
    return defects.empty() ? "" : defects.front().kind;
  }

  std::size_t files() const {
    std::size_t count = 0;
    archive::each_file(
        root, published.directory, [](std::string_view) { return true; }, [&](int, const std::string&) { ++count; });
    return count;
  }
};

} // namespace

TEST_SUITE("links in an archive") {
  TEST_CASE("without links, all is read") {
    const LinkedArchive archive;
    std::string problem;
    CHECK(archive.defect() == "");
    CHECK(archive.files() > 1);
    CHECK(archive::page_text(archive.root, archive.published.directory, 100) == "hunter2");
    CHECK(archive::Files(archive.root).read_snapshot(kLinkedSnapshot, problem).has_value());
    CHECK(archive::find_leftovers(archive.root, kLinkedSnapshot, "").size() == 1);
    CHECK(archive::keep_record(archive.root, archive.published.directory / "text/content.txt", 0, 3, "kept/1"));
    CHECK(text_in(archive.root.path() / "kept/1") == "hun");
  }

  TEST_CASE("no link is followed, whatever directory it stands for") {
    for (const fs::path& place :
         {fs::path("2026"), kLinkedSnapshot.parent_path(), kLinkedSnapshot, kLinkedSnapshot / "a1"}) {
      CAPTURE(place);
      LinkedArchive archive;
      archive.move(place);
      std::string problem, found;
      const archive::Files files(archive.root);

      CHECK(archive.defect() == "unreadable");
      CHECK_THROWS_AS(archive.files(), base::Error);
      CHECK(archive::page_text(archive.root, archive.published.directory, 100) == "");
      CHECK_FALSE(files.read_snapshot(kLinkedSnapshot, problem).has_value());
      files.each_snapshot("", [&](const std::string& directory) { found += directory; });
      CHECK(found == (place == "2026" || place == kLinkedSnapshot.parent_path() ? "" : kLinkedSnapshot.native()));
      CHECK_FALSE(archive::keep_record(archive.root, archive.published.directory / "text/content.txt", 0, 3, "kept/1"));
      CHECK_THROWS_AS(archive.root.write_file(place / "new/page.html", "text", "text/html"), base::Error);
      CHECK_FALSE(fs::exists(archive.directory / "elsewhere/new"));

      CHECK_THROWS_AS(archive.root.remove_file(archive.published.directory / "text/content.txt"), base::Error);
      if (place.filename() != "a1") {
        CHECK(archive::find_leftovers(archive.root, kLinkedSnapshot, "").empty());
        CHECK_THROWS_AS(archive::remove_leftover(archive.root, kLinkedSnapshot / "a1"), base::Error);
      } else {
        archive::remove_leftover(archive.root, kLinkedSnapshot / "a1"); // the link alone
      }
      fs::path page = archive.published.directory;
      page = archive.directory / "elsewhere" / page.lexically_relative(place);
      CHECK(text_in(page / "text/content.txt") == "hunter2");
    }
  }

  TEST_CASE("no file of an archive is read through a link, and none that is a fifo is waited for") {
    LinkedArchive archive;
    const auto top = archive.root.path() / archive.published.directory;
    std::string problem;
    for (const char* name : {"index.jsonl", "manifest-sha256.txt"}) {
      CAPTURE(name);
      fs::rename(top / name, archive.directory / "kept");
      fs::create_symlink(archive.directory / "kept", top / name);
      CHECK_FALSE(archive::Files(archive.root).read_snapshot(kLinkedSnapshot, problem).has_value());
      fs::remove(top / name);
      REQUIRE(::mkfifo((top / name).c_str(), 0644) == 0);
      CHECK_FALSE(archive::Files(archive.root).read_snapshot(kLinkedSnapshot, problem).has_value());
      fs::remove(top / name);
      fs::rename(archive.directory / "kept", top / name);
    }
    CHECK(archive::Files(archive.root).read_snapshot(kLinkedSnapshot, problem).has_value());
  }

  TEST_CASE("the sentinel is not read through a link, whose target the error would show") {
    test::TempDir directory;
    directory.write("archive/page", "");
    directory.write("secret", "hunter2");
    fs::create_symlink(directory / "secret", directory / "archive/.holdfast-archive");
    std::string message;
    try {
      Root::open(directory / "archive", "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21", false);
    } catch (const base::Error& error) {
      message = error.what();
    }
    CHECK(message.find("cannot read") != std::string::npos);
    CHECK(message.find("hunter2") == std::string::npos);
  }

  TEST_CASE("the way to the root may have links") {
    test::TempDir directory;
    directory.write("real/file", "text");
    fs::create_directory_symlink("real", directory / "link");
    CHECK(archive::open_file_below(directory / "link", "file"));
    CHECK_FALSE(archive::open_file_below(directory / "link", "../real/file"));
    CHECK_FALSE(archive::open_file_below(directory / "missing", "file"));
    CHECK(errno == ENOENT);
  }
}
