#include "lib/base/file.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>

#include <cerrno>

using namespace holdfast;
using namespace holdfast::base;
namespace fs = std::filesystem;

TEST_CASE("no link is followed, in no part of a path") {
  test::TempDir dir;
  dir.write("real/inner/file", "text");
  fs::create_directory_symlink("real", dir / "link");
  fs::create_symlink("file", dir / "real/inner/link");
  struct stat status {};

  CHECK(open_no_links(dir / "real/inner/file", O_RDONLY));
  CHECK(stat_no_links(dir / "real/inner/link", status));
  CHECK(S_ISLNK(status.st_mode));
  for (const char* way : {"link/inner/file", "real/inner/link"}) {
    CAPTURE(way);
    CHECK_FALSE(open_no_links(dir / way, O_RDONLY));
    CHECK(errno == ELOOP);
  }
  CHECK_FALSE(stat_no_links(dir / "link/inner/file", status));
  CHECK_FALSE(open_no_links(dir / "link/new", O_WRONLY | O_CREAT, 0644));
  CHECK_FALSE(remove_no_links(dir / "link/inner/file"));
  CHECK_FALSE(make_directories_no_links(dir / "link/new"));
  CHECK_FALSE(make_directories_no_links(dir / "link/inner/new/deep"));
  CHECK(fs::exists(dir / "real/inner/file"));
  CHECK_FALSE(fs::exists(dir / "real/new"));
  CHECK_FALSE(fs::exists(dir / "real/inner/new"));

  CHECK(make_directories_no_links(dir / "real/new/deep"));
  CHECK(fs::is_directory(dir / "real/new/deep"));
  CHECK(make_directories_no_links(dir / "real/new/deep"));
  CHECK(remove_no_links(dir / "link"));
  CHECK(remove_no_links(dir / "real/inner/file"));
  CHECK(fs::exists(dir / "real/inner"));
}
