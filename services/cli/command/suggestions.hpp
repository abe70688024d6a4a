#pragma once
// Messages for a command line that cannot be parsed: the problem, and the line that was probably meant. Pure functions.

#include <string>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace holdfast::cli {

struct Suggestion {
  std::string problem, hint;
};

// `app` has just thrown `error`.
Suggestion explain(const CLI::App& app, const CLI::ParseError& error);

} // namespace holdfast::cli
