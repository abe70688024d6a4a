#include "lib/store/call.hpp"

namespace holdfast::store {

pg::Result call_with(pg::Connection& connection, std::string_view function, const pg::Params& arguments) {
  std::string list;
  for (std::size_t i = 1; i <= arguments.values().size(); ++i)
    list += (i > 1 ? ", $" : "$") + std::to_string(i);
  return connection.call("select * from holdfast." + std::string(function) + "(" + list + ")", arguments);
}

} // namespace holdfast::store
