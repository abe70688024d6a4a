#pragma once
// Help texts: what each option takes in a word, and lines that fit the terminal. Pure.

#include <memory>
#include <string>

namespace CLI {
class FormatterBase;
class Option;
} // namespace CLI

namespace holdfast::cli {

// Returns the word for an option's value, or for an argument: "--host-delay" takes DELAY; "ids", of which several may
// be given, are ID...
std::string placeholder(const CLI::Option& option);

std::shared_ptr<CLI::FormatterBase> help_formatter();

} // namespace holdfast::cli
