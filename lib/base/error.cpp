#include "lib/base/error.hpp"

#include <cstring>

namespace holdfast::base {

std::string_view to_string(ErrorClass error_class) noexcept {
  switch (error_class) {
  case ErrorClass::usage:
    return "usage";
  case ErrorClass::refused:
    return "refused";
  case ErrorClass::unavailable:
    return "unavailable";
  case ErrorClass::bug:
    return "bug";
  case ErrorClass::system:
    return "system";
  case ErrorClass::cannot_create:
    return "cannot_create";
  case ErrorClass::input_output:
    return "input_output";
  case ErrorClass::temporary:
    return "temporary";
  case ErrorClass::schema_mismatch:
    return "schema_mismatch";
  case ErrorClass::lease_lost:
    return "lease_lost";
  case ErrorClass::configuration:
    return "configuration";
  }
  return "unknown";
}

std::string errno_text(int error_number) {
  char buffer[128];
  return strerror_r(error_number, buffer, sizeof buffer); // the GNU form: returns the text, here or elsewhere
}

} // namespace holdfast::base
