#pragma once
#include "lib/base/error.hpp"

#include <optional>

namespace holdfast::test {

// The error that the action throws, if it throws one.
template <typename Action>
std::optional<base::Error> error_of(Action action) {
  try {
    action();
  } catch (const base::Error& error) {
    return error;
  }
  return std::nullopt;
}

} // namespace holdfast::test
