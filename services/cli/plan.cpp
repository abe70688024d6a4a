#include "services/cli/plan.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/persona.hpp"
#include "services/cli/input.hpp"
#include "services/cli/limits.hpp"
#include "services/cli/option_names.hpp"

#include <unistd.h>

#include <map>
#include <set>

namespace holdfast::cli {

namespace {

std::map<std::string, std::string> parse_options(const std::vector<std::string>& given) {
  std::map<std::string, std::string> options;
  for (const auto& text : given) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw base::Error(base::ErrorClass::usage, "--option " + text + ": not NAME=VALUE",
                        "for example --option WGET_TIMEOUT=120");
    const std::string name = text.substr(0, equals);
    const bool known = name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
    if (!known) throw base::Error(base::ErrorClass::usage, "--option " + name + ": a crawl cannot set this");
    if (hooks::is_workers_own(name))
      throw base::Error(base::ErrorClass::usage,
                        "--option " + name + ": programs, paths and sandboxes are the workers' own",
                        "put it under hooks: in the settings file of the workers, or in their environment");
    if (hooks::is_secret_key(name))
      throw base::Error(base::ErrorClass::usage, "--option " + name + ": secrets are not stored with a crawl",
                        "put it under hooks: in the settings file of the workers");
    options[name] = text.substr(equals + 1);
  }
  return options;
}

std::vector<std::string> inputs_of(const AddOptions& options) {
  if (!options.inputs.empty()) return options.inputs;
  if (isatty(STDIN_FILENO) != 0)
    throw base::Error(base::ErrorClass::usage, "no URL given",
                      "holdfast add URL... | FILE | -   (holdfast add --help)");
  return {"-"};
}

std::string checked_persona(const Context& context, const std::string& name) {
  if (!hooks::read_persona(context.data_dir() / "personas", name))
    throw base::Error(base::ErrorClass::refused, "there is no persona \"" + name + "\"",
                      "holdfast persona list; holdfast persona set " + name + " makes one");
  return name;
}

// What a page must have to be complete. A machine without plugins cannot say; then how it ended decides.
std::vector<std::string> wanted_plugins(Context& context, const store::NewCrawl& crawl) {
  const auto catalog = context.catalog();
  auto hook_options = context.worker_options(false).hook_options;
  for (const auto& [key, value] : crawl.options)
    hook_options[key] = value;
  std::set<std::string> wanted;
  for (const auto* hook : catalog->hooks_for(
           hooks::Event::snapshot, hooks::selected_plugins(*catalog, base::join(crawl.plugins, ","), hook_options)))
    wanted.insert(hook->plugin->name);
  return {wanted.begin(), wanted.end()};
}

} // namespace

PlannedCrawl plan_crawl(Context& context, const AddOptions& options) {
  const auto& settings = context.settings();
  PlannedCrawl planned;
  auto& crawl = planned.crawl;
  auto& seeds = planned.seeds;
  const ReadOptions reading{settings.boolean("urls.allow_private"), options.strict, options.parser};
  auto read = options.requested ? read_request(options.inputs, options.text, options.file, reading)
                                : read_seeds(inputs_of(options), reading);
  seeds = std::move(read.seeds);
  planned.left_out = read.left_out;
  planned.problems = std::move(read.problems);
  if (seeds.empty())
    throw base::Error(base::ErrorClass::refused, "there is no URL in what was given", "nothing was added");
  if (options.depth > settings.integer("crawl.max_depth"))
    throw base::Error(base::ErrorClass::usage, "--depth " + std::to_string(options.depth) +
                                                   " is more than crawl.max_depth (" +
                                                   settings.text("crawl.max_depth") + ", from " +
                                                   settings.value("crawl.max_depth").origin + ")");

  crawl.id = base::new_uuid();
  crawl.label = options.label;
  crawl.notes = options.notes;
  if (!options.persona.empty()) crawl.persona = checked_persona(context, options.persona);
  crawl.created_by = user_name();
  crawl.tags = base::split(base::join(options.tags, ","), ",");
  crawl.plugins = base::split(base::join(options.plugins, ","), ",");
  crawl.options = parse_options(options.options);
  crawl.max_depth = options.depth;
  crawl.max_urls = options.max_urls >= 0 ? options.max_urls : settings.integer("crawl.max_urls");
  apply_limits(options.limits, settings, seeds, crawl);
  // Better now than as a failure of every snapshot: plugins and their options must make sense here.
  const auto catalog = context.catalog();
  for (const auto& [name, value] : crawl.options)
    check_option_name(*catalog, name);
  for (const auto& name : catalog->select(crawl.plugins))
    hooks::resolve_options(*catalog, *catalog->find(name), crawl.options);
  if (crawl.only_complete) crawl.wanted = wanted_plugins(context, crawl);
  return planned;
}

} // namespace holdfast::cli
