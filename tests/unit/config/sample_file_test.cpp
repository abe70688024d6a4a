// deploy/holdfast.yaml must stay true: it loads, names every key, and shows every default.

#include "tests/support/temp_dir.hpp"
#include "tests/unit/config/support.hpp"

#include <fstream>
#include <regex>

using namespace holdfast;

namespace {

// The sample with every setting that is commented out switched on.
std::string uncommented() {
  static const std::regex setting("^( *)#([A-Za-z_]+:.*)$");
  std::ifstream stream(HOLDFAST_SAMPLE_FILE);
  REQUIRE(stream);
  std::string text;
  for (std::string line; std::getline(stream, line);)
    text += std::regex_replace(line, setting, "$1$2") + "\n";
  return text;
}

} // namespace

TEST_SUITE("sample file") {
  TEST_CASE("the sample loads as it is and changes nothing") {
    const auto settings = config::Settings::load(HOLDFAST_SAMPLE_FILE, {{"HOME", "/home/me"}}, {});
    for (const config::Key& key : config::key_table())
      CHECK(settings.value(key.name).origin == "default");
    CHECK(settings.hook_options().empty());
  }

  TEST_CASE("the sample shows every key at its default") {
    const test::TempDir directory;
    const auto file = directory.write("holdfast.yaml", uncommented());
    const auto settings = config::Settings::load(file, {{"HOME", "/home/me"}}, {});
    for (const config::Key& key : config::key_table()) {
      CAPTURE(key.name);
      CHECK(settings.value(key.name).origin.starts_with(file.string() + ":"));
      // The default of root is another one; the sample tells it in words.
      if (key.name != "data_dir") CHECK(settings.text(key.name) == key.default_value);
    }
    CHECK(settings.text("data_dir") == "~/.local/share/holdfast");
    CHECK(settings.hook_options().size() == 2);
    CHECK_NOTHROW(config::check_lease_rule(settings));
  }
}
