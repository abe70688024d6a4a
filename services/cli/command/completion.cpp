#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/catalog/list.hpp"
#include "lib/config/settings.hpp"
#include "services/cli/command/help.hpp"
#include "services/cli/command/verbs.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* verb_of(const CLI::App& app, const std::string& name) {
  for (const auto* verb : verbs_of(app))
    if (verb->get_name() == name) return verb;
  return nullptr;
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

// Each shell asks the program for the words at its cursor, with their descriptions.
constexpr const char* kBash = R"(_holdfast() {
  local IFS=$'\n'
  COMPREPLY=($(holdfast completion words -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null | cut -f1))
  [[ $COMPREPLY != *= ]] || compopt -o nospace
}
complete -o default -F _holdfast holdfast
)";
constexpr const char* kZsh = R"(#compdef holdfast
_holdfast() {
  local line
  local -a words_ values
  for line in "${(@f)$(holdfast completion words -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)}"; do
    case ${line%%$'\t'*} in
      '') ;;
      *=) values+=("${line%%$'\t'*}") ;;
      *) words_+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#words_ + $#values )) || { _files; return }
  (( ! $#words_ )) || _describe holdfast words_
  (( ! $#values )) || compadd -S '' -a values
}
if [[ $funcstack[1] == _holdfast ]]; then _holdfast; else compdef _holdfast holdfast; fi
)";
constexpr const char* kFish = R"(complete -c holdfast -k -a \
  '(holdfast completion words -- (commandline -opc) (commandline -ct | string collect -a) 2>/dev/null)'
)";

int completion(const std::string& shell) {
  std::cout << (shell == "fish" ? kFish : shell == "zsh" ? kZsh : kBash) << std::flush;
  return base::kExitSuccess;
}

using Words = std::map<std::string, std::string>; // with descriptions

const CLI::Option* option_named(const CLI::App& app, const std::string& name) {
  for (const auto* one = &app; one != nullptr; one = one->get_parent())
    if (const auto* option = one->get_option_no_throw(name)) return option;
  return nullptr;
}

// The command line as far as the cursor: what it names, and the option whose value the cursor is in.
struct Cursor {
  const CLI::App* command{nullptr};
  const CLI::Option* option{nullptr};
  std::vector<std::string> arguments; // that are no options

  Cursor(const CLI::App& app, const std::vector<std::string>& words) : command(&app) {
    for (const auto& word : words) {
      if (word == "=") continue; // bash makes it a word of its own
      if (option != nullptr) {
        option = nullptr;
      } else if (word.starts_with("-")) {
        const auto* named = option_named(*command, word.substr(0, word.find('=')));
        if (named != nullptr && named->get_items_expected_max() > 0 && word.find('=') == std::string::npos)
          option = named;
      } else if (const auto* inner = verb_of(*command, word); inner != nullptr && arguments.empty()) {
        command = inner;
      } else {
        arguments.push_back(word);
      }
    }
  }

  // The argument that the cursor is in; null: it has no more.
  const CLI::Option* positional() const {
    std::size_t at = arguments.size();
    for (const auto* one : command->get_options([](const CLI::Option* each) { return each->get_positional(); })) {
      if (at == 0 || one->get_items_expected_max() > 1) return one;
      --at;
    }
    return nullptr;
  }
};

// Values that the name of an option stands for; else those that its check allows, which its type names: "TEXT:{a,b}".
Words values_of(Context& context, const Cursor& cursor, const CLI::Option& option) {
  Words words;
  const auto name = option.get_positional() ? option.get_name(true) : option.get_single_name();
  const auto add = [&](const auto& list) {
    for (const auto& one : list)
      words.emplace(one, "");
  };
  if (name == "plugin" || name == "plugins") {
    for (const auto& [plugin, one] : context.plugin_set()->plugins())
      words.emplace(plugin, "");
  } else if (name == "what" && cursor.command->get_name() == "list") {
    for (const auto& list : catalog::lists())
      words.emplace(list.name, list.summary);
  } else if (cursor.command->get_name() == "list" && (name == "status" || name == "outcome")) {
    const auto& list = catalog::list_of(cursor.arguments.empty() ? "snapshots" : cursor.arguments.front());
    add(catalog::values_of(list, name));
  } else if (name == "key" || name == "set") {
    for (const auto& key : config::key_table())
      words.emplace(std::string(key.name) + (name == "set" ? "=" : ""), "");
  } else if (name == "log-level") {
    add(std::vector{"trace", "debug", "info", "warn", "error", "off"});
  } else if (name == "every") {
    add(std::vector{"minutely", "hourly", "daily", "weekly", "monthly", "yearly"});
  } else {
    add(choices_of(option));
  }
  return words;
}

// Prints the words that may stand at the end of a command line, in place of its last word.
int complete(Context& context, const CLI::App& app, std::vector<std::string> given) {
  if (given.size() < 2) given.resize(2);
  auto typed = given.back() == "=" ? "" : given.back();
  const Cursor cursor(app, {given.begin() + 1, given.end() - 1});
  Words words;
  std::string before; // of the word, which stays
  const auto equals = typed.find('=');
  const auto* option = cursor.option;
  if (option == nullptr && typed.starts_with("--") && equals != std::string::npos) {
    option = option_named(*cursor.command, typed.substr(0, equals));
    before = typed.substr(0, equals + 1);
  }
  try {
    if (option != nullptr) {
      words = values_of(context, cursor, *option);
    } else if (typed.starts_with("-")) {
      for (const auto* one = cursor.command; one != nullptr; one = one->get_parent())
        for (const auto* each : one->get_options())
          for (const auto& name : each->get_lnames())
            words.emplace("--" + name, each->get_description());
    } else {
      if (cursor.arguments.empty())
        for (const auto* inner : verbs_of(*cursor.command))
          words.emplace(inner->get_name(), inner->get_description());
      if (const auto* one = cursor.positional()) words.merge(values_of(context, cursor, *one));
    }
  } catch (const base::Error&) { // settings or plugins are wrong: no words
  }
  if (const auto comma = typed.rfind(','); before.empty() && comma != std::string::npos)
    before = typed.substr(0, comma + 1);
  for (const auto& [word, about] : words)
    if ((before + word).starts_with(typed)) std::cout << before << word << '\t' << about << '\n';
  std::cout << std::flush;
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
      std::istringstream lines(footer);
      for (std::string line; std::getline(lines, line);)
        std::cout << escaped_for_man(line) << "\n";
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
  const auto words = std::make_shared<std::vector<std::string>>();
  command.add_option("shell", *shell, "bash, zsh or fish; or words, for their scripts: those at the end of a line")
      ->check(CLI::IsMember({"bash", "zsh", "fish", "words"}));
  command.add_option("words", *words, "The line, after words --");
  return [shell, words, app = command.get_parent()](Context& context) {
    return *shell == "words" ? complete(context, *app, *words) : completion(*shell);
  };
}

Action manual_verb(CLI::App& command) {
  return [app = command.get_parent()](Context&) { return manual(*app); };
}

} // namespace holdfast::cli
