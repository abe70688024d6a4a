#include "lib/base/error.hpp"

#include <cstring>
#include <utility>

namespace holdfast::base {

std::string_view to_string(ErrorClass error_class) noexcept {
  static constexpr std::pair<ErrorClass, std::string_view> kNames[] = {
      {ErrorClass::usage, "usage"},
      {ErrorClass::refused, "refused"},
      {ErrorClass::unavailable, "unavailable"},
      {ErrorClass::bug, "bug"},
      {ErrorClass::system, "system"},
      {ErrorClass::cannot_create, "cannot_create"},
      {ErrorClass::input_output, "input_output"},
      {ErrorClass::temporary, "temporary"},
      {ErrorClass::schema_mismatch, "schema_mismatch"},
      {ErrorClass::lease_lost, "lease_lost"},
      {ErrorClass::configuration, "configuration"},
  };
  for (const auto& [known, name] : kNames)
    if (known == error_class) return name;
  return "unknown";
}

std::string errno_text(int error_number) {
  char buffer[128];
  return strerror_r(error_number, buffer, sizeof buffer); // the GNU form: returns the text, here or elsewhere
}

} // namespace holdfast::base
