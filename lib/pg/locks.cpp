#include "lib/pg/locks.hpp"

#include <exception>

namespace holdfast::pg {

std::string who_blocks(Connection& connection) noexcept {
  try {
    // A session that has kept us waiting has had its locks for longer.
    const auto rows = connection.call("select string_agg(says, '; ') as says from holdfast.blockers('1 second')");
    return rows.one()["says"].value_or("");
  } catch (const std::exception&) {
    return "";
  }
}

} // namespace holdfast::pg
