#include "lib/config/layers.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/config/support.hpp"

#include <set>

using namespace holdfast;
using config::Type;

TEST_SUITE("key table") {
  TEST_CASE("every key has a name in each spelling of its own") {
    std::set<std::string> names;
    std::set<std::string> variables;
    for (const config::Key& key : config::key_table()) {
      CAPTURE(key.name);
      CHECK(names.insert(std::string(key.name)).second);
      CHECK(variables.insert(config::environment_name(key.name)).second);
      CHECK(key.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string_view::npos);
      CHECK(key.help.ends_with("."));
      CHECK(config::find_key(key.name) == &key);
    }
    CHECK(config::environment_name("urls.allow_private") == "HOLDFAST_URLS_ALLOW_PRIVATE");
  }

  TEST_CASE("no key is a section of another and none hides the hook options") {
    for (const config::Key& key : config::key_table()) {
      CHECK_FALSE(key.name.starts_with("hooks"));
      for (const config::Key& other : config::key_table()) {
        CHECK_FALSE(other.name.starts_with(std::string(key.name) + "."));
      }
    }
  }

  TEST_CASE("every default is a valid value of its key") {
    for (const config::Key& key : config::key_table()) {
      CAPTURE(key.name);
      CHECK_NOTHROW(config::check_value(key, {std::string(key.default_value), "default"}));
      CHECK(key.minimum <= key.maximum);
      if (key.minimum == 0 && key.maximum == 0) continue;
      CHECK((key.type == Type::integer || key.type == Type::duration || key.type == Type::size));
    }
  }

  TEST_CASE("only the database url and the token of a server are secrets") {
    for (const config::Key& key : config::key_table())
      CHECK(key.secret == (key.name == "database.url" || key.name == "token"));
  }

  TEST_CASE("every bound is kept from both sides") {
    const test::TempDir directory;
    const auto empty = directory.write("empty.yaml", "");
    for (const config::Key& key : config::key_table()) {
      if (key.minimum == 0 && key.maximum == 0) continue;
      CAPTURE(key.name);
      const std::string name(key.name);
      const std::string unit = key.type == Type::duration ? "ms" : "";
      const auto load = [&](std::int64_t number) {
        return config::Settings::load(empty, {{"HOME", "/home/me"}}, {{name, std::to_string(number) + unit}});
      };
      CHECK_NOTHROW(load(key.minimum));
      CHECK_NOTHROW(load(key.maximum));
      CHECK_THROWS_AS(load(key.minimum - 1), base::Error);
      CHECK_THROWS_AS(load(key.maximum + 1), base::Error);
    }
  }
}
