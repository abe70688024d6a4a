#include "lib/base/error.hpp"
#include "lib/hooks/environment.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/text.hpp"

#include <doctest/doctest.h>

using namespace holdfast::hooks;
using holdfast::base::Error;
using holdfast::test::contains;
using holdfast::test::TempDir;
using Names = std::vector<std::string>;

namespace {

std::shared_ptr<const PluginSet> sample() {
  TempDir dir;
  dir.write("base/config.json", R"({"properties": {
    "BASE_DIR": {"type": "string", "default": "{LIB}/base"},
    "SHARED": {"type": "string", "default": "from base"},
    "USER_AGENT": {"type": "string", "default": "base agent"}
  }})");
  dir.write("wget/config.json", R"({"required_plugins": ["base"], "properties": {
    "WGET_ENABLED": {"type": "boolean", "default": true, "x-aliases": ["FETCH_PAGES"]},
    "WGET_TIMEOUT": {"type": "integer", "default": 60, "minimum": 5, "maximum": 600, "x-fallback": "TIMEOUT"},
    "WGET_RATE": {"type": "number", "default": 1.5, "minimum": 0.5},
    "WGET_ARGS": {"type": "array", "default": ["-a"]},
    "WGET_MAP": {"type": "object", "default": {}},
    "WGET_SIZE": {"type": "string", "default": "1,2", "pattern": "^\\d+,\\d+$"},
    "WGET_MODE": {"type": "string", "default": "warc", "enum": ["warc", "plain"]},
    "WGET_AGENT": {"type": "string", "default": "", "x-fallback": "USER_AGENT"},
    "WGET_OUTER": {"type": "string", "x-fallback": "WGET_INNER"},
    "WGET_INNER": {"type": "string", "x-fallback": "FAR_AWAY"},
    "WGET_PATH": {"type": "string", "default": "{BASE_DIR}/{WGET_MODE}/{UNKNOWN}/{lower}"},
    "WGET_TOKEN": {"type": "string", "enum": ["a"]},
    "SHARED": {"type": "string", "default": "from wget"}
  }})");
  dir.write("off/config.json", R"({"properties": {"OFF_ENABLED": {"type": "boolean", "default": false}}})");
  dir.write("slow-one/config.json", R"({"properties": {"SLOW_ONE_TIMEOUT": {"type": "integer", "default": 3600}}})");
  dir.write("plain/on_Snapshot__1_a.sh", "");
  dir.write("needs_wget/config.json", R"({"required_plugins": ["wget"]})");
  return PluginSet::load({dir.path()});
}

std::string error_of(const Options& options) {
  const auto plugin_set = sample();
  try {
    resolve_options(*plugin_set, *plugin_set->find("wget"), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Options resolved(const Options& options) {
  const auto plugin_set = sample();
  return resolve_options(*plugin_set, *plugin_set->find("wget"), options);
}

} // namespace

TEST_SUITE("plugin options") {
  TEST_CASE("defaults stand where nothing is given") {
    const Options options = resolved({});
    CHECK(options.at("WGET_ENABLED") == "True");
    CHECK(options.at("WGET_TIMEOUT") == "60");
    CHECK(options.at("WGET_ARGS") == R"(["-a"])");
    CHECK(options.at("WGET_AGENT").empty());
    CHECK_FALSE(options.contains("WGET_TOKEN"));
  }

  TEST_CASE("a plugin's own property goes before one that it inherits") {
    CHECK(resolved({}).at("SHARED") == "from wget");
    CHECK(resolved({}).at("USER_AGENT") == "base agent");
  }

  TEST_CASE("the own name goes before an alias, an alias before the fallback") {
    CHECK(resolved({{"WGET_ENABLED", "false"}, {"FETCH_PAGES", "true"}}).at("WGET_ENABLED") == "False");
    CHECK(resolved({{"FETCH_PAGES", "0"}}).at("WGET_ENABLED") == "False");
    CHECK(resolved({{"TIMEOUT", "30"}}).at("WGET_TIMEOUT") == "30");
    CHECK(resolved({{"TIMEOUT", "30"}, {"WGET_TIMEOUT", "40"}}).at("WGET_TIMEOUT") == "40");
  }

  TEST_CASE("a fallback counts only if it was given, and may lead to another one") {
    CHECK(resolved({}).at("WGET_AGENT").empty()); // not "base agent", which is a default
    CHECK(resolved({{"USER_AGENT", "mine"}}).at("WGET_AGENT") == "mine");
    CHECK(resolved({{"FAR_AWAY", "value"}}).at("WGET_OUTER") == "value");
    CHECK_FALSE(resolved({}).contains("WGET_OUTER"));
  }

  TEST_CASE("a number from a fallback is moved into the bounds, one given directly is refused") {
    CHECK(resolved({{"TIMEOUT", "2"}}).at("WGET_TIMEOUT") == "5");
    CHECK(resolved({{"TIMEOUT", "9999"}}).at("WGET_TIMEOUT") == "600");
    CHECK(contains(error_of({{"WGET_TIMEOUT", "2"}}), "option WGET_TIMEOUT of plugin wget: \"2\" is not at least 5"));
  }

  TEST_CASE("defaults are interpolated, through other defaults too") {
    CHECK(resolved({{"LIB", "/lib"}, {"WGET_MODE", "plain"}}).at("WGET_PATH") == "/lib/base/plain/{UNKNOWN}/{lower}");
    CHECK(resolved({{"WGET_PATH", "{WGET_MODE}"}}).at("WGET_PATH") ==
          "{WGET_MODE}"); // what people write stays as it is
  }

  TEST_CASE("defaults that name each other come to an end") {
    TempDir dir;
    dir.write("p/config.json", R"({"properties": {"A": {"default": "x{B}{B}"}, "B": {"default": "y{A}{A}"}}})");
    const auto plugin_set = PluginSet::load({dir.path()});
    CHECK(resolve_options(*plugin_set, *plugin_set->find("p"), {}).at("A").size() <= 65536);
  }

  TEST_CASE("booleans have one spelling in the environment") {
    for (const char* yes : {"true", "True", "1", "yes", "ON"})
      CHECK(resolved({{"WGET_ENABLED", yes}}).at("WGET_ENABLED") == "True");
    for (const char* no : {"false", "False", "0", "no", "off"})
      CHECK(resolved({{"WGET_ENABLED", no}}).at("WGET_ENABLED") == "False");
    CHECK(resolved({{"WGET_ENABLED", " "}}).at("WGET_ENABLED") == "True"); // blank: not given
  }

  TEST_CASE("values that do not fit are refused, naming plugin, key and what fits") {
    CHECK(contains(error_of({{"WGET_ENABLED", "maybe"}}), "\"maybe\" is not true or false"));
    CHECK(contains(error_of({{"WGET_TIMEOUT", "soon"}}), "not a whole number"));
    CHECK(contains(error_of({{"WGET_TIMEOUT", "7.5"}}), "not a whole number"));
    CHECK(contains(error_of({{"WGET_TIMEOUT", "601"}}), "not at most 600"));
    CHECK(contains(error_of({{"WGET_RATE", "inf"}}), "not a number"));
    CHECK(contains(error_of({{"WGET_RATE", "0.25"}}), "not at least 0.5"));
    CHECK(contains(error_of({{"WGET_ARGS", "--quiet"}}), "JSON list"));
    CHECK(contains(error_of({{"WGET_MAP", "[]"}}), "JSON object"));
    CHECK(contains(error_of({{"WGET_SIZE", "big"}}), "of the form"));
    CHECK(contains(error_of({{"WGET_MODE", "zip"}}), "one of warc, plain"));
    CHECK(error_of({{"WGET_MODE", "plain"}, {"WGET_ARGS", "[]"}, {"WGET_RATE", "2"}, {"WGET_SIZE", "3,4"}}) ==
          "no error");
  }

  TEST_CASE("a secret is not repeated in an error") {
    const std::string error = error_of({{"WGET_TOKEN", "hunter2"}});
    CHECK(contains(error, "WGET_TOKEN"));
    CHECK_FALSE(contains(error, "hunter2"));
  }

  TEST_CASE("the timeout is the plugin's, else the general one, else the schema's, else a minute") {
    const auto plugin_set = sample();
    using std::chrono::milliseconds;
    const Plugin& wget = *plugin_set->find("wget");
    CHECK(hook_timeout(wget, {}) == std::chrono::seconds(60));
    CHECK(hook_timeout(wget, {{"TIMEOUT", "30"}}) == std::chrono::seconds(30));
    CHECK(hook_timeout(wget, {{"TIMEOUT", "30"}, {"WGET_TIMEOUT", "40"}}) == std::chrono::seconds(40));
    CHECK(hook_timeout(*plugin_set->find("slow-one"), {}) == std::chrono::hours(1));
    CHECK(hook_timeout(*plugin_set->find("plain"), {}) == std::chrono::seconds(60));
    CHECK(hook_timeout(*plugin_set->find("plain"), {{"TIMEOUT", "0.25"}}) == milliseconds(250));
    CHECK(hook_timeout(*plugin_set->find("plain"), {{"TIMEOUT", "999999999"}}) == std::chrono::hours(12));
    CHECK(hook_timeout(*plugin_set->find("plain"), {{"TIMEOUT", "0"}}) == std::chrono::hours(12));
    CHECK_THROWS_AS(hook_timeout(wget, {{"TIMEOUT", "soon"}}), Error);
  }

  TEST_CASE("a hook may stand still as long as its plugin's option says, else the general one") {
    const auto plugin_set = sample();
    const Plugin& wget = *plugin_set->find("wget");
    CHECK_FALSE(stall_timeout(wget, {}));
    CHECK_FALSE(stall_timeout(wget, {{"TIMEOUT", "30"}}));
    CHECK(stall_timeout(wget, {{"STALL_TIMEOUT", "30"}}) == std::chrono::seconds(30));
    CHECK(stall_timeout(wget, {{"STALL_TIMEOUT", "30"}, {"WGET_STALL_TIMEOUT", "0.5"}}) ==
          std::chrono::milliseconds(500));
    CHECK(stall_timeout(wget, {{"STALL_TIMEOUT", "30"}, {"WGET_STALL_TIMEOUT", "0"}}) == std::chrono::seconds(0));
    CHECK_THROWS_AS(stall_timeout(wget, {{"STALL_TIMEOUT", "soon"}}), Error);
  }

  TEST_CASE("a plugin is enabled unless an option or its schema says otherwise") {
    const auto plugin_set = sample();
    const Plugin& wget = *plugin_set->find("wget");
    const Plugin& off = *plugin_set->find("off");
    CHECK(plugin_enabled(wget, {}));
    CHECK_FALSE(plugin_enabled(wget, {{"WGET_ENABLED", "false"}}));
    CHECK_FALSE(plugin_enabled(wget, {{"FETCH_PAGES", "no"}}));
    CHECK_FALSE(plugin_enabled(wget, {{"SAVE_WGET", "False"}}));
    CHECK_FALSE(plugin_enabled(*plugin_set->find("plain"), {{"USE_PLAIN", "0"}}));
    CHECK_FALSE(plugin_enabled(off, {}));
    CHECK(plugin_enabled(off, {{"OFF_ENABLED", "true"}}));
  }

  TEST_CASE("what a crawl runs follows names, options and requirements") {
    const auto plugin_set = sample();
    CHECK(selected_plugins(*plugin_set, {"wget", "plain"}, {}) == Names{"base", "wget", "plain"});
    CHECK(selected_plugins(*plugin_set, {}, {}) == Names{"base", "wget", "needs_wget", "plain", "slow-one"});
    CHECK(selected_plugins(*plugin_set, {}, {{"OFF_ENABLED", "true"}, {"SAVE_WGET", "false"}}) ==
          Names{"base", "off", "plain", "slow-one"});
    CHECK(selected_plugins(*plugin_set, {"off"}, {}) == Names{"off"});
    CHECK_THROWS_AS(selected_plugins(*plugin_set, {"needs_wget"}, {{"SAVE_WGET", "false"}}), Error);
  }
}
