#include "lib/base/error.hpp"
#include "lib/hooks/binary.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace holdfast::hooks;
namespace fs = std::filesystem;

TEST_SUITE("programs") {
  TEST_CASE("the version in what programs say of themselves") {
    CHECK(version_in("GNU Wget 1.21.3 built on linux-gnu.") == "1.21.3");
    CHECK(version_in("Chromium 128.0.6613.84 built on Debian\n") == "128.0.6613.84");
    CHECK(version_in("v22.12.0\n") == "22.12.0");
    CHECK(version_in("ffmpeg version n7.1-3") == "7.1");
    CHECK(version_in("2026.08.19") == "2026.08.19");
    CHECK(version_in("tool 7, of 2024") == "");
    CHECK(version_in("") == "");
    CHECK(version_in("1.") == "");
  }

  TEST_CASE("versions are compared number by number") {
    CHECK(older("18.20.4", "22.12.0"));
    CHECK(older("1.9", "1.10"));
    CHECK(older("5", "5.0.1"));
    CHECK_FALSE(older("22.12.0", "22.12.0"));
    CHECK_FALSE(older("23", "22.12"));
    CHECK_FALSE(older("", "1.0"));
    CHECK_FALSE(older("1.0", ""));
    CHECK_FALSE(older("99999999999999999999.1", "1.0")); // no number that we could read
  }

  TEST_CASE("a program is found in the first directory that has one") {
    const holdfast::test::TempDir dir;
    for (const char* name : {"a/tool", "b/tool", "b/other"}) {
      const auto file = dir.write(name, "#!/bin/sh\n");
      fs::permissions(file, fs::perms::owner_all);
    }
    dir.write("a/other", "not executable");
    fs::create_directory(dir / "a/directory");
    const std::vector<fs::path> directories{dir / "a", dir / "b"};
    CHECK(find_binary("tool", directories) == (dir / "a/tool").string());
    CHECK(find_binary("other", directories) == (dir / "b/other").string());
    CHECK_FALSE(find_binary("directory", directories));
    CHECK_FALSE(find_binary("", directories));
    CHECK(find_binary((dir / "b/tool").string(), {}) == (dir / "b/tool").string());
    CHECK_FALSE(find_binary((dir / "a/other").string(), directories));
    CHECK(path_directories("relative:/usr/bin::/bin") == std::vector<fs::path>{"/usr/bin", "/bin"});
  }

  TEST_CASE("the command that installs") {
    WantedBinary program;
    program.name = "pdftoppm";
    program.providers = "env,apt,brew";
    program.overrides = R"({"apt": {"install_args": ["poppler-utils"]}, "brew": ["poppler"]})";
    CHECK(installation_of(program, {"apt-get", "brew"})->command() ==
          "apt-get install --no-install-recommends poppler-utils");
    CHECK(installation_of(program, {"brew"})->command() == "brew install poppler");
    CHECK_FALSE(installation_of(program, {"npm"}));
    program.overrides = "not JSON";
    CHECK(installation_of(program, {"apt-get"})->command() == "apt-get install --no-install-recommends pdftoppm");
    program.overrides = R"({"apt": {"install_args": ["a; rm -rf /", "it's"]}})";
    CHECK(installation_of(program, {"apt-get"})->command() ==
          "apt-get install --no-install-recommends 'a; rm -rf /' 'it'\\''s'");
  }

  TEST_CASE("the interpreter of a hook") {
    const holdfast::test::TempDir dir;
    Hook hook;
    const auto with = [&](const std::string& text) {
      hook.path = dir.write("hook", text);
      hook.executable = true;
      return interpreter_of(hook);
    };
    CHECK(with("#!/bin/bash\n") == "/bin/bash");
    CHECK(with("#!/usr/bin/env python3\n") == "python3");
    CHECK(with("#!/usr/bin/env -S abxpkg run --script node\n") == "abxpkg");
    CHECK(with("#!/usr/bin/env -S A=b node") == "node");
    CHECK(with("\x7f"
               "ELF") == "");
    hook.executable = false;
    hook.name.extension = "js";
    CHECK(interpreter_of(hook) == "node");
  }
}
