#include "lib/base/error.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <set>

using namespace holdfast::base;

namespace {

constexpr ErrorClass kAll[] = {
    ErrorClass::usage,           ErrorClass::refused,       ErrorClass::unavailable,   ErrorClass::bug,
    ErrorClass::system,          ErrorClass::cannot_create, ErrorClass::input_output,  ErrorClass::temporary,
    ErrorClass::schema_mismatch, ErrorClass::lease_lost,    ErrorClass::configuration,
};

} // namespace

TEST_SUITE("error") {
  TEST_CASE("every error class has a name and an exit code of its own") {
    std::set<std::string_view> names;
    std::set<int> codes{kExitSuccess, kExitFailedWork, kExitInterrupted};
    for (const ErrorClass error_class : kAll) {
      CHECK(names.insert(to_string(error_class)).second);
      CHECK(codes.insert(static_cast<int>(error_class)).second);
      CHECK(to_string(error_class) != "unknown");
    }
    CHECK(to_string(ErrorClass::schema_mismatch) == "schema_mismatch");
  }

  TEST_CASE("an error carries message and hint and exit code") {
    const Error error(ErrorClass::configuration, "a is wrong", "write b");
    CHECK(std::string(error.what()) == "a is wrong");
    CHECK(error.hint() == "write b");
    CHECK(error.exit_code() == 78);
    CHECK(Error(ErrorClass::bug, "x").hint().empty());
  }

  TEST_CASE("errno values become text") {
    CHECK(errno_text(ENOSPC) == "No space left on device");
    CHECK(errno_text(123456).find("123456") != std::string::npos);
  }
}
