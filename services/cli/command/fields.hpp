#pragma once
// Fields of a request (lib/catalog/field.hpp) as options of the command line. Main thread.

#include "lib/base/text/number.hpp"
#include "lib/catalog/field.hpp"
#include "lib/hooks/plugin_set.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace holdfast::cli {

// Adds an option whose value becomes a member of `given`, in the type of its schema.
CLI::Option* add_field(CLI::App& command, const catalog::Field& field, const std::shared_ptr<nlohmann::json>& given);

// Names that `--option NAME=VALUE` may have, as the plugins of this machine declare them. Pure.

// Throws Error(usage) with the nearest name, or the names there are, if it is none that a crawl may set.
// Everything is accepted where there are no plugins.
void check_option_name(const hooks::PluginSet& plugin_set, const std::string& name);

// Bounds of numbers on the command line, with messages for users: "at least 1", "from 0 to 16". Pure.

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
        const auto value = base::parse_number<Number>(given);
        if (!value) return "\"" + given + "\" is not a number, give one " + text;
        return *value < least || (most && *value > *most) ? given + " is out of bounds: it must be " + text : "";
      },
      text, "");
}

} // namespace holdfast::cli
