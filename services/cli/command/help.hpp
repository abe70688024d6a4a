#pragma once
// Help texts: what each option takes in a word, and lines that fit the terminal. Pure.

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class FormatterBase;
class Option;
} // namespace CLI

namespace holdfast::cli {

// Returns the word for an option's value, or for an argument: "--host-delay" takes DELAY; "ids", of which several may
// be given, are ID...
std::string placeholder(const CLI::Option& option);

// Returns the values that an option takes, if its check lists them.
std::vector<std::string> choices_of(const CLI::Option& option);

// Breaks a text at blanks into lines that fit, the first of which begins in column `at`.
std::string folded(const std::string& text, std::size_t indent, std::size_t at);

std::shared_ptr<CLI::FormatterBase> help_formatter();

} // namespace holdfast::cli
