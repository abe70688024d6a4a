#include "lib/base/error.hpp"
#include "lib/hooks/environment.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <stdlib.h>

using namespace holdfast::hooks;
using holdfast::base::Error;
using holdfast::test::TempDir;
using Map = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

namespace {

struct Sample {
  TempDir dir;
  std::shared_ptr<const PluginSet> plugin_set;
  HookContext context;

  Sample() {
    dir.write("base/config.json", R"({"properties": {"SNAP_DIR": {"default": ""}, "PATH": {"default": ""},
      "SHARED_SECRET": {"type": "string"}}})");
    dir.write("dom/config.json", R"({"required_plugins": ["base"], "properties": {
      "DOM_FLAG": {"type": "boolean", "default": true}, "DOM_EMPTY": {"default": ""}, "TIMEOUT": {"type":"integer","default": 7},
      "DOM_BINARY": {"default": "{LIB_DIR}/dom"}, "DOM_HIDDEN": {"x-scope": "server", "default": "h"}}})");
    dir.write("dom/on_Snapshot__53_dom.js", "", true);
    dir.write("dom/on_Snapshot__54_old.py", "");
    dir.write("dom/on_Snapshot__55_old.js", "");
    dir.write("dom/on_Snapshot__56_old.sh", "");
    dir.write("dom/on_Crawl__10_start.bg.sh", "", true);
    dir.write("other/config.json", R"({"properties": {"OTHER_API_KEY": {"type": "string", "x-aliases": ["OTHER_OLD"]},
      "OTHER_COLOUR": {"type": "string"}}})");
    plugin_set = PluginSet::load({dir.path()});
    context.snapshot_id = "s-1";
    context.crawl_id = "c-1";
    context.url = "https://e.org/a b";
    context.source_url = "https://e.org/\nhttps://f.org/";
    context.depth = 2;
    context.data_dir = "/data";
    context.crawl_dir = "/scratch/crawl";
    context.snapshot_dir = "/scratch/snap";
    context.temporary_dir = "/scratch/tmp";
    context.library_dir = "/lib/abx";
    context.personas_dir = "/personas";
    context.snapshot_title = "A \"title\"\n";
    context.snapshot_tags = "x,y";
    context.machine_id = "m-1";
  }

  const Hook& hook(std::string_view name) const {
    for (const Hook& each : plugin_set->find("dom")->hooks) {
      if (each.path.filename() == name) return each;
    }
    throw std::runtime_error("no hook " + std::string(name));
  }

  Map environment(const Options& options, const Map& inherited = {{"PATH", "/usr/bin:/bin"}},
                  std::string_view name = "on_Snapshot__53_dom.js") const {
    Map result;
    for (const std::string& entry : hook_environment(*plugin_set, hook(name), options, context, inherited)) {
      const auto equals = entry.find('=');
      REQUIRE(equals != std::string::npos);
      REQUIRE(result.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second); // each name once
    }
    return result;
  }
};

} // namespace

TEST_SUITE("hook environment") {
  TEST_CASE("options come from the environment, unless they are given, secret, or decided elsewhere") {
    holdfast::test::TempDir dir;
    dir.write("sample/config.json", R"({"properties": {
      "SAMPLE_WORD": {"type": "string", "x-aliases": ["OLD_WORD"], "x-fallback": "ANY_WORD"},
      "SAMPLE_CODE": {"type": "string", "x-sensitive": true},
      "SAMPLE_SIDE": {"type": "string", "x-scope": "server"},
      "SAMPLE_TOKEN": {"type": "string"}, "SAMPLE_EMPTY": {"type": "string"},
      "SNAP_DIR": {"type": "string"}, "PGHOST": {"type": "string"}, "LD_PRELOAD_X": {"type": "string"}}})");
    const auto plugin_set = PluginSet::load({dir.path()});
    const std::vector<const char*> names{"SAMPLE_WORD",  "OLD_WORD",       "ANY_WORD",     "SAMPLE_CODE",
                                         "SAMPLE_SIDE",  "SAMPLE_TOKEN",   "SNAP_DIR",     "PGHOST",
                                         "LD_PRELOAD_X", "CHROME_SANDBOX", "UNKNOWN_WORD", "SAMPLE_EMPTY"};
    for (const char* name : names)
      setenv(name, std::string_view(name) == "SAMPLE_EMPTY" ? "" : "said", 1);
    const auto all = environment_options(*plugin_set);
    const auto rest = environment_options(*plugin_set, {{"OLD_WORD", "given"}, {"CHROME_SANDBOX", "true"}});
    for (const char* name : names)
      unsetenv(name);
    CHECK(all ==
          Options{{"ANY_WORD", "said"}, {"CHROME_SANDBOX", "said"}, {"OLD_WORD", "said"}, {"SAMPLE_WORD", "said"}});
    CHECK(rest == Options{{"ANY_WORD", "said"}});
  }

  TEST_CASE("only the allow-list and named extras are inherited") {
    setenv("HOLDFAST_DATABASE_URL", "postgresql://u:secret@h/d", 1);
    setenv("PGPASSWORD", "secret", 1);
    setenv("LC_TEST", "C", 1);
    setenv("https_proxy", "http://proxy", 1);
    setenv("SOME_EXTRA", "1", 1);
    setenv("SOME_OTHER", "1", 1);
    const Map inherited = inherited_environment({"SOME_EXTRA", "PGPASSWORD", "HOLDFAST_DATABASE_URL", "NOT_THERE"});
    for (const char* name :
         {"HOLDFAST_DATABASE_URL", "PGPASSWORD", "LC_TEST", "https_proxy", "SOME_EXTRA", "SOME_OTHER"})
      unsetenv(name);
    CHECK(inherited.contains("PATH"));
    CHECK(inherited.at("LC_TEST") == "C");
    CHECK(inherited.at("https_proxy") == "http://proxy");
    CHECK(inherited.at("SOME_EXTRA") == "1");
    for (const auto& [name, value] : inherited) {
      CAPTURE(name);
      CHECK_FALSE(name.starts_with("HOLDFAST_"));
      CHECK_FALSE(name.starts_with("PG"));
      CHECK(name != "SOME_OTHER");
      CHECK(name != "NOT_THERE");
    }
  }

  TEST_CASE("a user agent with control characters is refused") {
    for (const char* value : {"a\r\nX-Injected: b", "a\nb", "a\tb", "\x1f", "\x7f"}) {
      CHECK_THROWS_AS(check_agents({{"USER_AGENT", value}}), Error);
      CHECK_THROWS_AS(check_agents({{"WGET_USER_AGENT", value}}), Error);
    }
    CHECK_NOTHROW(check_agents({{"USER_AGENT", "Mozilla/5.0 (X11; ü)"}, {"NOTES", "a\nb"}}));
  }

  TEST_CASE("global keys come with their old names") {
    const Map map = Sample().environment({});
    CHECK(map.at("DATA_DIR") == "/data");
    CHECK(map.at("ARCHIVE_DIR") == "/data/archive");
    CHECK(map.at("CRAWL_DIR") == "/scratch/crawl");
    CHECK(map.at("CRAWL_OUTPUT_DIR") == "/scratch/crawl");
    CHECK(map.at("SNAP_DIR") == "/scratch/snap");
    CHECK(map.at("SNAPSHOT_DIR") == "/scratch/snap");
    CHECK(map.at("ABXPKG_LIB_DIR") == "/lib/abx");
    CHECK(map.at("LIB_DIR") == "/lib/abx");
    CHECK(map.at("LIB_BIN_DIR") == "/lib/abx/bin");
    CHECK(map.at("TMP_DIR") == "/scratch/tmp");
    CHECK(map.at("PERSONAS_DIR") == "/personas");
    CHECK(map.at("ACTIVE_PERSONA") == "Default");
    CHECK(map.at("ABX_RUNTIME") == "abx-dl");
    CHECK(map.at("MACHINE_ID") == "m-1");
    CHECK(map.at("TIMEOUT") == "60"); // the global value, not the schema's default
    CHECK(map.at("CHECK_SSL_VALIDITY") == "True");
    CHECK(map.at("DRY_RUN") == "False");
    CHECK_FALSE(map.contains("NODE_PATH"));
  }

  TEST_CASE("what is unknown is left out") {
    Sample sample;
    sample.context = {};
    const Map map = sample.environment({});
    for (const char* name :
         {"DATA_DIR", "SNAP_DIR", "LIB_DIR", "LIB_BIN_DIR", "TMP_DIR", "PERSONAS_DIR", "MACHINE_ID"}) {
      CAPTURE(name);
      CHECK_FALSE(map.contains(name));
    }
    CHECK(map.at("PATH") == "/usr/bin:/bin");
    CHECK(Sample().environment({}, {}).at("PATH").ends_with("/usr/bin:/bin"));
  }

  TEST_CASE("a crawl hook has the crawl's directory for both") {
    const Map map = Sample().environment({}, {}, "on_Crawl__10_start.bg.sh");
    CHECK(map.at("SNAP_DIR") == "/scratch/crawl");
    CHECK_FALSE(map.contains("SNAPSHOT_DIR"));
  }

  TEST_CASE("properties are resolved, empty defaults are left to the hook") {
    const Map map = Sample().environment({{"DOM_FLAG", "no"}});
    CHECK(map.at("DOM_FLAG") == "False");
    CHECK(map.at("DOM_BINARY") == "/lib/abx/dom");
    CHECK_FALSE(map.contains("DOM_EMPTY"));
    CHECK_FALSE(map.contains("DOM_HIDDEN"));
    CHECK(Sample().environment({{"TIMEOUT", "12"}}).at("TIMEOUT") == "12");
  }

  TEST_CASE("options pass, but neither other plugins' secrets nor what only the context decides") {
    const Map map = Sample().environment({{"OTHER_COLOUR", "red"},
                                          {"OTHER_API_KEY", "secret"},
                                          {"OTHER_OLD", "secret"},
                                          {"SHARED_SECRET", "mine"},
                                          {"UNDECLARED", "passes"},
                                          {"SNAP_DIR", "/elsewhere"},
                                          {"PERSONAS_DIR", "/elsewhere"},
                                          {"LD_PRELOAD", "/evil.so"},
                                          {"HOLDFAST_X", "1"},
                                          {"PGHOST", "h"},
                                          {"PLUGINS", "dom"},
                                          {"SEARCH_BACKEND_ENGINE", "sonic"},
                                          {"A=B", "c"},
                                          {"", "x"}});
    CHECK(map.at("OTHER_COLOUR") == "red");
    CHECK(map.at("SHARED_SECRET") == "mine"); // of a plugin that this one requires
    CHECK(map.at("UNDECLARED") == "passes");
    CHECK(map.at("SNAP_DIR") == "/scratch/snap");
    CHECK(map.at("PERSONAS_DIR") == "/personas");
    for (const char* name :
         {"OTHER_API_KEY", "OTHER_OLD", "LD_PRELOAD", "HOLDFAST_X", "PGHOST", "PLUGINS", "SEARCH_BACKEND_ENGINE"}) {
      CAPTURE(name);
      CHECK_FALSE(map.contains(name));
    }
  }

  TEST_CASE("the path starts with resolved binaries, then the library, then node modules") {
    const Options options{{"NODE_BINARY", "/opt/node/bin/node"},
                          {"WGET_BINARY", "/usr/bin/wget"}, // its directory is on the path and stays where it is
                          {"CURL_BINARY", "curl"},
                          {"NODE_MODULES_DIR", "/opt/modules"}};
    const Map map = Sample().environment(options);
    CHECK(map.at("PATH") == "/lib/abx:/opt/node/bin:/lib/abx/bin:/opt/modules/.bin:/usr/bin:/bin");
    CHECK(map.at("NODE_PATH") == "/opt/modules");
    CHECK(map.at("NODE_MODULE_DIR") == "/opt/modules");
  }

  TEST_CASE("an isolated Chrome has its persona in the snapshot") {
    CHECK(Sample().environment({{"CHROME_ISOLATION", "snapshot"}}).at("PERSONAS_DIR") == "/scratch/snap/.persona");
  }

  TEST_CASE("EXTRA_CONTEXT is JSON that says whose records these are") {
    const auto context = nlohmann::json::parse(Sample().environment({{"EXTRA_CONTEXT", "forged"}}).at("EXTRA_CONTEXT"));
    CHECK(context == nlohmann::json{{"snapshot_id", "s-1"},
                                    {"snapshot_depth", 2},
                                    {"snapshot_url", "https://e.org/a b"},
                                    {"snapshot_title", "A \"title\""},
                                    {"snapshot_tags", "x,y"},
                                    {"crawl_id", "c-1"},
                                    {"plugin", "dom"},
                                    {"hook_name", "on_Snapshot__53_dom"}});
  }

  TEST_CASE("a value that no environment can carry is refused by name") {
    const Sample sample;
    CHECK_THROWS_WITH_AS(sample.environment({{"UNDECLARED", std::string("a\0b", 3)}}),
                         "option UNDECLARED contains a NUL character and cannot be passed to a hook", Error);
    CHECK_THROWS_WITH_AS(sample.environment({{"UNDECLARED", std::string(200'000, 'x')}}),
                         "option UNDECLARED is longer than 120 KiB and cannot be passed to a hook", Error);
  }

  TEST_CASE("what a hook is started with is told without secrets, and within bounds") {
    const Sample sample;
    holdfast::process::Command command;
    command.argv = {"/p/dom/on_Snapshot__53_dom.js", "--url=https://e.org/"};
    command.environment = {"CUSTOM=hunter2",    "DOM_HIDDEN=hunter2",    "HTTP_PROXY=http://me:hunter2@proxy:3128/",
                           "LANG=C.UTF-8",      "OTHER_COLOUR=red",      "OTHER_API_KEY=hunter2",
                           "OTHER_OLD=hunter2", "SESSION_TOKEN=hunter2", "SNAP_DIR=/scratch/snap"};
    const std::string text = started_with(*sample.plugin_set, command, "/scratch/snap/dom");
    CHECK(text.find("hunter2") == std::string::npos);
    const auto told = nlohmann::json::parse(text);
    CHECK(told["command"] == command.argv);
    CHECK(told["directory"] == "/scratch/snap/dom");
    const nlohmann::json environment = {
        {"CUSTOM", "(set)"},    {"DOM_HIDDEN", "(set)"},    {"HTTP_PROXY", "http://proxy:3128/"},
        {"LANG", "C.UTF-8"},    {"OTHER_COLOUR", "red"},    {"OTHER_API_KEY", "(set)"},
        {"OTHER_OLD", "(set)"}, {"SESSION_TOKEN", "(set)"}, {"SNAP_DIR", "/scratch/snap"}};
    CHECK(told["environment"] == environment);
    command.argv.assign(1000, std::string(10000, 'x'));
    command.environment.assign(1000, "LANG=" + std::string(100000, 'x') + "\xff\x01");
    CHECK(started_with(*sample.plugin_set, command, "/").size() <= 8192);
  }

  TEST_CASE("arguments follow the event, the interpreter follows the extension") {
    Sample sample;
    const auto path = [&](const char* name) { return (sample.dir / "dom").string() + "/" + name; };
    CHECK(hook_arguments(sample.hook("on_Snapshot__53_dom.js"), sample.context) ==
          Names{path("on_Snapshot__53_dom.js"), "--url=https://e.org/a b", "--snapshot-id=s-1"});
    const auto interpreter = [&](const char* name) { return hook_arguments(sample.hook(name), sample.context).at(1); };
    CHECK(hook_arguments(sample.hook("on_Snapshot__54_old.py"), sample.context).at(0) == "/usr/bin/env");
    CHECK(interpreter("on_Snapshot__54_old.py") == "python3");
    CHECK(interpreter("on_Snapshot__55_old.js") == "node");
    CHECK(interpreter("on_Snapshot__56_old.sh") == "bash");
    sample.context.url.clear();
    CHECK(hook_arguments(sample.hook("on_Crawl__10_start.bg.sh"), sample.context) ==
          Names{path("on_Crawl__10_start.bg.sh"), "--url=https://e.org/", "--crawl-id=c-1",
                "--source-url=https://e.org/\nhttps://f.org/"});
  }

  TEST_CASE("a built-in hook is started by its program, not through env") {
    Sample sample;
    sample.dir.write("dom/on_Snapshot__57_own", "#!/usr/bin/env -S holdfast-capture\n", true);
    sample.plugin_set = PluginSet::load({sample.dir.path()});
    const auto own = (sample.dir / "dom").string() + "/on_Snapshot__57_own";
    const auto first = [&] { return hook_arguments(sample.hook("on_Snapshot__57_own"), sample.context).at(0); };
    CHECK(first() == own); // it is not installed: env tells that
    sample.dir.write("bin/holdfast-capture", "", true);
    sample.context.last_on_path = "/nowhere:" + (sample.dir / "bin").string();
    CHECK(first() == (sample.dir / "bin").string() + "/holdfast-capture");
    CHECK(hook_arguments(sample.hook("on_Snapshot__57_own"), sample.context).at(1) == own);
    CHECK(hook_arguments(sample.hook("on_Snapshot__53_dom.js"), sample.context).at(0) != first());
  }

  TEST_CASE("a very long list of seeds still fits into an argument") {
    Sample sample;
    sample.context.source_url.clear();
    for (int index = 0; index < 20'000; ++index)
      sample.context.source_url += "https://e.org/" + std::to_string(index) + "\n";
    const auto arguments = hook_arguments(sample.hook("on_Crawl__10_start.bg.sh"), sample.context);
    CHECK(arguments.back().size() < 128 * 1024);
    CHECK(arguments.back().size() > 60'000);
    CHECK(arguments.back().rfind("\nhttps://e.org/") > arguments.back().size() - 30); // cut between lines
  }
}
