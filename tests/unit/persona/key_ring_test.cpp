#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/persona/key_ring.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace holdfast;
using persona::KeyRing;
using test::TempDir;

namespace {

const std::string kOne(64, '1'), kTwo = "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=";

} // namespace

TEST_CASE("what is sealed opens under its own name, version and key alone") {
  const TempDir dir;
  const auto key_ring = KeyRing::open(dir.secret("key", "# mine\n" + kOne + "\n" + kTwo + " # old\n"));
  REQUIRE(key_ring.key_ids().size() == 2);
  const auto id = key_ring.key_ids().front();
  for (const std::string& plain : {std::string(), std::string("secret"), std::string(10'000'000, 'x')}) {
    const auto sealed = key_ring.seal("work", 3, plain);
    CHECK(sealed.find("secret") == std::string::npos);
    CHECK(sealed != key_ring.seal("work", 3, plain));
    CHECK(key_ring.open("work", 3, id, sealed) == plain);
    CHECK_THROWS_AS(key_ring.open("work", 4, id, sealed), base::Error);
    CHECK_THROWS_AS(key_ring.open("work2", 3, id, sealed), base::Error);
    CHECK_THROWS_AS(key_ring.open("work", 3, key_ring.key_ids().back(), sealed), base::Error);
    CHECK_THROWS_AS(key_ring.open("work", 3, "00000000", sealed), base::Error);
    auto other = sealed;
    other.back() = static_cast<char>(other.back() ^ 1);
    CHECK_THROWS_AS(key_ring.open("work", 3, id, other), base::Error);
    CHECK_THROWS_AS(key_ring.open("work", 3, id, sealed.substr(0, 20)), base::Error);
  }
  CHECK_THROWS_AS(KeyRing().seal("work", 1, "x"), base::Error);
  // The new key first, the old one behind it: both open.
  const auto turned = KeyRing::open(dir.secret("turned", kTwo + "\n" + kOne + "\n"));
  CHECK(turned.open("work", 3, id, key_ring.seal("work", 3, "x")) == "x");
  CHECK(turned.key_ids().front() == key_ring.key_ids().back());
}

TEST_CASE("a file without keys is refused by name and line, and not quoted") {
  const TempDir dir;
  for (const std::string text :
       {"", "# nothing\n", "secret\n", "11223344\n", "x1111111111111111111111111111111111111"}) {
    const auto file = dir.secret("key", text);
    try {
      KeyRing::open(file);
      FAIL("taken: " << text);
    } catch (const base::Error& error) {
      CHECK(std::string(error.what()).find(file.string()) != std::string::npos);
      CHECK(std::string(error.what()).find("secret") == std::string::npos);
    }
  }
  CHECK_THROWS_AS(KeyRing::open(dir / "missing"), base::Error);
}

TEST_CASE("a file of secrets that every user of the machine can read is refused") {
  const TempDir dir;
  using std::filesystem::perms;
  const auto file = dir.secret("key", kOne);
  for (const auto& [more, taken] : {std::pair{perms::none, true},
                                    {perms::group_read, true},
                                    {perms::others_read, false},
                                    {perms::others_exec, true}}) {
    std::filesystem::permissions(file, perms::owner_read | more);
    CAPTURE(static_cast<int>(more));
    if (taken)
      CHECK(base::secret_text(file, "persona.key_file") == kOne);
    else
      CHECK_THROWS_WITH_AS(KeyRing::open(file), doctest::Contains("every user"), base::Error);
  }
}

TEST_CASE("a key is made once, for its owner alone") {
  const TempDir dir;
  KeyRing::make(dir / "key");
  const auto ids = KeyRing::open(dir / "key").key_ids();
  KeyRing::make(dir / "key");
  CHECK(KeyRing::open(dir / "key").key_ids() == ids);
  CHECK((std::filesystem::status(dir / "key").permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  CHECK_THROWS_AS(KeyRing::make(dir / "missing/key"), base::Error);
}
