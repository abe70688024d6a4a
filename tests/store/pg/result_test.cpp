// The errors of Result without rows; everything with rows needs a server (values_on_the_wire_test.cpp).
#include "lib/base/error.hpp"
#include "lib/pg/result.hpp"

#include <doctest/doctest.h>

using holdfast::base::Error;
using holdfast::base::ErrorClass;

TEST_CASE("asking an empty result for its one row is a bug and says how many there were") {
  const holdfast::pg::Result result;
  CHECK(result.empty());
  CHECK(result.affected_rows() == 0);
  try {
    (void)result.one();
    FAIL("one() returned");
  } catch (const Error& error) {
    CHECK(error.error_class() == ErrorClass::bug);
    CHECK(std::string(error.what()) == "expected exactly one row, got 0");
  }
}
