#include "lib/archive/attempt.hpp"
#include "lib/archive/verify.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

using namespace holdfast;
using archive::Root;
namespace fs = std::filesystem;

namespace {

const fs::path kVerifiedSnapshot = "2026/08/example.com/0198f7c2-5a10-7c33-9a5e-000000000001";

struct Archive {
  test::TempDir directory;
  Root root = Root::open(directory / "archive", "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21", true);

  archive::Published publish(std::int64_t fence) {
    const auto attempt = directory / ("attempt-" + std::to_string(fence));
    fs::create_directories(attempt / "wget");
    std::ofstream(attempt / "wget" / "page.html") << "page";
    std::ofstream(attempt / "wget" / "back\\slash\nline") << "odd";
    fs::create_symlink("page.html", attempt / "wget" / "link.html");
    archive::SnapshotView view;
    view.id = "0198f7c2-5a10-7c33-9a5e-000000000001";
    view.fence = fence;
    return archive::publish(root, attempt, kVerifiedSnapshot, view);
  }

  std::vector<std::string> defects(const archive::Published& published) const {
    std::vector<std::string> all;
    for (const auto& defect : archive::verify_attempt(root, published.directory, published.manifest_sha256))
      all.push_back(defect.kind + " " + fs::path(defect.path).lexically_relative(published.directory).string());
    std::sort(all.begin(), all.end());
    return all;
  }
};

void overwrite(const fs::path& file, const char* text) {
  fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(file) << text;
}

} // namespace

TEST_SUITE("verify") {
  TEST_CASE("what was published is found as it was") {
    Archive archive;
    CHECK(archive.defects(archive.publish(1)).empty());
  }

  TEST_CASE("a changed, a missing and an additional file are told apart") {
    Archive archive;
    const auto published = archive.publish(1);
    const auto top = archive.root.path() / published.directory;
    overwrite(top / "wget" / "page.html", "other");
    fs::remove(top / "wget" / "back\\slash\nline");
    std::ofstream(top / "wget" / "new") << "new";
    CHECK(archive.defects(published) == std::vector<std::string>{"changed wget/link.html", "changed wget/page.html",
                                                                 "extra wget/new", "missing wget/back\\slash\nline"});
  }

  TEST_CASE("a manifest that was changed along with its file does not match the seal") {
    Archive archive;
    const auto published = archive.publish(1);
    overwrite(archive.root.path() / published.directory / "manifest-sha256.txt", "");
    const auto defects = archive.defects(published);
    CHECK(std::find(defects.begin(), defects.end(), "changed manifest-sha256.txt") != defects.end());
    fs::remove(archive.root.path() / published.directory / "manifest-sha256.txt");
    CHECK(archive.defects(published) == std::vector<std::string>{"missing manifest-sha256.txt"});
    fs::remove_all(archive.root.path() / published.directory);
    CHECK(archive.defects(published) == std::vector<std::string>{"missing ."});
  }

  TEST_CASE("lost attempts are found beside the one that counts, and nothing else is") {
    Archive archive;
    archive.publish(1);
    archive.publish(3);
    archive.publish(12);
    const auto snapshot = archive.root.path() / kVerifiedSnapshot;
    fs::create_directory(snapshot / ".a2.partial-0123");
    fs::create_directory(snapshot / "attic");
    auto leftovers = archive::find_leftovers(archive.root, kVerifiedSnapshot, "a3");
    CHECK(leftovers == std::vector<fs::path>{kVerifiedSnapshot / ".a2.partial-0123", kVerifiedSnapshot / "a1",
                                             kVerifiedSnapshot / "a12"});
    SUBCASE("the owner of a later attempt removes earlier ones only") {
      archive::remove_lost_attempts(archive.root, kVerifiedSnapshot, 12);
      CHECK_FALSE(fs::exists(snapshot / "a1"));
      CHECK_FALSE(fs::exists(snapshot / "a3"));
      CHECK(fs::exists(snapshot / "a12"));
    }
    SUBCASE("the last one takes an empty directory with it") {
      fs::remove(snapshot / "attic");
      for (const auto& leftover : archive::find_leftovers(archive.root, kVerifiedSnapshot, ""))
        archive::remove_leftover(archive.root, leftover);
      CHECK_FALSE(fs::exists(snapshot));
    }
  }

  TEST_CASE("a snapshot without a directory has no leftovers") {
    Archive archive;
    CHECK(archive::find_leftovers(archive.root, kVerifiedSnapshot, "").empty());
  }
}
