#pragma once
// Who keeps statements waiting for locks: holdfast.blockers() of the database. Blocking; any thread.

#include "lib/pg/connection.hpp"

#include <string>

namespace holdfast::pg {

// For use after a lock timeout. In words for people; empty: no session does any more, or it cannot be told. Reads no
// table, and so waits for no lock.
std::string who_blocks(Connection& connection) noexcept;

} // namespace holdfast::pg
