#include "lib/config/settings.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/config/support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using config::Settings;
using Paths = std::vector<std::filesystem::path>;

namespace {

// The process has one working directory; a test that changes it restores it.
class WorkingDirectory {
public:
  explicit WorkingDirectory(const std::filesystem::path& directory) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory);
  }
  ~WorkingDirectory() { std::filesystem::current_path(before_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

private:
  std::filesystem::path before_;
};

const test::Environment kHome{{"HOME", "/home/me"}};

} // namespace

TEST_SUITE("settings") {
  TEST_CASE("without any layer the defaults hold") {
    const test::TempDir directory;
    const auto settings = Settings::load(directory.write("a.yaml", ""), kHome, {});
    CHECK(settings.integer("worker.snapshots") == 4);
    CHECK(settings.duration("lease") == 60s);
    CHECK(settings.duration("hook.timeout") == 60s);
    CHECK(settings.duration("kill_grace") == 5s);
    CHECK(settings.size("hook.stdout_limit") == 64 * 1024 * 1024);
    for (const char* limit : {"stdout_limit", "stderr_limit", "output_limit", "memory_limit"})
      CHECK(settings.size(std::string("hook.") + limit) > 0);
    CHECK_FALSE(settings.boolean("urls.allow_private"));
    CHECK(settings.text("database.url").empty());
    CHECK(settings.text("log.level") == "info");
    CHECK(settings.path_list("plugins.path").empty());
    CHECK(settings.path("database.password_file").empty());
    CHECK(settings.value("lease").origin == "default");
    CHECK(settings.file() == directory / "a.yaml");
  }

  TEST_CASE("a later layer wins and its origin is remembered") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "lease: 61s\nheartbeat: 11s\n\nmargin: 21s\n");
    const auto settings =
        Settings::load(file, {{"HOLDFAST_HEARTBEAT", "12s"}, {"HOLDFAST_MARGIN", "22s"}, {"HOME", "/h"}},
                       {{"margin", "23s"}, {"data_dir", "/d"}, {"hook.open_files", "100"}});
    CHECK(settings.duration("lease") == 61s);
    CHECK(settings.value("lease").origin == file.string() + ":1");
    CHECK(settings.duration("heartbeat") == 12s);
    CHECK(settings.value("heartbeat").origin == "environment HOLDFAST_HEARTBEAT");
    CHECK(settings.duration("margin") == 23s);
    CHECK(settings.value("margin").origin == "--margin");
    CHECK(settings.value("data_dir").origin == "--data-dir");
    CHECK(settings.value("hook.open_files").origin == "--hook-open-files");
    CHECK(settings.duration("kill_grace") == 5s);
  }

  TEST_CASE("paths are absolute and a tilde is the home of the environment") {
    const test::TempDir directory;
    const auto file = directory.write("etc/a.yaml", "data_dir: ~/data/\nwork_dir: scratch/../w\n");
    const WorkingDirectory inside(directory.path());
    const auto settings = Settings::load("etc/a.yaml", {{"HOME", "/home/me"}, {"HOLDFAST_PLUGINS_PATH", "p:/q/:~/r:"}},
                                         {{"archive.root", "arc"}});
    CHECK(settings.path("data_dir") == "/home/me/data");
    CHECK(settings.path("work_dir") == directory / "etc/w"); // from where the file is
    CHECK(settings.path("archive.root") == directory / "arc");
    CHECK(settings.path_list("plugins.path") == Paths{directory / "p", "/q", "/home/me/r"});
    CHECK(settings.text("data_dir") == "~/data/");
  }

  TEST_CASE("the working and archive directories are inside the data directory unless set") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "data_dir: /srv/h\n");
    auto settings = Settings::load(file, kHome, {});
    CHECK(settings.path("work_dir") == "/srv/h/work");
    CHECK(settings.path("archive.root") == "/srv/h/archive");
    CHECK(settings.text("work_dir").empty());

    settings = Settings::load(file, kHome, {{"data_dir", "/other"}, {"archive.root", "/arc"}});
    CHECK(settings.path("work_dir") == "/other/work");
    CHECK(settings.path("archive.root") == "/arc");
  }

  TEST_CASE("the home of another user is not understood") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "");
    CHECK(test::complaint(file, kHome, {{"data_dir", "~you/x"}}).message ==
          "--data-dir: data_dir: \"~you/x\" names the home of another user");
    CHECK(test::complaint(file, kHome, {{"plugins.path", "/a:~you"}}).message.find("another user") !=
          std::string::npos);
  }

  TEST_CASE("the data directory must be somewhere") {
    const test::TempDir directory;
    CHECK(test::complaint(directory.write("a.yaml", "\ndata_dir:\n")).message ==
          (directory / "a.yaml").string() + ":2: data_dir: it must not be empty");
  }

  TEST_CASE("the first file of the usual places is read") {
    const test::TempDir directory;
    directory.write("home/.config/holdfast/holdfast.yaml", "lease: 61s\n");
    directory.write("xdg/holdfast/holdfast.yaml", "lease: 62s\n");
    std::filesystem::create_directory(directory / "empty");
    const auto home = (directory / "home").string();
    const auto xdg = (directory / "xdg").string();
    {
      const WorkingDirectory inside(directory / "empty");
      CHECK(Settings::load({}, {{"HOME", home}}, {}).duration("lease") == 61s);
      CHECK(Settings::load({}, {{"HOME", home}, {"XDG_CONFIG_HOME", xdg}}, {}).duration("lease") == 62s);
      CHECK(Settings::load({}, {{"HOME", home}, {"XDG_CONFIG_HOME", "xdg"}}, {}).duration("lease") == 61s);
      CHECK(Settings::load({}, {{"HOME", home}}, {}).file() == directory / "home/.config/holdfast/holdfast.yaml");
    }
    directory.write("work/holdfast.yaml", "lease: 63s\n");
    const WorkingDirectory inside(directory / "work");
    const auto settings = Settings::load({}, {{"HOME", home}, {"XDG_CONFIG_HOME", xdg}}, {});
    CHECK(settings.duration("lease") == 63s);
    CHECK(settings.value("lease").origin == "holdfast.yaml:1");
  }

  TEST_CASE("a file that is named but cannot be read is an error") {
    const test::TempDir directory;
    const auto missing = (directory / "none.yaml").string();
    CHECK(test::complaint(missing).message == "cannot read the settings in " + missing + ": No such file or directory");
    CHECK(test::complaint(directory.path()).message.find("Is a directory") != std::string::npos);
  }

  TEST_CASE("an unknown or bad option of the command line is an error") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "");
    const auto [message, hint] = test::complaint(file, kHome, {{"snapshots", "3"}});
    CHECK(message == "command line: there is no setting \"snapshots\"");
    CHECK(hint == "Did you mean \"worker.snapshots\"?");
    CHECK(test::complaint(file, kHome, {{"worker.snapshots", "0"}}).message ==
          "--worker-snapshots: worker.snapshots: 0 is out of bounds");
    CHECK(test::complaint(file, kHome, {{"data_dir", std::string("/a\0b", 4)}}).message.find("a control character") !=
          std::string::npos);
  }

  TEST_CASE("a file in place of a database url points to the password file") {
    const test::TempDir directory;
    const auto [message, hint] =
        test::complaint(directory.write("a.yaml", "database:\n  url: file:/run/secrets/x\n"), kHome);
    CHECK(message.find("/run/secrets") == std::string::npos); // a secret, whatever it is
    CHECK(hint.find("database.password_file") != std::string::npos);
  }

  TEST_CASE("booleans are understood as people write them") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "");
    const auto parse = [&](const char* text) {
      return Settings::load(file, kHome, {{"urls.allow_private", text}}).boolean("urls.allow_private");
    };
    for (const char* text : {"true", "True", "YES", "on", "1"})
      CHECK(parse(text));
    for (const char* text : {"false", "FALSE", "no", "Off", "0"})
      CHECK_FALSE(parse(text));
    for (const char* text : {"", "maybe", "2", "y", " true"})
      CHECK_THROWS_AS(parse(text), base::Error);
  }

  TEST_CASE("asking for a key that does not exist or has another type is a bug") {
    const test::TempDir directory;
    const auto settings = Settings::load(directory.write("a.yaml", ""), kHome, {});
    const auto is_bug = [](const auto& ask) {
      try {
        ask();
      } catch (const base::Error& error) {
        return error.error_class() == base::ErrorClass::bug;
      }
      return false;
    };
    CHECK(is_bug([&] { settings.text("nonsense"); }));
    CHECK(is_bug([&] { settings.value("worker"); }));
    CHECK(is_bug([&] { settings.integer("lease"); }));
    CHECK(is_bug([&] { settings.duration("worker.snapshots"); }));
    CHECK(is_bug([&] { settings.size("lease"); }));
    CHECK(is_bug([&] { settings.boolean("log.level"); }));
    CHECK(is_bug([&] { settings.path("plugins.path"); }));
    CHECK(is_bug([&] { settings.path_list("data_dir"); }));
  }
}
