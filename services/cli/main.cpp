// holdfast: one executable with verbs. Parses the command line, runs the verb, turns an Error into one message and an
// exit code.

#include "lib/base/error.hpp"
#include "services/cli/checks.hpp"
#include "services/cli/control.hpp"
#include "services/cli/examples.hpp"
#include "services/cli/limits.hpp"
#include "services/cli/look.hpp"
#include "services/cli/mistakes.hpp"
#include "services/cli/plugins.hpp"
#include "services/cli/psql.hpp"
#include "services/cli/run_worker.hpp"
#include "services/cli/schedule.hpp"
#include "services/cli/verbs.hpp"
#include "services/cli/verify.hpp"
#include "services/cli/webhook.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <functional>
#include <iostream>

namespace {

using namespace holdfast;

void print_error(const base::Error& error) {
  std::cerr << "holdfast: " << error.what() << '\n';
  if (!error.hint().empty()) std::cerr << "  hint: " << error.hint() << '\n';
}

} // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "C.UTF-8"); // widths of characters in tables
  CLI::App app{"Holdfast keeps web pages: URLs in PostgreSQL, archived by any number of workers.", "holdfast"};
  app.require_subcommand(1);
  app.fallthrough();

  cli::GlobalOptions global;
  std::string data_dir, database_url, log_level;
  std::vector<std::string> settings;
  app.add_option("--config", global.config_file,
                 "Settings file (default: ./holdfast.yaml, ~/.config/holdfast/holdfast.yaml, /etc/holdfast.yaml)");
  app.add_option("--data-dir", data_dir, "Where everything is kept that is not configured otherwise");
  app.add_option("--database", database_url,
                 "PostgreSQL connection string (default: an own server in the data directory)");
  app.add_option("--log-level", log_level, "trace, debug, info, warn, error or off");
  app.add_flag_callback(
      "-q,--quiet", [&log_level] { log_level = "error"; }, "Only errors in the log, for cron: --log-level error");
  app.add_option("--set", settings, "Any setting, as KEY=VALUE; see holdfast config")->allow_extra_args(false);
  app.add_flag("--json", global.json, "JSON lines, as when standard output is no terminal");

  app.set_version_flag("-V,--version", std::string("holdfast " HOLDFAST_VERSION), "Print the version");

  std::function<int(cli::Context&)> verb;
  const auto subcommand = [&](const std::string& name, const std::string& help,
                              std::function<int(cli::Context&)> action) {
    auto* command = app.add_subcommand(name, help);
    command->callback([&verb, action = std::move(action)] { verb = action; });
    return command;
  };
  bool guarded = false; // the verb runs hooks

  cli::AddOptions add;
  auto* add_command = subcommand("add", "Add URLs as one crawl; on an own database also archive them now",
                                 [&](cli::Context& context) { return cli::add(context, add); });
  add_command->add_option("inputs", add.inputs,
                          "URLs, files with one URL or JSON object a line, or - for standard input");
  add_command->add_option("-d,--depth", add.depth, "How many links to follow from each URL")
      ->check(cli::number(0, std::optional(16)));
  add_command
      ->add_option("--max-urls", add.max_urls, "At most this many snapshots; 0: no cap (default: crawl.max_urls)")
      ->check(cli::number<std::int64_t>(0));
  add_command
      ->add_option("-p,--plugins,--plugin", add.plugins, "Only these plugins, with what they need: wget,title,...")
      ->allow_extra_args(false);
  add_command->add_option("-t,--tag", add.tags, "Tags for every snapshot")->allow_extra_args(false);
  add_command->add_option("--persona", add.persona, "Options, cookies and profile of this persona (holdfast persona)");
  add_command->add_option("--label", add.label, "Name of the crawl");
  add_command->add_option("--option", add.options, "Option for hooks, as NAME=VALUE")->allow_extra_args(false);
  add_command->add_option("--notes", add.notes, "Notes on the crawl");
  add_command
      ->add_option("--parser", add.parser,
                   "What the files hold: auto, txt, jsonl, json, netscape, html, rss, sitemap, pocket, pinboard")
      ->check(
          CLI::IsMember({"auto", "txt", "jsonl", "json", "netscape", "html", "rss", "sitemap", "pocket", "pinboard"}));
  cli::add_limit_options(*add_command, add.limits);
  add_command->add_flag("--wait", add.wait, "Wait until everything is archived, working on it if nobody else does");
  add_command->add_flag("--bg", add.background, "Only queue it");
  add_command->add_flag("--strict", add.strict,
                        "Add nothing if a line of a file cannot be used (default: leave that line out and show it)");

  cli::WorkerOptions worker;
  auto* worker_command = subcommand("worker", "Run a worker: claim and archive until told to stop",
                                    [&](cli::Context& context) { return cli::work(context, worker); });
  worker_command->add_option("--kind", worker.kind, "Only turn seeds into snapshots (crawl), or only work on snapshots")
      ->check(CLI::IsMember({"all", "crawl", "snapshot"}));
  worker_command->add_option("--parent", worker.parent)->group(""); // said by `holdfast run`
  bool daemon = false;
  auto* run_command = subcommand("run", "Archive everything that is queued, then end: duties and workers in one",
                                 [&](cli::Context& context) { return cli::run(context, daemon); });
  run_command->add_flag("--daemon", daemon, "Stay, and wait for more");
  bool standby = false, runner_status = false;
  auto* runner_command =
      subcommand("runner", "Run maintenance: schedules, lapsed workers, old records. The newest runner takes over",
                 [&](cli::Context& context) {
                   return runner_status ? cli::runner_status(context) : cli::run_duties(context, standby);
                 });
  runner_command->add_flag("--standby", standby, "Wait until no other runner leads, and step back for a newer one");
  runner_command->add_flag("--status", runner_status, "Only show who leads and what the duties do; 1 if nobody leads");
  cli::ControlOptions control;
  cli::add_control_commands(app, control, verb);
  cli::ScheduleOptions schedule;
  cli::add_schedule_commands(app, schedule, verb);

  subcommand("status", "What there is and what runs", cli::status);
  cli::ListOptions listing;
  auto* list_command =
      subcommand("list",
                 "List crawls, snapshots, results, queue, running, sessions, workers, events, failures, "
                 "hosts, webhooks, deliveries, binaries",
                 [&](cli::Context& context) { return cli::list(context, listing); });
  list_command->add_option("what", listing.what, "What to list (default: snapshots)");
  list_command->add_option("--crawl", listing.crawl, "Only of this crawl");
  list_command->add_option("--snapshot", listing.snapshot, "Only of this snapshot");
  list_command->add_option("--status", listing.status, "Only with this status");
  list_command->add_option("--outcome", listing.outcome, "Only with this outcome (crawls, snapshots)");
  list_command->add_option("--host", listing.host, "Only pages of this host (snapshots, failures)");
  list_command->add_option(
      "--since", listing.since,
      "Only what was added (failures: what ended) since: 2h, 7d, 2026-11-22, \"2026-11-22 14:00\"");
  list_command->add_option("--url", listing.url, "Only URLs that contain this");
  list_command->add_option("--tag", listing.tag, "Only with this tag");
  list_command->add_option("--plugin", listing.plugin, "Only hooks of this plugin (failures, running)");
  list_command->add_flag("--csv", listing.csv, "All columns as CSV, with a header line");
  list_command->add_option("--columns", listing.columns, "Only these columns: id,url,bytes,...; --csv has all of them")
      ->delimiter(',');
  list_command->add_option("-n,--limit", listing.limit, "At most this many (50)")->check(cli::number<std::int64_t>(1));
  std::string id;
  subcommand("show", "Everything about a crawl, snapshot or process",
             [&](cli::Context& context) { return cli::show(context, id); })
      ->add_option("id", id, "Its id, the first or last few digits of it, a URL, or the label of a crawl")
      ->required();
  bool force = false;
  subcommand("migrate", "Bring the database's schema up to date", [&](cli::Context& context) {
    return cli::migrate(context, force);
  })->add_flag("--force", force, "Even if programs are running that are too old for it");
  cli::ConfigOptions config;
  auto* config_command = subcommand(
      "config", "Settings, or options of plugins: key, value, where it comes from", [&](cli::Context& context) {
        return config.plugin.empty() && config.crawl.empty() ? cli::show_config(context, config.key)
                                                             : cli::show_options(context, config);
      });
  config_command->add_option("key", config.key, "Only this one's value");
  config_command->add_option("--plugin", config.plugin, "Options of this plugin, and of those that it requires");
  config_command->add_option("--crawl", config.crawl, "Options as the hooks of this crawl get them");
  subcommand("version", "Version of the program and of its schema", cli::version);
  subcommand("check",
             "Check the collection's invariants: reads everything, so it takes longer the larger the collection is",
             cli::check);
  cli::VerifyOptions verification;
  auto* verify_command = subcommand("verify", "Compare archived files with their manifests",
                                    [&](cli::Context& context) { return cli::verify(context, verification); });
  verify_command->add_option("ids", verification.ids, "Crawls or snapshots; - reads them from standard input");
  verify_command->add_flag("--all", verification.all, "Everything");
  verify_command->add_flag("--collect", verification.collect, "Remove what lost attempts have left beside them");
  std::string archive_part;
  subcommand("adopt", "Make the rows of archived pages again from their files, after the database was lost",
             [&](cli::Context& context) { return cli::adopt(context, archive_part); })
      ->add_option("directory", archive_part, "The archive, or a directory in it (default: archive.root)");
  cli::add_look_verbs(app, verb);
  cli::add_psql_verb(app, verb);
  cli::add_webhook_commands(app, verb);
  cli::add_plugin_commands(app, verb);
  std::string lifecycle;
  bool mermaid = false;
  auto* inspect_command = app.add_subcommand("inspect", "Look inside; always safe on a live system");
  inspect_command->require_subcommand(1);
  auto* lifecycle_command = inspect_command->add_subcommand("lifecycle", "The state machines");
  lifecycle_command->add_option("name", lifecycle, "One of them; without a name, all");
  lifecycle_command->add_flag("--mermaid", mermaid, "As Mermaid state diagrams");
  lifecycle_command->callback(
      [&] { verb = [&](cli::Context&) { return cli::inspect_lifecycle(lifecycle, mermaid); }; });
  std::string topic;
  auto* reference_command =
      inspect_command->add_subcommand("reference", "The settings, or the views, as a page in Markdown");
  reference_command->add_option("topic", topic, "settings or views")
      ->required()
      ->check(CLI::IsMember({"settings", "views"}));
  reference_command->callback(
      [&] { verb = [&](cli::Context& context) { return cli::inspect_reference(context, topic); }; });
  cli::add_examples(app);

  // holdfast help VERB is holdfast VERB --help.
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const bool set_after_config = std::any_of(std::find(words.begin(), words.end(), "config"), words.end(),
                                            [](const auto& word) { return word.starts_with("--set"); });
  try {
    std::reverse(words.begin(), words.end()); // as CLI11 takes them
    app.parse(words);
    if (*config_command && set_after_config)
      throw base::Error(
          base::ErrorClass::usage, "holdfast config shows settings and does not change them",
          "write the setting into holdfast.yaml, or put --set KEY=VALUE before the command that needs it");
  } catch (const base::Error& error) {
    print_error(error);
    return error.exit_code();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error); // --help
    const auto mistake = cli::explain(app, error);
    print_error(base::Error(base::ErrorClass::usage, mistake.problem, mistake.hint));
    return static_cast<int>(base::ErrorClass::usage);
  }

  try {
    if (!data_dir.empty()) global.overrides.emplace_back("data_dir", data_dir);
    if (!database_url.empty()) global.overrides.emplace_back("database.url", database_url);
    if (!log_level.empty()) global.overrides.emplace_back("log.level", log_level);
    for (const auto& setting : settings) {
      const auto equals = setting.find('=');
      if (equals == std::string::npos)
        throw base::Error(base::ErrorClass::usage, "--set " + setting + ": not KEY=VALUE");
      global.overrides.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    }
    cli::Context context(std::move(global));
    // The picture of the work and its log would disturb each other on a terminal.
    const bool drawing = *add_command && isatty(STDERR_FILENO) != 0;
    if (drawing && context.settings().value("log.level").origin == "default") spdlog::set_level(spdlog::level::warn);
    guarded = *worker_command || *run_command || (*add_command && cli::add_works(add, context));
    if (guarded) config::check_lease_rule(context.settings()); // before anything is written
    if (guarded)
      cli::require_guard(argv, context.embedded() ? context.data_dir() / "postgres" / "postmaster.pid"
                                                  : std::filesystem::path());
    if (guarded || *runner_command) cli::note_early_signals();
    return verb(context);
  } catch (const base::Error& error) {
    print_error(error);
    return error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "holdfast: " << error.what() << '\n';
    return static_cast<int>(base::ErrorClass::bug);
  }
}
