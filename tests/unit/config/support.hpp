#pragma once
// Loading settings the way each test of this directory needs it. No state.

#include "lib/base/error.hpp"
#include "lib/config/settings.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

using Environment = std::map<std::string, std::string>;
using Overrides = std::vector<std::pair<std::string, std::string>>;

// An error of configuration as its two lines of text.
struct Complaint {
  std::string message;
  std::string hint;
};

// What load() complains of; the test fails if it does not complain.
inline Complaint complaint(const std::filesystem::path& file, const Environment& environment = {},
                           const Overrides& overrides = {}) {
  try {
    config::Settings::load(file, environment, overrides);
  } catch (const base::Error& error) {
    CHECK(error.error_class() == base::ErrorClass::configuration);
    return {error.what(), error.hint()};
  }
  FAIL_CHECK("accepted");
  return {};
}

} // namespace holdfast::test
