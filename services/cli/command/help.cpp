#include "services/cli/command/help.hpp"

#include "lib/base/text/text.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace holdfast::cli {

namespace {

constexpr std::size_t kColumn = 30;  // of descriptions
constexpr std::size_t kChoices = 26; // that are shown in place of a value

// Returns true if a description names all choices.
bool says_all(const std::string& about, const std::vector<std::string>& choices) {
  return std::all_of(choices.begin(), choices.end(), [&](const auto& one) { return about.find(one) != about.npos; });
}

class Help : public CLI::Formatter {
  static std::string entry(const std::string& name, const std::string& about) {
    std::string line = "  " + name;
    if (about.empty()) return line + "\n";
    const auto size = display_width(line);
    line += size + 1 > kColumn ? "\n" + std::string(kColumn, ' ') : std::string(kColumn - size, ' ');
    return line + folded(about, kColumn, kColumn) + "\n";
  }
  std::string make_option(const CLI::Option* option, bool positional) const override {
    const auto choices = choices_of(*option);
    const auto all = base::join(choices, ",");
    const bool many = all.size() > kChoices, takes = option->get_items_expected_max() > 0;
    auto name = positional ? placeholder(*option) : make_option_name(option, false);
    if (!positional && takes) name += " " + (choices.empty() || many ? placeholder(*option) : "{" + all + "}");
    auto about = option->get_description();
    if ((many || positional) && !says_all(about, choices)) about += ": " + base::join(choices, ", ");
    if (takes && !option->get_default_str().empty()) about += " (" + option->get_default_str() + ")";
    if (!positional && option->get_required()) about += "; required";
    return entry(name, about);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* command) const override {
    return folded(command->get_description(), 0, 0) + "\n";
  }
  std::string make_footer(const CLI::App* command) const override {
    std::string text;
    bool examples = false; // which are to be copied
    std::istringstream lines(command->get_footer());
    for (std::string line; std::getline(lines, line);) {
      examples = examples || line == "Examples:";
      text += (examples || line.starts_with(' ') ? line : folded(line, 0, 0)) + "\n";
    }
    return text;
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    return option->get_required() ? placeholder(*option) : "[" + placeholder(*option) + "]";
  }
};

} // namespace

std::string folded(const std::string& text, std::size_t indent, std::size_t at) {
  const auto width = ::isatty(STDOUT_FILENO) == 1 ? std::max(terminal_width(), indent + 30) : 80;
  std::string lines;
  for (const auto& word : base::split(text, " ")) {
    const auto size = display_width(word);
    if (at > indent && at + 1 + size > width) {
      lines += "\n" + std::string(at = indent, ' ');
    } else if (at > indent) {
      lines += ' ';
      ++at;
    }
    lines += word;
    at += size;
  }
  return lines;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const auto type = option.get_type_name(); // "TEXT:{a,b}"
  const auto begin = type.find('{') + 1;    // npos + 1 is 0
  return begin == 0 ? std::vector<std::string>() : base::split(type.substr(begin, type.find('}') - begin), ",");
}

std::string placeholder(const CLI::Option& option) {
  const auto type = option.get_type_name();
  auto word = option.get_positional() ? option.get_name(true) : option.get_single_name();
  const bool several = option.get_items_expected_max() > 1;
  if (!option.get_positional()) {
    if (type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT"))
      word = "number";
    else if (!type.starts_with("TEXT"))
      word = type;
    word = word.substr(word.rfind('-') + 1);
  }
  if (several && word.ends_with('s')) word.pop_back();
  for (auto& letter : word)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return word + (several ? "..." : "");
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Help>(); }

} // namespace holdfast::cli
