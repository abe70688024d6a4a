#pragma once
// The schema this binary was built with. Stateless; any thread.

#include "lib/pg/migrator.hpp"

namespace holdfast::store {

// The files that are embedded in this binary.
const pg::Migrator& migrator();

} // namespace holdfast::store
