// holdfast plugins: what plugins this machine has, and installing more.
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/call.hpp"
#include "lib/store/worker.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/machine/machine_plugins.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/worker/hook/binary_lookup.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

struct InstallOptions {
  std::string set;
  std::vector<std::string> plugins;
  bool dry_run{false}, yes{false};
};

int run_installer(Context& context, const InstallOptions& options) {
  const auto program =
      process::companion("share/holdfast/installers/" + options.set, "installers/" + options.set).string();
  std::vector<std::string> words = {program, (context.data_dir() / "lib" / options.set).string()};
  if (!options.plugins.empty()) words.insert(words.end(), {"--plugins", base::join(options.plugins, ",")});
  if (options.dry_run) words.emplace_back("--dry-run");
  if (options.yes) words.emplace_back("--yes");
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::cout << std::flush;
  ::execv(program.c_str(), arguments.data());
  throw base::Error(base::ErrorClass::unavailable, "cannot start " + program + ": " + base::errno_text(errno),
                    "it needs python3");
}

int list_plugins(Context& context) {
  const auto options = context.worker_options(false);
  const auto& plugin_set = *options.plugin_set;
  const auto selected = hooks::selected_plugins(plugin_set, {}, options.hook_options);
  worker::BinaryLookup binaries(options.binary_directories, options.data_dir / "lib");
  for (const auto& [name, plugin] : plugin_set.plugins()) {
    const bool on = std::find(selected.begin(), selected.end(), name) != selected.end();
    std::string lacks = plugin_set.lacking(name);
    if (!lacks.empty())
      lacks = "there is no plugin " + lacks;
    else if (!plugin.hooks.empty())
      lacks = binaries.missing(plugin, hooks::resolve_options(plugin_set, plugin, options.hook_options)).value_or("");
    if (context.json())
      print_record("Plugin", {{"name", name},
                              {"enabled", on},
                              {"hooks", plugin.hooks.size()},
                              {"lacks", lacks},
                              {"directory", plugin.directory.string()},
                              {"title", plugin.title}});
    else
      std::cout << (on ? "on   " : "off  ") << name << std::string(name.size() < 28 ? 28 - name.size() : 1, ' ')
                << printable(lacks.empty() ? plugin.title : lacks) << '\n';
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

int switch_them(Context& context, const std::vector<std::string>& names, bool on) {
  const auto& plugin_set = *context.plugin_set();
  for (const auto& name : names)
    if (plugin_set.find(name) == nullptr) plugin_set.select({name}); // throws, naming all
  switch_plugins(context.data_dir(), names, on);
  for (const auto& name : names)
    if (context.json())
      print_record("Plugin", {{"name", name}, {"enabled", on}});
    else
      std::cout << name << ": " << (on ? "on" : "off") << ", for workers that start from now on\n";
  std::cout << std::flush;
  return base::kExitSuccess;
}

Action install_action(CLI::App& command) {
  const auto options = std::make_shared<InstallOptions>();
  command.add_option("set", options->set, "abx: the plugins of ArchiveBox, from PyPI")
      ->required()
      ->check(CLI::IsMember({"abx"}));
  command.add_option("-p,--plugins,--plugin", options->plugins, "Install what these need (default: all that are on)")
      ->allow_extra_args(false);
  command.add_flag("--dry-run", options->dry_run, "Only show the plan");
  command.add_flag("--yes", options->yes, "Do not ask");
  command.footer("Needs python3. Debian packages (npm, too) are installed as root, and else named.");
  return [options](Context& context) { return run_installer(context, *options); };
}

} // namespace

Action plugins_verb(CLI::App& command) {
  Group group(command);
  group.verb("list", "List the plugins of this machine, and what they lack", "holdfast plugins list",
             [](CLI::App&) { return [](Context& context) { return list_plugins(context); }; });
  group.verb("install", "Install plugins and what they need on this machine; shows the plan first",
             "holdfast plugins install abx --dry-run\n"
             "holdfast plugins install abx -p readability,ytdlp",
             &install_action);
  group.verb("update", "Install the newest versions again", "holdfast plugins update abx --yes", &install_action);
  for (const bool on : {true, false})
    group.verb(on ? "enable" : "disable",
               on ? "Run plugins again"
                  : "Do not run plugins, unless an option of the crawl (PDF_ENABLED=true) says so",
               on ? "holdfast plugins enable pdf" : "holdfast plugins disable pdf screenshot", [on](CLI::App& one) {
                 const auto names = std::make_shared<std::vector<std::string>>();
                 one.add_option("plugins", *names, "Names of plugins")->required();
                 return [names, on](Context& context) { return switch_them(context, *names, on); };
               });
  return group.action();
}

namespace {

int recheck_binaries(Context& context, const std::string& name, const std::string& host) {
  const auto count = store::call_for<std::int64_t>(context.connection(), "binary_recheck", name, host);
  if (count == 0 && !name.empty())
    throw base::Error(base::ErrorClass::refused,
                      "no hook has asked for the binary " + name + (host.empty() ? "" : " on " + host),
                      "holdfast binary list shows them");
  if (context.json())
    print_record("Recheck", {{"count", count}});
  else
    std::cout << count << (count == 1 ? " binary" : " binaries") << " will be looked for again within a minute"
              << std::endl;
  return base::kExitSuccess;
}

} // namespace

Action binary_verb(CLI::App& command) {
  Group group(command);
  group.verb("list", "List all binaries",
             "holdfast binary list\n"
             "holdfast binary list --name chrom",
             [](CLI::App& all) {
               const auto listing = std::make_shared<ListOptions>();
               listing->what = "binaries";
               listing->limit = 1000;
               all.add_option("--status", listing->filters["status"], "Only those: installed, or queued (not found)")
                   ->check(CLI::IsMember({"installed", "queued"}));
               all.add_option("--name", listing->filters["url"], "Only names that contain this");
               return [listing](Context& context) { return list(context, *listing); };
             });
  group.verb("recheck", "Check binaries again now, for example after an installation",
             "holdfast binary recheck\n"
             "holdfast binary recheck wget --host archive-3",
             [](CLI::App& recheck) {
               const auto name = std::make_shared<std::string>(), host = std::make_shared<std::string>();
               recheck.add_option("name", *name, "Only this one");
               recheck.add_option("--host", *host, "Only on this machine");
               return [name, host](Context& context) { return recheck_binaries(context, *name, *host); };
             });
  return group.action();
}

} // namespace holdfast::cli
