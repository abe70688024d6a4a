#include "lib/archive/page_text.hpp"
#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/archive/error_of.hpp"
#include "tests/unit/archive/private_mounts.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace holdfast;

TEST_CASE("the text of a page is that of the best plugin that has one") {
  const test::TempDir directory;
  CHECK(archive::page_text(directory / "none", 100) == "");
  CHECK(archive::page_text(directory.path(), 100) == "");
  directory.write("htmltotext/htmltotext.txt", "last");
  CHECK(archive::page_text(directory.path(), 100) == "last");
  directory.write("text/content.txt", "");
  CHECK(archive::page_text(directory.path(), 100) == "last");
  directory.write("text/content.txt", "first\xff");
  CHECK(archive::page_text(directory.path(), 3) == "fir");
  CHECK(archive::page_text(directory.path(), 100) == "first\ufffd");
}

TEST_CASE("a text that cannot be read is an error, and no text of another plugin stands for it") {
  const test::TempDir directory;
  const auto root = archive::Root::open(directory / "archive", "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21", true);
  const auto attempt = root.path() / "2026/08/example.com/id/a1";
  directory.write("archive/2026/08/example.com/id/a1/text/content.txt", "first");
  directory.write("archive/2026/08/example.com/id/a1/htmltotext/htmltotext.txt", "last");
  if (!test::make_unreadable(attempt / "text/content.txt")) {
    MESSAGE("skipped: no mount namespace here");
    return;
  }
  const auto of_attempt = test::error_of([&] { archive::page_text(attempt, 100); });
  const auto of_archive = test::error_of([&] { archive::page_text(root, "2026/08/example.com/id/a1", 100); });
  test::unmount(attempt / "text/content.txt");
  for (const auto& error : {of_attempt, of_archive}) {
    REQUIRE(error.has_value());
    CHECK(error->error_class() == base::ErrorClass::input_output);
    CHECK(std::string(error->what()).find((attempt / "text/content.txt").native()) != std::string::npos);
  }
  CHECK(archive::page_text(attempt, 100) == "first");
}
