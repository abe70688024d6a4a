#include "tests/support/temp_dir.hpp"
#include "tests/unit/config/support.hpp"

using namespace holdfast;
using config::Settings;

namespace {

const test::Environment kFileHome{{"HOME", "/home/me"}};

struct BadFile {
  const char* text;
  const char* message; // after "path:"
  const char* hint;    // part of it
};

const BadFile kBadFiles[] = {
    // not YAML
    {"lease: [1", "1: ", ""},
    {"worker:\n  snapshots: a: b\n", "2: ", ""},
    {"\n\nlease: *nothing\n", "3: ", ""},
    {"lease: 1s\n---\nheartbeat: 1s\n", "2: a second document begins here", "---"},
    {",a\n", "1: a second document begins here", ""}, // a trap of yaml-cpp: there would be no end of documents
    // not settings
    {"just words\n", "1: this is not a list of \"key: value\"", ""},
    {"- a\n- b\n", "1: this is not a list of \"key: value\"", ""},
    {"? [a]\n: b\n", "1: a key must be a word", ""},
    {"# c\nworker:\n  snapshot: 3\n", "3: there is no setting \"worker.snapshot\"", "worker.snapshots"},
    {"leese: 3s\n", "1: there is no setting \"leese\"", "\"lease\""},
    {"url:\n  allow_private: true\n", "1: there is no setting \"url\"", "database.url"},
    {"urls:\n  private: true\n", "2: there is no setting \"urls.private\"", ""},
    {"completely: wrong\n", "1: there is no setting \"completely\"", "holdfast config"},
    {"hook:\n  WGET_TIMEOUT: 3\n", "2: there is no setting \"hook.WGET_TIMEOUT\"", ""},
    {"worker: 4\n", "1: \"worker\" is a section, not a setting", "worker:"},
    {"worker: [4]\n", "1: \"worker\" is a section, not a setting", ""},
    {"<<: {lease: 1s}\n", "1: there is no setting \"<<\"", ""},
    // twice
    {"lease: 61s\nheartbeat: 1s\nlease: 62s\n", "3: \"lease\" is already set in line 1", ""},
    {"worker:\n  poll: 1s\nlog:\n  level: info\nworker:\n  snapshots: 1\n", "5: \"worker\" is already set in line 1",
     ""},
    {"worker.poll: 1s\nworker:\n  poll: 2s\n", "3: \"worker.poll\" is already set in line 1", ""},
    {"hooks:\n  A: 1\n  A: 2\n", "3: \"hooks.A\" is already set in line 2", ""},
    // wrong type
    {"worker:\n  snapshots: many\n", "2: worker.snapshots: \"many\" is not a whole number", ""},
    {"worker:\n  snapshots: 1.5\n", "2: worker.snapshots: \"1.5\" is not a whole number", ""},
    {"worker:\n  snapshots:\n", "2: worker.snapshots: \"\" is not a whole number", ""},
    {"worker:\n  snapshots: 99999999999999999999\n", "2: worker.snapshots: \"99999999999999999999\" is not", ""},
    {"worker:\n  snapshots: [1]\n", "2: worker.snapshots: this takes one value, not a list", ""},
    {"lease: {a: b}\n", "1: lease: this takes one value, not a section", ""},
    {"lease: soon\n", "1: lease: \"soon\" is not a duration", "90s"},
    {"hook:\n  output_limit: huge\n", "2: hook.output_limit: \"huge\" is not a size", "MiB"},
    {"urls:\n  allow_private: perhaps\n", "2: urls.allow_private: \"perhaps\" is neither true nor false", ""},
    {"log:\n  level: loud\n", "2: log.level: \"loud\" is not a choice", "trace, debug, info, warn, error, off"},
    {"plugins:\n  path: [/a, [b]]\n", "2: plugins.path: each item must be a path", ""},
    {"plugins:\n  path: [\"/a:b\"]\n", "2: plugins.path: a path in a list cannot contain \":\"", ""},
    {"data_dir: \"a\\0b\"\n", "1: data_dir: it holds a control character, or bytes that are not UTF-8", ""},
    // out of bounds
    {"worker:\n  snapshots: 501\n", "2: worker.snapshots: 501 is out of bounds", "from 1 to 500"},
    {"worker:\n  snapshots: -1\n", "2: worker.snapshots: -1 is out of bounds", ""},
    {"database:\n  connections: 1\n", "2: database.connections: 1 is out of bounds", "from 2 to 16"},
    {"lease: 10ms\n", "1: lease: 10ms is out of bounds", "from 1 s to 1 h"},
    {"hook:\n  stdout_limit: 1\n", "2: hook.stdout_limit: 1 is out of bounds", "from 1.0 KiB to 1.0 TiB"},
    // hook options
    {"hooks: 3\n", "1: \"hooks\" takes one NAME: value a line", ""},
    {"hooks:\n  A-B: 3\n", "2: \"A-B\" cannot be the name of a hook option", "environment"},
    {"hooks:\n  3A: 3\n", "2: \"3A\" cannot be the name of a hook option", ""},
    {"hooks:\n  A: \"x\\0y\"\n", "2: A holds a NUL character", ""},
    {"hooks:\n  A: &a [*a]\n", "2: ", ""},
};

} // namespace

TEST_SUITE("settings from yaml") {
  TEST_CASE("every mistake is named with file and line") {
    const test::TempDir directory;
    for (const BadFile& bad : kBadFiles) {
      CAPTURE(bad.text);
      const auto file = directory.write("bad.yaml", bad.text);
      const auto [message, hint] = test::complaint(file, kFileHome);
      const std::string start = file.string() + ":" + bad.message;
      CHECK(message.substr(0, start.size()) == start);
      CHECK(hint.find(bad.hint) != std::string::npos);
    }
  }

  TEST_CASE("sections can be nested or dotted or empty") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "worker.snapshots: 9\nworker:\n  poll: 7s\nlog:\nhooks:\nrunner: {}\n");
    const auto settings = Settings::load(file, kFileHome, {});
    CHECK(settings.integer("worker.snapshots") == 9);
    CHECK(settings.text("worker.poll") == "7s");
    CHECK(settings.value("worker.poll").origin == file.string() + ":3");
    CHECK(settings.text("log.level") == "info");
  }

  TEST_CASE("a file of nothing but comments changes nothing") {
    const test::TempDir directory;
    for (const char* text : {"", "\n", "# comment\n", "---\n", "---\n# comment\n", "{}\n", "\xEF\xBB\xBF# mark\n"}) {
      CAPTURE(text);
      CHECK(Settings::load(directory.write("a.yaml", text), kFileHome, {}).text("lease") == "60s");
    }
  }

  TEST_CASE("a list of paths can be a list or a line") {
    const test::TempDir directory;
    const std::vector<std::filesystem::path> expected{"/a", directory / "b", "/home/me/c"};
    for (const char* text : {"plugins:\n  path: [/a, b, ~/c]\n", "plugins:\n  path:\n    - /a\n    - b\n    - ~/c\n",
                             "plugins.path: /a:b:~/c\n"}) {
      CAPTURE(text);
      CHECK(Settings::load(directory.write("a.yaml", text), kFileHome, {}).path_list("plugins.path") == expected);
    }
  }

  TEST_CASE("an empty value leaves a text empty") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "database:\n  url:\nplugins:\n  path: []\n  environment: ~\n");
    const auto settings = Settings::load(file, kFileHome, {});
    CHECK(settings.text("database.url").empty());
    CHECK(settings.path_list("plugins.path").empty());
    CHECK(settings.text("plugins.environment").empty());
    CHECK(settings.value("database.url").origin == file.string() + ":2");
  }

  TEST_CASE("hook options keep scalars as written and turn the rest into json") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", R"(hooks:
  WGET_TIMEOUT: 30
  SAVE_WGET: true
  AGENT: "a \"b\" c"
  NOTHING:
  OCTAL: 0755
  ARGS: ["--a", 5, "5", 1.5, true, "true", null, ~, x y, -3, 1e3, .5, nan, 0x10]
  MAP:
    b: [1]
    a: {c: "ä"}
  EMPTY: []
  TEXT: |
    two
    lines
)");
    const auto options = Settings::load(file, kFileHome, {}).hook_options();
    CHECK(options.at("WGET_TIMEOUT").text == "30");
    CHECK(options.at("WGET_TIMEOUT").origin == file.string() + ":2");
    CHECK(options.at("SAVE_WGET").text == "true");
    CHECK(options.at("AGENT").text == "a \"b\" c");
    CHECK(options.at("NOTHING").text.empty());
    CHECK(options.at("OCTAL").text == "0755");
    CHECK(options.at("ARGS").text == R"(["--a",5,"5",1.5,true,"true",null,null,"x y",-3,1000.0,0.5,"nan","0x10"])");
    CHECK(options.at("MAP").text == R"({"b":[1],"a":{"c":"ä"}})");
    CHECK(options.at("EMPTY").text == "[]");
    CHECK(options.at("TEXT").text == "two\nlines\n");
    CHECK(options.size() == 9);
  }

  TEST_CASE("keys in the middle of hook options are not settings") {
    const test::TempDir directory;
    const auto settings = Settings::load(directory.write("a.yaml", "hooks:\n  lease: 1\n"), kFileHome, {});
    CHECK(settings.text("lease") == "60s");
    CHECK(settings.hook_options().count("lease") == 1);
  }
}
