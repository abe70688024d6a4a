#pragma once
// Bounds of numbers on the command line, with messages for users: "at least 1", "from 0 to 16". Pure.

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

namespace holdfast::cli {

// Accepts a number of type Number from `least` to `most`, if there is such a bound.
template <class Number>
CLI::Validator number(Number least, std::optional<Number> most = std::nullopt) {
  std::ostringstream bounds;
  if (most)
    bounds << "from " << least << " to " << *most;
  else
    bounds << "at least " << least;
  const std::string text = bounds.str();
  return CLI::Validator(
      [least, most, text](std::string& given) -> std::string {
        Number value{};
        const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
        if (error != std::errc{} || end != given.data() + given.size())
          return "\"" + given + "\" is not a number, give one " + text;
        return value < least || (most && value > *most) ? given + " is out of bounds: it must be " + text : "";
      },
      text, "");
}

} // namespace holdfast::cli
