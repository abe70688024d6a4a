#pragma once
// What to say about a command line that cannot be understood: what is wrong, and the line that does what was meant.
// Pure functions.

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
