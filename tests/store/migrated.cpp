#include "tests/store/migrated.hpp"

#include "lib/store/call.hpp"
#include "lib/store/schema.hpp"
#include "tests/support/test_database.hpp"

#include <doctest/doctest.h>

namespace holdfast::test {

void migrate_template(const std::string& dsn) {
  pg::Connection connection(dsn);
  store::migrator().migrate(connection);
}

void expect_invariants(pg::Connection& connection) {
  try {
    const auto broken = store::call(connection, "check_invariants");
    for (std::size_t i = 0; i < broken.size(); ++i)
      MESSAGE(broken[i].text("invariant") << ": " << broken[i]["detail"].value_or(""));
    CHECK(broken.empty());
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
  }
}

} // namespace holdfast::test
