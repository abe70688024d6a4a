#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/catalog/list.hpp"
#include "services/cli/command/verbs.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames())
      names.push_back("--" + name);
    for (const auto& name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Returns the words that may follow a verb: its own options, its verbs, and for some the values of its argument.
std::string words_after(const CLI::App& verb) {
  auto words = options_of(verb);
  for (const auto* inner : verbs_of(verb))
    words.push_back(inner->get_name());
  if (verb.get_name() == "list")
    for (const auto& list : catalog::lists())
      words.emplace_back(list.name);
  if (verb.get_name() == "completion")
    for (const char* shell : {"bash", "zsh", "fish"})
      words.emplace_back(shell);
  return base::join(words, " ");
}

std::string escaped_for_man(const std::string& text) {
  std::string out;
  for (const char character : text)
    if (character == '\\')
      out += "\\e";
    else if (character == '-')
      out += "\\-";
    else
      out += character;
  if (out.starts_with('.') || out.starts_with('\'')) out = "\\&" + out;
  return out;
}

void man_options(const CLI::App& app) {
  for (const auto* option : app.get_options()) {
    std::string names = option->get_positional() ? option->get_name(true) : option->get_name(false, true);
    if (names.empty()) continue;
    std::cout << ".TP\n.B " << escaped_for_man(names) << "\n" << escaped_for_man(option->get_description()) << "\n";
  }
}

int completion(const CLI::App& app, const std::string& shell) {
  std::vector<std::string> verbs;
  for (const auto* verb : verbs_of(app))
    verbs.push_back(verb->get_name());
  const std::string general = base::join(options_of(app), " ");
  if (shell == "fish") {
    std::cout << "complete -c holdfast -n __fish_use_subcommand -f\n";
    for (const auto* verb : verbs_of(app)) {
      std::cout << "complete -c holdfast -n __fish_use_subcommand -a " << verb->get_name() << " -d "
                << base::shell_quoted(verb->get_description()) << "\n"
                << "complete -c holdfast -n '__fish_seen_subcommand_from " << verb->get_name() << "' -a "
                << base::shell_quoted(words_after(*verb)) << "\n";
    }
    std::cout << "complete -c holdfast -n __fish_use_subcommand -a " << base::shell_quoted(general) << "\n"
              << std::flush;
    return base::kExitSuccess;
  }
  if (shell == "zsh") std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
  std::cout << "_holdfast() {\n"
               "  local word=${COMP_WORDS[COMP_CWORD]} verb= at\n"
               "  for ((at = 1; at < COMP_CWORD; at++)); do\n"
               "    case ${COMP_WORDS[at]} in\n"
               "      --config | --data-dir | --database | --log-level | --set) ((at++)) ;;\n"
               "      -*) ;;\n"
               "      *) verb=${COMP_WORDS[at]}; break ;;\n"
               "    esac\n"
               "  done\n"
               "  case $verb in\n"
               "    '') COMPREPLY=($(compgen -W '"
            << base::join(verbs, " ") << " " << general << "' -- \"$word\")) ;;\n";
  for (const auto* verb : verbs_of(app))
    std::cout << "    " << verb->get_name() << ") COMPREPLY=($(compgen -W '" << words_after(*verb)
              << "' -- \"$word\")) ;;\n";
  std::cout << "  esac\n}\ncomplete -o default -F _holdfast holdfast\n" << std::flush;
  return base::kExitSuccess;
}

int manual(const CLI::App& app) {
  std::cout << ".TH HOLDFAST 1 \"\" \"holdfast " HOLDFAST_VERSION
               "\" \"Holdfast\"\n.SH NAME\nholdfast \\- keep web pages\n.SH SYNOPSIS\n"
               ".B holdfast\n[\\fIoptions\\fR] \\fIverb\\fR [\\fIarguments\\fR]\n.SH DESCRIPTION\n"
            << escaped_for_man(app.get_description()) << "\n.SH OPTIONS\n";
  man_options(app);
  std::cout << ".SH VERBS\n";
  for (const auto* verb : verbs_of(app)) {
    std::cout << ".SS " << escaped_for_man(verb->get_name()) << "\n"
              << escaped_for_man(verb->get_description()) << "\n";
    man_options(*verb);
    for (const auto* inner : verbs_of(*verb)) {
      std::cout << ".TP\n.B " << escaped_for_man(verb->get_name() + " " + inner->get_name()) << "\n"
                << escaped_for_man(inner->get_description()) << "\n";
      man_options(*inner);
    }
    if (const auto footer = verb->get_footer(); !footer.empty()) {
      std::cout << ".PP\n.nf\n";
      std::string line;
      for (const char character : footer + "\n")
        if (character == '\n') {
          std::cout << escaped_for_man(line) << "\n";
          line.clear();
        } else {
          line += character;
        }
      std::cout << ".fi\n";
    }
  }
  std::cout
      << ".SH EXIT STATUS\n0 done; 1 the work ended with failed snapshots; 64 wrong command line; 65 refused; 69 "
         "something outside is missing; "
         "70 a bug; 71 the system said no; 73, 74 files; 75 try again; 76 the schema is of another version; 78 a "
         "setting is wrong; 130 interrupted.\n"
         ".SH FILES\n\\&./holdfast.yaml, ~/.config/holdfast/holdfast.yaml, /etc/holdfast.yaml: settings, the first "
         "that is there.\n"
      << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action completion_verb(CLI::App& command) {
  const auto shell = std::make_shared<std::string>("bash");
  command.add_option("shell", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, app = command.get_parent()](Context&) { return completion(*app, *shell); };
}

Action manual_verb(CLI::App& command) {
  return [app = command.get_parent()](Context&) { return manual(*app); };
}

} // namespace holdfast::cli
