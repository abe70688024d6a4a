#include "lib/archive/root.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/persona.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/live.hpp"
#include "lib/store/view.hpp"
#include "services/cli/input.hpp"
#include "services/cli/limits.hpp"
#include "services/cli/option_names.hpp"
#include "services/cli/output.hpp"
#include "services/cli/progress.hpp"
#include "services/cli/serve_node.hpp"
#include "services/cli/times.hpp"
#include "services/cli/verbs.hpp"
#include "services/worker/crawl_page.hpp"

#include <nlohmann/json.hpp>

#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <set>
#include <thread>

namespace holdfast::cli {

namespace {

volatile std::sig_atomic_t interrupted = 0;

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
    if (hooks::chooses_program(name))
      throw base::Error(base::ErrorClass::usage,
                        "--option " + name + ": a crawl cannot choose what programs the workers start",
                        "put it under hooks: in the settings file of the workers, or in their environment");
    if (hooks::is_secret_key(name))
      throw base::Error(base::ErrorClass::usage, "--option " + name + ": secrets are not stored with a crawl",
                        "put it under hooks: in the settings file of the nodes");
    options[name] = text.substr(equals + 1);
  }
  return options;
}

enum class Followed { to_the_end, deserted, stopped };

// Follows a crawl that others work on until it is sealed, or nobody is left to work on it.
Followed follow(pg::Connection& connection, const std::string& crawl_id) {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  while (interrupted == 0) {
    if (store::crawl(connection, crawl_id).status == "sealed") return Followed::to_the_end;
    if (store::status(connection).nodes == 0) return Followed::deserted;
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // a poll, interruptible by signals
  }
  return Followed::stopped;
}

void print_outcome(Context& context, pg::Connection& connection, const std::string& crawl_id) {
  if (context.json()) {
    store::ListQuery query;
    query.crawl_id = crawl_id;
    query.limit = 100000;
    for (const auto& line : store::list_json(connection, query)) {
      auto json = nlohmann::ordered_json{{"type", "Snapshot"}};
      json.update(nlohmann::ordered_json::parse(line));
      std::cout << json.dump() << '\n';
    }
    query.view = "crawls";
    for (const auto& line : store::list_json(connection, query)) {
      auto json = nlohmann::ordered_json{{"type", "Crawl"}};
      json.update(nlohmann::ordered_json::parse(line));
      json["page"] = archive::shown(context.archive_root(), worker::crawl_page_path(crawl_id));
      std::cout << json.dump() << '\n';
    }
    std::cout.flush();
    return;
  }
  const auto crawl = store::crawl(connection, crawl_id);
  std::cout << "crawl " << crawl_id << ": " << (crawl.status == "sealed" ? crawl.outcome : crawl.status) << ", "
            << crawl.total << (crawl.total == 1 ? " snapshot" : " snapshots") << ", "
            << base::format_size(static_cast<std::uint64_t>(crawl.bytes));
  if (crawl.partial > 0) std::cout << ", " << crawl.partial << " partial";
  if (crawl.failed > 0) std::cout << ", " << crawl.failed << " failed";
  if (crawl.cancelled > 0) std::cout << ", " << crawl.cancelled << " cancelled";
  if (!crawl.stop_reason.empty()) std::cout << " (stopped by " << crawl.stop_reason << ")";
  std::cout << '\n';
  if (crawl.status == "sealed")
    std::cout << "  page: " << archive::shown(context.archive_root(), worker::crawl_page_path(crawl_id)) << '\n';
  std::cout << "  more: holdfast show " << crawl_id << std::endl;
}

// Whether there is nothing to do: every seed is archived already, which is said of each.
bool all_archived(Context& context, pg::Connection& connection, const PlannedCrawl& planned) {
  if (!planned.crawl.only_new) return false;
  const auto archived = store::seeds_archived(connection, planned.crawl, planned.seeds);
  for (const auto& seed : archived) {
    const auto path = archive::shown(context.archive_root(), seed.directory + "/index.html");
    if (context.json())
      std::cout << nlohmann::ordered_json{{"type", "Archived"},
                                          {"url", seed.url},
                                          {"snapshot_id", seed.snapshot_id},
                                          {"sealed_at", seed.sealed_at},
                                          {"path", path}}
                       .dump()
                << '\n';
    else
      std::cout << printable(seed.url) << ": already archived on " << local_time(seed.sealed_at) << ", " << path
                << '\n';
  }
  std::cout << std::flush;
  std::set<std::string> urls;
  for (const auto& seed : planned.seeds)
    urls.insert(seed.url);
  return archived.size() == urls.size();
}

} // namespace

bool add_works(const AddOptions& options, const Context& context) {
  // One's own collection is worked on by whoever adds; a cluster has workers for that.
  return !options.background && (options.wait || context.embedded());
}

PlannedCrawl plan_crawl(Context& context, const AddOptions& options) {
  auto inputs = options.inputs;
  if (inputs.empty()) {
    if (isatty(STDIN_FILENO) != 0)
      throw base::Error(base::ErrorClass::usage, "no URL given",
                        "holdfast add URL... | FILE | -   (holdfast add --help)");
    inputs.push_back("-");
  }
  const auto& settings = context.settings();
  PlannedCrawl planned;
  auto& crawl = planned.crawl;
  auto& seeds = planned.seeds;
  auto read = read_seeds(inputs, {settings.boolean("urls.allow_private"), options.strict, options.parser});
  seeds = std::move(read.seeds);
  planned.left_out = read.left_out;
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
  if (!options.persona.empty()) {
    if (!hooks::read_persona(context.data_dir() / "personas", options.persona))
      throw base::Error(base::ErrorClass::refused, "there is no persona \"" + options.persona + "\"",
                        "holdfast persona list; holdfast persona set " + options.persona + " makes one");
    crawl.persona = options.persona;
  }
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
  if (crawl.only_complete) {
    // What a page must have to be complete. A machine without plugins cannot say; then how it ended decides.
    auto hook_options = context.node_options(false).hook_options;
    for (const auto& [key, value] : crawl.options)
      hook_options[key] = value;
    std::set<std::string> wanted;
    for (const auto* hook : catalog->hooks_for(
             hooks::Event::snapshot, hooks::selected_plugins(*catalog, base::join(crawl.plugins, ","), hook_options)))
      wanted.insert(hook->plugin->name);
    crawl.wanted.assign(wanted.begin(), wanted.end());
  }
  return planned;
}

int add(Context& context, const AddOptions& options) {
  const auto planned = plan_crawl(context, options);
  const auto& crawl = planned.crawl;
  const auto& seeds = planned.seeds;
  auto& connection = context.connection(true);
  if (all_archived(context, connection, planned)) return base::kExitSuccess;
  store::crawl_add(connection, crawl, seeds);
  if (!add_works(options, context)) {
    if (context.json())
      std::cout << nlohmann::json{{"type", "Crawl"},
                                  {"id", crawl.id},
                                  {"status", "queued"},
                                  {"seeds", seeds.size()},
                                  {"left_out", planned.left_out}}
                       .dump()
                << std::endl;
    else
      std::cout << "crawl " << crawl.id << ": queued, " << seeds.size() << (seeds.size() == 1 ? " URL" : " URLs")
                << "\n  more: holdfast show " << crawl.id << std::endl;
    return base::kExitSuccess;
  }

  bool finished = true;
  {
    const Progress progress(context.dsn(), crawl.id);
    // The node that is there may be another add's, which leaves when its own crawl is done.
    const auto followed = follow(connection, crawl.id);
    if (followed == Followed::deserted)
      finished = !serve_node(context,
                             [id = crawl.id](pg::Connection& own) { return store::crawl(own, id).status == "sealed"; });
    else
      finished = followed == Followed::to_the_end;
  }
  print_outcome(context, connection, crawl.id);
  const auto ended = store::crawl(connection, crawl.id);
  if (ended.status != "sealed" && !finished) {
    std::cerr << "interrupted: the crawl stays queued; holdfast run goes on with it\n";
    return base::kExitInterrupted;
  }
  return ended.outcome == "succeeded" || ended.outcome == "partial" ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace holdfast::cli
