#include "lib/pg/environment.hpp"

#include "lib/base/error.hpp"

#include <libpq-fe.h>

#include <memory>

namespace holdfast::pg {

std::map<std::string, std::string> environment_of(const std::string& dsn) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(PQconninfoParse(dsn.c_str(), nullptr),
                                                                            &PQconninfoFree);
  if (!parsed) throw base::Error(base::ErrorClass::configuration, "the database URL cannot be parsed");
  std::map<std::string, std::string> values;
  for (const auto* option = parsed.get(); option->keyword != nullptr; ++option)
    if (option->val != nullptr && option->envvar != nullptr) values[option->envvar] = option->val;
  return values;
}

} // namespace holdfast::pg
