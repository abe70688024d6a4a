#include "services/cli/add/plan.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/crawl_options.hpp"
#include "services/cli/command/fields.hpp"

#include <CLI/CLI.hpp>

#include <libpsl.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>

namespace holdfast::cli {

namespace {

void check_options(const hooks::PluginSet& plugin_set, const std::map<std::string, std::string>& options) {
  for (const auto& [name, value] : options) {
    const bool known = name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
    if (!known) throw base::Error(base::ErrorClass::usage, "--option " + name + ": a crawl cannot set this");
    if (hooks::is_workers_own(name))
      throw base::Error(base::ErrorClass::usage,
                        "--option " + name + ": programs, paths and sandboxes are the workers' own",
                        "put it under hooks: in the settings file of the workers, or in their environment");
    if (hooks::is_secret_key(name))
      throw base::Error(base::ErrorClass::usage, "--option " + name + ": secrets are not stored with a crawl",
                        "put it under hooks: in the settings file of the workers");
    check_option_name(plugin_set, name);
  }
  hooks::check_agents(options);
}

std::vector<std::string> inputs_of(const AddOptions& options) {
  if (!options.inputs.empty()) return options.inputs;
  if (isatty(STDIN_FILENO) != 0)
    throw base::Error(base::ErrorClass::usage, "no URL given",
                      "holdfast add URL... | FILE | -   (holdfast add --help)");
  return {"-"};
}

std::vector<std::string> distinct(const std::vector<store::Seed>& seeds,
                                  const std::function<std::string(const store::Seed&)>& part) {
  std::set<std::string> parts;
  for (const auto& seed : seeds)
    parts.insert(part(seed));
  return {parts.begin(), parts.end()};
}

std::string directory_of(const std::string& url) {
  const auto end = url.find_first_of("?");
  const auto slash = url.rfind('/', end == std::string::npos ? end : end - 1);
  return url.substr(0, slash + 1);
}

nlohmann::json scope_of(const nlohmann::json& given, const std::vector<store::Seed>& seeds) {
  auto scope = nlohmann::json::object();
  for (const char* name : {"allow", "deny", "schemes"})
    if (given.contains(name)) scope[name] = given[name];
  const auto same = given.value("same", "");
  const auto host_of = [](const store::Seed& seed) { return base::parse_url(seed.url).host; };
  if (same == "host") scope["hosts"] = distinct(seeds, host_of);
  if (same == "domain")
    scope["domains"] = distinct(seeds, [&](const auto& seed) { return registrable_domain(host_of(seed)); });
  if (same == "prefix") scope["prefixes"] = distinct(seeds, [](const auto& seed) { return directory_of(seed.url); });
  return scope;
}

// Returns the plugins that make a page complete. Without plugins on this machine, the outcome decides.
std::vector<std::string> wanted_plugins(Context& context, const std::vector<std::string>& plugins,
                                        const std::map<std::string, std::string>& options) {
  const auto plugin_set = context.plugin_set();
  auto hook_options = context.worker_options(false).hook_options;
  for (const auto& [key, value] : options)
    hook_options[key] = value;
  std::set<std::string> wanted;
  for (const auto* hook :
       plugin_set->hooks_for(hooks::Event::snapshot, hooks::selected_plugins(*plugin_set, plugins, hook_options)))
    wanted.insert(hook->plugin->name);
  return {wanted.begin(), wanted.end()};
}

} // namespace

std::string registrable_domain(const std::string& host) {
  // The list has names only, not addresses.
  if (host.find_first_not_of("0123456789.") == std::string::npos || host.find(':') != std::string::npos) return host;
  const auto* list = psl_builtin();
  const char* domain = list != nullptr ? psl_registrable_domain(list, host.c_str()) : nullptr;
  return domain != nullptr ? domain : host;
}

void add_crawl_options(CLI::App& command, AddOptions& options) {
  command.add_option("inputs", options.inputs,
                     "URLs, files with one URL or JSON object a line, or - for standard input");
  for (const auto& option : catalog::crawl_options()) {
    auto* const added = add_field(command, option, options.crawl);
    if (option.kind == catalog::CrawlOptionKind::limit) added->group("How far and how fast");
  }
}

ReadOptions reading_of(const Context& context, const nlohmann::json& given) {
  return {context.settings().boolean("urls.allow_private"), given.value("strict", false),
          given.value("parser", "auto")};
}

ReadSeeds read_inputs(const Context& context, const AddOptions& options) {
  return read_seeds(inputs_of(options), reading_of(context, *options.crawl));
}

store::PlannedCrawl plan_crawl(Context& context, const nlohmann::json& given, ReadSeeds read) {
  const auto& settings = context.settings();
  if (read.seeds.empty())
    throw base::Error(base::ErrorClass::refused, "no URL found in the input", "nothing was added");
  if (const auto depth = given.value("max_depth", 0); depth > settings.integer("crawl.max_depth"))
    throw base::Error(base::ErrorClass::usage, "--depth " + std::to_string(depth) + " is more than crawl.max_depth (" +
                                                   settings.text("crawl.max_depth") + ", from " +
                                                   settings.value("crawl.max_depth").origin + ")");
  const bool update = given.value("update", false), only_new = update || given.value("only_new", false);
  if (only_new && given.value("overwrite", false))
    throw base::Error(base::ErrorClass::usage, "--overwrite excludes --only-new and --update");
  if (given.contains("max_age") && !only_new)
    throw base::Error(base::ErrorClass::usage, "--max-age makes sense only with --only-new or --update");

  store::PlannedCrawl planned{{}, std::move(read.seeds), read.left_out, std::move(read.problems)};
  auto& crawl = planned.crawl;
  crawl.id = base::new_uuid();
  crawl.options = catalog::crawl_columns(given);
  crawl["created_by"] = user_name();
  const auto plugins = given.value("plugins", std::vector<std::string>());
  crawl["tags"] = given.value("tags", std::vector<std::string>());
  crawl["plugins"] = plugins;
  auto options = given.value("options", std::map<std::string, std::string>());
  crawl["scope"] = scope_of(given, planned.seeds);
  crawl["only_new"] = only_new;
  if (!given.contains("max_urls")) crawl["max_urls"] = settings.integer("crawl.max_urls");
  if (!given.contains("robots")) crawl["robots"] = settings.boolean("politeness.robots");
  for (const auto& option : catalog::crawl_options())
    if (const auto value = given.find(option.name); !option.hook.empty() && value != given.end() && *value != "")
      options.emplace(option.hook, value->get<std::string>());
  if (given.value("effort", "") == "thorough") options.emplace("BROWSER_TIMEOUT", "600"); // seconds of a page
  if (crawl["robots"] == true && !given.contains("identify")) options.emplace("IDENTIFY", "true");
  if (!options.empty()) crawl["options"] = options;
  if (!given.contains("host_delay")) crawl["host_delay"] = catalog::interval(settings.duration("politeness.delay"));
  if (const auto parallel = settings.integer("politeness.parallel"); parallel > 0) crawl["host_parallel"] = parallel;
  // Better now than as a failure of every snapshot: plugins and their options must make sense here.
  const auto plugin_set = context.plugin_set();
  check_options(*plugin_set, options);
  for (const auto& name : plugin_set->select(plugins))
    hooks::resolve_options(*plugin_set, *plugin_set->find(name), options);
  if (update) {
    crawl["only_complete"] = true;
    crawl["wanted"] = wanted_plugins(context, plugins, options);
  }
  return planned;
}

} // namespace holdfast::cli
