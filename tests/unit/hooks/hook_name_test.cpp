#include "lib/hooks/plugin_set.hpp"

#include <doctest/doctest.h>

using namespace holdfast::hooks;

TEST_SUITE("hook names") {
  TEST_CASE("a full name is taken apart") {
    const auto name = parse_hook_name("on_Snapshot__35_wget.finite.bg.py");
    REQUIRE(name);
    CHECK(name->event == Event::snapshot);
    CHECK(name->order == 35);
    CHECK(name->name == "on_Snapshot__35_wget.finite.bg");
    CHECK(name->extension == "py");
    CHECK(name->background);
  }

  TEST_CASE("events have old and new spellings") {
    CHECK(parse_hook_name("on_CrawlSetup__90_launch.js")->event == Event::crawl_setup);
    CHECK(parse_hook_name("on_Crawl__20_launch.bg.js")->event == Event::crawl_setup);
    CHECK(parse_hook_name("on_CrawlSetupEvent__90_launch.js")->event == Event::crawl_setup);
    CHECK(parse_hook_name("on_SnapshotEvent__1_a.sh")->event == Event::snapshot);
    CHECK(parse_hook_name("on_Binary__10_npm_install.py")->event == Event::binary);
    CHECK(parse_hook_name("on_CrawlEnd__99_tidy.sh")->event == Event::crawl_end);
  }

  TEST_CASE("a name without a number has no order") {
    CHECK(parse_hook_name("on_Snapshot__title.sh")->order == -1);
    CHECK(parse_hook_name("on_Snapshot__00_title.sh")->order == 0);
    CHECK(parse_hook_name("on_Snapshot__7z_unpack.sh")->order == -1); // digits that are no number of their own
    CHECK(parse_hook_name("on_Snapshot__99999999999999999999_x.sh")->order == 1'000'000);
  }

  TEST_CASE("background is marked in several ways") {
    CHECK(parse_hook_name("on_Snapshot__10_a.bg.js")->background);
    CHECK(parse_hook_name("on_Snapshot__10_a.daemon.bg.js")->background);
    CHECK(parse_hook_name("on_Snapshot__23_ssl__background.py")->background);
    CHECK(parse_hook_name("on_Snapshot__10_a.bg")->background);
    CHECK(parse_hook_name("on_Snapshot__10_a.bg")->name == "on_Snapshot__10_a.bg");
    CHECK_FALSE(parse_hook_name("on_Snapshot__10_big.js")->background);
    CHECK_FALSE(parse_hook_name("on_Snapshot__background_check.py")->background);
    CHECK(parse_hook_name("on_Snapshot__10_a.daemon.bg")->daemon);
    CHECK_FALSE(parse_hook_name("on_Snapshot__10_a.finite.bg.js")->daemon);
    CHECK_FALSE(parse_hook_name("on_Snapshot__10_a.daemon.js")->daemon);
  }

  TEST_CASE("only known interpreters' extensions are reported") {
    CHECK(parse_hook_name("on_Snapshot__10_a.rb")->extension.empty());
    CHECK(parse_hook_name("on_Snapshot__10_a.rb")->name == "on_Snapshot__10_a");
    CHECK(parse_hook_name("on_Snapshot__10_a")->extension.empty());
  }

  TEST_CASE("other files and other events are no hooks") {
    for (const char* name :
         {"", "on_", "on_Snapshot", "on_Snapshot__", "on_Snapshot__.py", "on_Snapshot_10_a.py", "config.json",
          "on_BinaryRequest__10_a.py", "on_Install__10_a.py", "on_snapshot__10_a.py", "xon_Snapshot__a.py",
          "on_Event__a.py", "on___a.py", "on_Snapshot__a\nb.sh", "on_Snapshot__a/b.sh", "on_Snapshot__\xff.sh"}) {
      CAPTURE(name);
      CHECK_FALSE(parse_hook_name(name));
    }
    CHECK_FALSE(
        parse_hook_name("on_Snapshot__" + std::string(300, 'a') + ".sh")); // no room for the runner files' suffix
  }
}
