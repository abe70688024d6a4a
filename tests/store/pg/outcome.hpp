#pragma once
// What a call ended with, so that a test can look at all of it. For the tests of lib/pg.

#include "lib/base/error.hpp"
#include "lib/pg/sqlstate.hpp"

#include <doctest/doctest.h>

#include <string>

namespace doctest {
template <>
struct StringMaker<holdfast::base::ErrorClass> {
  static String convert(holdfast::base::ErrorClass value) {
    return String(std::string(holdfast::base::to_string(value)).c_str());
  }
};
} // namespace doctest

namespace holdfast::test {

struct Outcome {
  bool failed{false};
  base::ErrorClass error_class{};
  std::string sqlstate;
  std::string message;
  std::string hint;
};

template <class Action>
Outcome outcome_of(Action&& action) {
  try {
    action();
    return {};
  } catch (const pg::DatabaseError& error) {
    return {true, error.error_class(), error.sqlstate(), error.what(), error.hint()};
  } catch (const base::Error& error) {
    return {true, error.error_class(), "", error.what(), error.hint()};
  }
}

} // namespace holdfast::test
