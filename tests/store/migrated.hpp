#pragma once
// For tests on migrated databases: linking this source gives TestDatabase its schema. Main thread only.

#include "lib/pg/connection.hpp"

namespace holdfast::test {

// Fails the test with what is broken, if anything is.
void expect_invariants(pg::Connection& connection);

} // namespace holdfast::test
