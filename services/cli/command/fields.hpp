#pragma once
// Fields of a request (lib/catalog/field.hpp) as options of the command line. Main thread.

#include "lib/catalog/field.hpp"

#include <memory>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace holdfast::cli {

// Adds an option whose value becomes a member of `given`, in the type of its schema.
CLI::Option* add_field(CLI::App& command, const catalog::Field& field, const std::shared_ptr<nlohmann::json>& given);

} // namespace holdfast::cli
