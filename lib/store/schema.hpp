#pragma once
// The schema this binary was built with. Stateless; any thread.

#include "lib/pg/migrator.hpp"

namespace holdfast::store {

const pg::Migrator& migrator();

} // namespace holdfast::store
