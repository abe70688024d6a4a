// holdfast: one executable with verbs. Parses the command line, runs the verb, turns an Error into one message and an
// exit code.

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/hide_secrets.hpp"
#include "lib/base/text/text.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/server/embedded_server.hpp"
#include "services/cli/command/help.hpp"
#include "services/cli/command/suggestions.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <iostream>

namespace {

using namespace holdfast;

// Shortens input for an error: at most its beginning and its end, and no control sequences.
std::string told(std::string_view text) {
  constexpr std::size_t kBegin = 1500, kEnd = 300;
  std::string clean;
  for (const auto& line : base::split(base::repair_utf8(text), "\n"))
    clean += (clean.empty() ? "" : "\n") + cli::printable(line);
  if (clean.size() <= kBegin + kEnd + 5) return clean;
  return base::repair_utf8(clean.substr(0, kBegin) + " ... " + clean.substr(clean.size() - kEnd));
}

void print_error(const base::Error& error) {
  std::cerr << "holdfast: " << told(error.what()) << '\n';
  if (!error.hint().empty()) std::cerr << "  hint: " << told(error.hint()) << '\n';
}

struct GivenOptions {
  std::string config_file, data_dir, database_url, log_level;
  std::vector<std::string> settings;
  bool json{false}, table{false};
};

// Returns true if all output has arrived. A reader that has ended, as `head` does, is no error.
int with_output_checked(int code) {
  errno = 0;
  std::cout.flush();
  if (std::cout) return code;
  const auto why = errno != 0 ? ": " + base::errno_text(errno) : "";
  pollfd output{STDOUT_FILENO, 0, 0};
  if (errno == EPIPE || (::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0)) return code;
  print_error(base::Error(base::ErrorClass::input_output, "cannot write all of the output to standard output" + why));
  return code == 0 ? static_cast<int>(base::ErrorClass::input_output) : code;
}

void add_global_options(CLI::App& app, GivenOptions& given) {
  app.add_option("--config", given.config_file,
                 "Settings file (default: ./holdfast.yaml, ~/.config/holdfast/holdfast.yaml, /etc/holdfast.yaml)");
  app.add_option("--data-dir", given.data_dir, "Directory for everything that has no path of its own in the settings");
  app.add_option("--database", given.database_url,
                 "PostgreSQL connection string (default: the embedded server in the data directory)");
  app.add_option("--log-level", given.log_level, "trace, debug, info, warn, error or off");
  app.add_flag_callback(
      "-q,--quiet", [&given] { given.log_level = "error"; }, "Only errors in the log, for cron: --log-level error");
  app.add_flag_callback(
      "-v,--verbose", [&given] { given.log_level = "debug"; },
      "Also each hook as it starts and ends: --log-level debug");
  app.add_option("--set", given.settings, "Any setting, as KEY=VALUE; see holdfast config")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--json", given.json, "JSON lines, as when standard output is not a terminal")
      ->excludes(app.add_flag("--table", given.table, "Tables and texts, also when it is not a terminal"));
  app.set_version_flag("-V,--version", std::string("holdfast " HOLDFAST_VERSION), "Print the version");
}

cli::GlobalOptions global_options(const GivenOptions& given, char** argv) {
  cli::GlobalOptions global;
  global.config_file = given.config_file;
  global.json = given.json;
  global.table = given.table;
  global.arguments = argv;
  for (const auto& [key, value] :
       {std::pair{"data_dir", given.data_dir}, {"database.url", given.database_url}, {"log.level", given.log_level}})
    if (!value.empty()) global.overrides.emplace_back(key, value);
  for (const auto& setting : given.settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos) throw base::Error(base::ErrorClass::usage, "--set " + setting + ": not KEY=VALUE");
    if (setting.starts_with("token="))
      throw base::Error(base::ErrorClass::usage, "a token on a command line can be seen by other users",
                        "HOLDFAST_TOKEN_FILE names a file with it");
    global.overrides.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return global;
}

void parse(CLI::App& app, std::vector<std::string> words) {
  for (const auto& word : words)
    if (!base::is_utf8(word) && ::access(word.c_str(), F_OK) != 0) // files may have any name
      throw base::Error(base::ErrorClass::usage, "an argument is not UTF-8: " + word);
  // holdfast help VERB is holdfast VERB --help.
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const bool set_after_config = std::any_of(std::find(words.begin(), words.end(), "config"), words.end(),
                                            [](const auto& word) { return word.starts_with("--set"); });
  std::reverse(words.begin(), words.end()); // as CLI11 takes them
  const auto given = words;                 // CLI11 takes them away
  try {
    app.parse(words);
  } catch (const std::logic_error&) { // of std::stoll: CLI11 takes a number for a flag
    const auto flag = std::find_if(given.begin(), given.end(), [](const auto& word) {
      return word.starts_with("--") && word.find('=') != std::string::npos;
    });
    throw base::Error(base::ErrorClass::usage,
                      (flag == given.end() ? "an option" : *flag) + ": it takes no such value");
  }
  if (app.got_subcommand("config") && set_after_config)
    throw base::Error(base::ErrorClass::usage, "holdfast config shows settings and does not change them",
                      "write the setting into holdfast.yaml, or put --set KEY=VALUE before the command that needs it");
}

} // namespace

int main(int argc, char** argv) {
  base::hide_secrets(environ);
  // As root, hooks run as users of their own. They must get through to their directories, whatever the umask hides. And
  // no file of ours may be writable for everyone.
  ::umask((::umask(077) & ~mode_t{::geteuid() == 0 ? 0011u : 0u}) | 0002);
  base::allowed(0);                    // before there are threads
  std::setlocale(LC_CTYPE, "C.UTF-8"); // widths of characters in tables
  CLI::App app{"Holdfast archives web pages: URLs are queued in PostgreSQL and captured by any number of workers.",
               "holdfast"};
  app.formatter(cli::help_formatter()); // also of the commands below
  app.require_subcommand(1);
  app.fallthrough();
  GivenOptions given;
  add_global_options(app, given);
  const auto choice = std::make_shared<cli::Action>();
  for (const auto& verb : cli::all_verbs())
    cli::attach_verb(app, choice, verb.name, verb.help, verb.examples, verb.add);
  try {
    if (argc == 3 && argv[1] == std::string_view(cli::kStopUnusedServer)) {
      server::EmbeddedServer::stop_unused(argv[2]);
      return 0;
    }
    parse(app, {argv + 1, argv + argc});
    cli::Context context(global_options(given, argv));
    try {
      return with_output_checked((*choice)(context));
    } catch (const pg::DatabaseError& error) {
      if (error.sqlstate() != pg::kLockTimeout) throw;
      throw base::Error(error.error_class(), error.what(), context.who_blocks());
    }
  } catch (const base::Error& error) {
    print_error(error);
    return error.exit_code();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return with_output_checked(app.exit(error)); // --help
    const auto mistake = cli::explain(app, error);
    print_error(base::Error(base::ErrorClass::usage, mistake.problem, mistake.hint));
    return static_cast<int>(base::ErrorClass::usage);
  } catch (const std::exception& error) {
    std::cerr << "holdfast: " << told(error.what()) << '\n';
    return static_cast<int>(base::ErrorClass::bug);
  }
}
