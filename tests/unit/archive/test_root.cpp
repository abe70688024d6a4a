#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/archive/error_of.hpp"
#include "tests/unit/archive/private_mounts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace holdfast;
using archive::Root;
using base::ErrorClass;
using test::error_of;
using test::TempDir;

namespace {

const std::string kId = "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21";

} // namespace

TEST_SUITE_BEGIN("archive root");

TEST_CASE("a root is created with its sentinel and opened again without creating") {
  const TempDir dir;
  const auto created = Root::open(dir / "new/archive", kId, true);
  CHECK(std::filesystem::exists(dir / "new/archive/.holdfast-archive"));
  const auto opened = Root::open(dir / "new/archive", kId, false);
  CHECK(opened.path() == created.path());
  CHECK_NOTHROW(opened.check());
  CHECK(opened.free_bytes() > 0);
}

TEST_CASE("opening and probing leave nothing but the sentinel") {
  const TempDir dir;
  Root::open(dir.path(), kId, true);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    names.push_back(entry.path().filename());
  CHECK(names == std::vector<std::string>{".holdfast-archive"});
}

TEST_CASE("an empty directory without a sentinel is an unmounted volume, not a root") {
  const TempDir dir;
  const auto error = error_of([&] { Root::open(dir.path(), kId, false); });
  REQUIRE(error);
  CHECK(error->error_class() == ErrorClass::unavailable);
  CHECK(std::string(error->what()).find(dir.path().string()) != std::string::npos);
  CHECK_FALSE(error->hint().empty());
  const auto missing = error_of([&] { Root::open(dir / "missing", kId, false); });
  REQUIRE(missing);
  CHECK(missing->error_class() == ErrorClass::unavailable);
}

TEST_CASE("a directory with other files in it is never made a root") {
  const TempDir dir;
  dir.write("holiday.jpg", "x");
  const auto error = error_of([&] { Root::open(dir.path(), kId, true); });
  REQUIRE(error);
  CHECK(error->error_class() == ErrorClass::unavailable);
  CHECK_FALSE(std::filesystem::exists(dir / ".holdfast-archive"));
}

TEST_CASE("a fresh volume with lost+found counts as empty") {
  const TempDir dir;
  std::filesystem::create_directory(dir / "lost+found");
  CHECK_NOTHROW(Root::open(dir.path(), kId, true));
}

TEST_CASE("a root of another collection is refused, even with create") {
  const TempDir dir;
  Root::open(dir.path(), "0198f7c2-0000-7000-8000-00000000000a", true);
  for (const bool create : {false, true}) {
    const auto error = error_of([&] { Root::open(dir.path(), kId, create); });
    REQUIRE(error);
    CHECK(error->error_class() == ErrorClass::unavailable);
    CHECK(std::string(error->what()).find("0198f7c2-0000-7000-8000-00000000000a") != std::string::npos);
  }
}

TEST_CASE("a sentinel that vanishes or changes later is noticed") {
  const TempDir dir;
  const auto root = Root::open(dir.path(), kId, true);
  dir.write(".holdfast-archive", "another\n");
  CHECK_THROWS_AS(root.check(), base::Error);
  std::filesystem::remove(dir / ".holdfast-archive");
  const auto error = error_of([&] { root.check(); });
  REQUIRE(error);
  CHECK(error->error_class() == ErrorClass::unavailable);
}

TEST_CASE("a read-only root is refused as not writable") {
  const TempDir dir;
  if (!test::mount_small_disk(dir.path(), 1 << 20)) {
    MESSAGE("skipped: this system does not allow mounts in a namespace");
    return;
  }
  Root::open(dir.path(), kId, true);
  test::make_read_only(dir.path());
  const auto error = error_of([&] { Root::open(dir.path(), kId, false); });
  test::unmount(dir.path());
  REQUIRE(error);
  CHECK(error->error_class() == ErrorClass::cannot_create);
}

TEST_SUITE_END();
