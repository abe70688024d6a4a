#include "lib/base/error.hpp"
#include "lib/hooks/plugin_set.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/text.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace holdfast::hooks;
using holdfast::base::Error;
using holdfast::base::ErrorClass;
using holdfast::test::contains;
using holdfast::test::TempDir;
using Names = std::vector<std::string>;

namespace {

// The error that `action` throws, as "class: message".
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.error_class())) + ": " + error.what() + " | " + error.hint();
  }
  return "no error";
}

std::string requiring(std::initializer_list<const char*> names) {
  std::string list;
  for (const char* name : names)
    list += (list.empty() ? "\"" : ",\"") + std::string(name) + "\"";
  return "{\"required_plugins\":[" + list + "]}";
}

} // namespace

TEST_SUITE("plugin plugin_set") {
  TEST_CASE("whether the success of a plugin means that the page is archived") {
    TempDir dir;
    dir.write("shot/config.json", "{}");
    dir.write("sums/config.json", R"({"captures_page":false})");
    dir.write("title/config.json", "{}");
    dir.write("headers/config.json", R"({"captures_page":true})");
    dir.write("parse_feed/on_Snapshot__1_a.sh", "");
    const auto plugin_set = PluginSet::load({dir.path()});
    CHECK(plugin_set->find("shot")->captures_page);
    CHECK_FALSE(plugin_set->find("sums")->captures_page);
    CHECK_FALSE(plugin_set->find("title")->captures_page); // ArchiveBox's, which do not say it
    CHECK_FALSE(plugin_set->find("parse_feed")->captures_page);
    CHECK(plugin_set->find("headers")->captures_page); // what it says counts
    dir.write("sums/config.json", R"({"captures_page":"no"})");
    CHECK(contains(error_of([&] { PluginSet::load({dir.path()}); }), "\"captures_page\" must be true or false"));
  }

  TEST_CASE("a plugin lacks what it requires, however far away") {
    TempDir dir;
    dir.write("a/config.json", requiring({"b"}));
    dir.write("b/config.json", requiring({"c", "a"})); // a circle ends
    dir.write("d/config.json", requiring({"a"}));
    const auto plugin_set = PluginSet::load({dir.path()});
    CHECK(plugin_set->lacking("d") == "c");
    CHECK(plugin_set->lacking("nosuch") == "nosuch");
    dir.write("c/config.json", "{}");
    CHECK(PluginSet::load({dir.path()})->lacking("d") == "");
  }

  TEST_CASE("plugins and their hooks are found, strangers are not") {
    TempDir dir;
    dir.write("wget/config.json", R"({"title":"Wget","description":"d","output_mimetypes":["text/html"]})");
    dir.write("wget/on_Snapshot__35_wget.finite.bg.py", "", true);
    dir.write("wget/on_Snapshot__36_plain.sh", "");    // by its extension
    dir.write("wget/on_Snapshot__37_unknown.txt", ""); // neither executable nor a known extension
    dir.write("wget/on_Snapshot__38_native", "", true);
    dir.write("wget/helper.py", "", true);
    std::filesystem::create_directory(dir / "wget/on_Snapshot__39_directory.sh");
    std::filesystem::create_symlink("on_Snapshot__36_plain.sh", dir / "wget/on_Snapshot__40_link.sh");
    std::filesystem::create_symlink("nowhere", dir / "wget/on_Snapshot__41_dangling.sh");
    dir.write("bare/on_Snapshot__1_a.sh", "");
    dir.write("schema_only/config.json", "{}");
    dir.write(".hidden/config.json", "not json");
    dir.write("__pycache__/config.json", "not json");
    dir.write("templates/card.html", "");
    dir.write("README.md", "");

    const auto plugin_set = PluginSet::load({dir.path()});
    Names plugins;
    for (const auto& [name, plugin] : plugin_set->plugins())
      plugins.push_back(name);
    CHECK(plugins == Names{"bare", "schema_only", "wget"});

    const Plugin* wget = plugin_set->find("wget");
    REQUIRE(wget != nullptr);
    CHECK(wget->title == "Wget");
    CHECK(wget->output_mimetypes == Names{"text/html"});
    Names hooks;
    for (const Hook& hook : wget->hooks) {
      CHECK(hook.plugin == wget);
      hooks.push_back(hook.name.name + (hook.executable ? "*" : ""));
    }
    CHECK(hooks == Names{"on_Snapshot__35_wget.finite.bg*", "on_Snapshot__36_plain", "on_Snapshot__38_native*",
                         "on_Snapshot__40_link"});
    CHECK(plugin_set->find("nothing") == nullptr);
  }

  TEST_CASE("every kind of property is read") {
    TempDir dir;
    dir.write("p/config.json", R"({"properties": {
      "P_ENABLED": {"type": "boolean", "default": false, "x-aliases": ["SAVE_P"]},
      "P_TIMEOUT": {"type": ["integer", "null"], "default": 60, "minimum": 5, "maximum": 90.5, "x-fallback": "TIMEOUT"},
      "P_ARGS": {"type": "array", "default": ["-a", "b c"]},
      "P_MODE": {"type": "string", "enum": ["x", "y"], "default": "x", "pattern": "^[xy]$"},
      "P_NOTHING": {"type": "string", "default": null},
      "P_KEY": {"type": "string", "x-sensitive": true, "description": "a key"},
      "P_API_KEY": {"type": "string"},
      "P_SERVER": {"type": "string", "x-scope": "server"},
      "P_PLAIN": {}
    }, "required_binaries": [{"name": "{P_BINARY}", "binproviders": "env,apt", "min_version": null}, "node"]})");
    const auto plugin_set = PluginSet::load({dir.path()});
    const Plugin& plugin = *plugin_set->find("p");
    const auto property = [&](std::string_view key) -> const Property& {
      for (const Property& each : plugin.properties) {
        if (each.key == key) return each;
      }
      throw std::runtime_error("no property " + std::string(key));
    };
    CHECK_FALSE(plugin.enabled_by_default);
    CHECK(property("P_ENABLED").default_value == "False");
    CHECK(property("P_ENABLED").aliases == Names{"SAVE_P"});
    CHECK(property("P_TIMEOUT").type == "integer");
    CHECK(property("P_TIMEOUT").default_value == "60");
    CHECK(property("P_TIMEOUT").minimum == 5.0);
    CHECK(property("P_TIMEOUT").maximum == 90.5);
    CHECK(property("P_TIMEOUT").fallback == "TIMEOUT");
    CHECK(property("P_ARGS").default_value == R"(["-a","b c"])");
    CHECK(property("P_MODE").enumeration == Names{"x", "y"});
    CHECK(property("P_MODE").pattern == "^[xy]$");
    CHECK_FALSE(property("P_NOTHING").has_default);
    CHECK(property("P_KEY").sensitive);
    CHECK(property("P_KEY").description == "a key");
    CHECK(property("P_API_KEY").sensitive);
    CHECK(property("P_SERVER").server_only);
    CHECK_FALSE(property("P_PLAIN").sensitive);
    CHECK(property("P_PLAIN").type == "string");
    REQUIRE(plugin.required_binaries.size() == 2);
    CHECK(plugin.required_binaries[0].name == "{P_BINARY}");
    CHECK(plugin.required_binaries[0].providers == "env,apt");
    CHECK(plugin.required_binaries[1].name == "node");
  }

  TEST_CASE("a mistake in config.json is named by file and line") {
    const std::pair<const char*, const char*> mistakes[] = {
        {"{\n  \"title\": \"a\",\n  oops\n}", ":3: not valid JSON"},
        {"{\n\"title\": \"a\"\n", ":3: not valid JSON"},
        {"", ":1: not valid JSON"},
        {"[]", ":1: must hold a JSON object"},
        {"{\n\n\"title\": 5}", ":3: \"title\" must be a string"},
        {"{\n\"required_plugins\": \"chrome\"}", ":2: \"required_plugins\" must be a list of strings"},
        {"{\n\"required_plugins\": [1]}", ":2: \"required_plugins\" must be a list of strings"},
        {"{\n\"properties\": []}", ":2: \"properties\" must be an object"},
        {"{\"properties\": {\n\"A\": 5}}", ":2: property A must be an object"},
        {"{\"type\": \"object\",\n\"properties\": {\"A\":\n{\n\"type\": \"text\"}}}",
         ":4: \"type\" of A must be one of"},
        {"{\"properties\": {\"A\": {\n\"minimum\": \"5\"}}}", ":2: \"minimum\" of A must be a number"},
        {"{\"properties\": {\"A\": {\n\"x-aliases\": \"B\"}}}", ":2: \"x-aliases\" of A must be a list of strings"},
        {"{\"required_binaries\":\n[{}]}", ":1: every entry of \"required_binaries\" must have a \"name\""},
    };
    for (const auto& [text, expected] : mistakes) {
      TempDir dir;
      dir.write("p/config.json", text);
      const std::string error = error_of([&] { PluginSet::load({dir.path()}); });
      CAPTURE(error);
      CAPTURE(text);
      CHECK(contains(error, "configuration: " + (dir / "p/config.json").string() + expected));
    }
  }

  TEST_CASE("a missing plugin directory is named") {
    TempDir dir;
    const std::string error = error_of([&] { PluginSet::load({dir / "absent"}); });
    CHECK(contains(error, "unavailable: "));
    CHECK(contains(error, (dir / "absent").string()));
  }

  TEST_CASE("a later directory replaces a plugin of the same name") {
    TempDir first;
    TempDir second;
    first.write("a/on_Snapshot__1_old.sh", "");
    first.write("b/on_Snapshot__2_b.sh", "");
    second.write("a/on_Snapshot__3_new.sh", "");
    const auto plugin_set = PluginSet::load({first.path(), second.path()});
    CHECK(plugin_set->plugins().size() == 2);
    REQUIRE(plugin_set->find("a")->hooks.size() == 1);
    CHECK(plugin_set->find("a")->hooks[0].name.name == "on_Snapshot__3_new");
    CHECK(plugin_set->find("a")->hooks[0].plugin == plugin_set->find("a"));
  }

  TEST_CASE("of files with one name but for their extensions, one is the hook") {
    TempDir dir;
    for (const char* name : {"a/on_Snapshot__1_a.py~", "a/on_Snapshot__1_a.py", "a/on_Snapshot__1_a.sh",
                             "a/on_Snapshot__1_a.old", "a/on_Snapshot__2_b", "a/on_Snapshot__2_b.orig"}) {
      dir.write(name, "");
      std::filesystem::permissions(dir / name, std::filesystem::perms::owner_all);
    }
    const auto plugin_set = PluginSet::load({dir.path()});
    const auto& hooks = plugin_set->find("a")->hooks;
    REQUIRE(hooks.size() == 2);
    CHECK(hooks[0].path.filename() == "on_Snapshot__1_a.py");
    CHECK(hooks[1].path.filename() == "on_Snapshot__2_b");
  }

  TEST_CASE("a directory whose name no row can hold is no plugin") {
    TempDir dir;
    for (const char* name : {"caf\xE9", "a\nb", "a,b", "caf\xC3\xA9"})
      dir.write(std::string(name) + "/on_Snapshot__1_a.sh", "");
    const auto plugin_set = PluginSet::load({dir.path()});
    CHECK(plugin_set->plugins().size() == 1);
    CHECK(plugin_set->find("caf\xC3\xA9") != nullptr);
  }

  TEST_CASE("a plugin for another runtime is left out") {
    TempDir dir;
    dir.write("sonic/config.json", R"({"x-runtimes":["archivebox"]})");
    dir.write("wget/config.json", R"({"x-runtimes":["abx-dl","archivebox"]})");
    CHECK(PluginSet::load({dir.path()})->find("sonic") == nullptr);
    CHECK(PluginSet::load({dir.path()})->find("wget") != nullptr);
    CHECK(PluginSet::load({dir.path()}, "archivebox")->find("sonic") != nullptr);
  }

  TEST_CASE("a selection brings what it requires, dependencies first") {
    TempDir dir;
    dir.write("base/config.json", "{}");
    dir.write("chrome/config.json", requiring({"base"}));
    dir.write("dom/config.json", requiring({"chrome"}));
    dir.write("pdf/config.json", requiring({"base", "chrome"}));
    dir.write("title/config.json", "{}");
    const auto plugin_set = PluginSet::load({dir.path()});
    CHECK(plugin_set->select({"dom"}) == Names{"base", "chrome", "dom"});
    CHECK(plugin_set->select({"pdf", "dom", "pdf"}) == Names{"base", "chrome", "pdf", "dom"});
    CHECK(plugin_set->select({" title , dom"}) == Names{"title", "base", "chrome", "dom"});
    CHECK(plugin_set->select({}) == Names{"base", "chrome", "dom", "pdf", "title"});
  }

  TEST_CASE("an unknown plugin is an error that lists the known ones") {
    TempDir dir;
    dir.write("title/config.json", "{}");
    dir.write("wget/config.json", "{}");
    const std::string error = error_of([&] { PluginSet::load({dir.path()})->select({"wget,titel"}); });
    CHECK(contains(error, "usage: "));
    CHECK(contains(error, "\"titel\""));
    CHECK(contains(error, "known plugins: title, wget"));
  }

  TEST_CASE("a circle of requirements is an error that shows it") {
    TempDir dir;
    dir.write("a/config.json", requiring({"b"}));
    dir.write("b/config.json", requiring({"c"}));
    dir.write("c/config.json", requiring({"b"}));
    const std::string error = error_of([&] { PluginSet::load({dir.path()})->select({"a"}); });
    CHECK(contains(error, "configuration: "));
    CHECK(contains(error, "b -> c -> b"));
  }

  TEST_CASE("a disabled or missing dependency stops a named root and silences a default one") {
    TempDir dir;
    dir.write("chrome/config.json", "{}");
    dir.write("dom/config.json", requiring({"chrome"}));
    dir.write("seo/config.json", requiring({"dom"}));
    dir.write("orphan/config.json", requiring({"gone"}));
    dir.write("title/config.json", "{}");
    const auto plugin_set = PluginSet::load({dir.path()});
    CHECK(contains(error_of([&] { plugin_set->select({"seo"}, {"chrome"}); }),
                   "plugin dom requires plugin chrome, which is disabled"));
    CHECK(contains(error_of([&] { plugin_set->select({"orphan"}); }), "requires plugin gone, which is not installed"));
    CHECK(plugin_set->select({}, {"chrome"}) == Names{"title"});
    CHECK(plugin_set->select({"title,chrome"}, {"chrome"}) == Names{"title"}); // disabling is the stronger word
  }

  TEST_CASE("plugins that are off by default run only when asked for or required") {
    TempDir dir;
    dir.write("off/config.json", R"({"properties":{"OFF_ENABLED":{"type":"boolean","default":false}}})");
    dir.write("needs_off/config.json", requiring({"off"}));
    dir.write("on/config.json", "{}");
    const auto plugin_set = PluginSet::load({dir.path()});
    CHECK(plugin_set->select({"off"}) == Names{"off"});
    CHECK(plugin_set->select({}) == Names{"off", "needs_off", "on"});
    CHECK(plugin_set->select({}, {"needs_off"}) == Names{"on"});
  }

  TEST_CASE("hooks of an event are ordered by number and name, those without a number last") {
    TempDir dir;
    for (const char* hook :
         {"b/on_Snapshot__20_x.sh", "b/on_Snapshot__unnumbered.sh", "a/on_Snapshot__20_y.sh", "a/on_Snapshot__5_z.sh",
          "a/on_Snapshot__100_w.sh", "a/on_CrawlSetup__1_c.sh", "c/on_Crawl__0_d.sh", "c/on_Snapshot__1_other.sh",
          "b/on_Snapshot__20_same.sh", "a/on_Snapshot__20_same.sh"}) {
      dir.write(hook, "");
    }
    const auto plugin_set = PluginSet::load({dir.path()});
    const auto names = [&](Event event, const Names& selected) {
      Names result;
      for (const Hook* hook : plugin_set->hooks_for(event, selected))
        result.push_back(hook->plugin->name + "/" + hook->name.name);
      return result;
    };
    CHECK(names(Event::snapshot, {"a", "b", "a", "unknown"}) ==
          Names{"a/on_Snapshot__5_z", "a/on_Snapshot__20_same", "b/on_Snapshot__20_same", "b/on_Snapshot__20_x",
                "a/on_Snapshot__20_y", "a/on_Snapshot__100_w", "b/on_Snapshot__unnumbered"});
    CHECK(names(Event::crawl_setup, {"a", "c"}) == Names{"c/on_Crawl__0_d", "a/on_CrawlSetup__1_c"});
    CHECK(names(Event::crawl_end, {"a"}).empty());
  }
}
