#include "lib/archive/diff_page.hpp"
#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/find.hpp"
#include "services/cli/add/plan.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct ScheduleOptions {
  AddOptions crawl; // what each run adds
  std::string every, time_zone, name;
  int count{5};
  std::shared_ptr<nlohmann::json> watch; // null: a schedule without a condition
};

// Returns the time zone of this user: TZ, or the target of /etc/localtime, or UTC.
std::string local_time_zone() {
  if (const char* zone = std::getenv("TZ"); zone != nullptr && *zone != '\0' && *zone != ':') return zone;
  std::error_code none;
  const std::string link = std::filesystem::read_symlink("/etc/localtime", none).string();
  const std::string mark = "zoneinfo/";
  const auto at = link.rfind(mark);
  if (none || at == std::string::npos) return "UTC";
  const std::string zone = link.substr(at + mark.size());
  return zone.empty() || zone == "Etc/UTC" ? "UTC" : zone;
}

int add_schedule(Context& context, const ScheduleOptions& options) {
  auto given = *options.crawl.crawl;
  given["every"] = options.every;
  given["time_zone"] = options.time_zone.empty() ? local_time_zone() : options.time_zone;
  if (options.watch)
    given.update(options.watch->empty() ? nlohmann::json{{"when", "anything changes"}} : *options.watch);
  auto& collection = context.collection(true);
  const auto id = collection.add_schedule(given, read_inputs(context, options.crawl));
  const auto added = catalog::ListQuery{options.watch ? "watches" : "schedules", 1}.by("schedule", id);
  if (context.json())
    print_json(collection, added);
  else
    std::cout << (options.watch ? "watch " : "schedule ") << id << ": " << options.every << ", next on "
              << collection.rows(added).one().text("next_run") << " (" << given["time_zone"].get<std::string>() << ")\n"
              << "  it runs while a runner does: holdfast run --daemon, or holdfast runner with workers\n";
  std::cout.flush();
  return base::kExitSuccess;
}

// Prints the next times of an existing schedule, or of one that is still to be made.
int next_times(Context& context, const ScheduleOptions& options) {
  if (options.name.empty() && options.every.empty())
    throw base::Error(base::ErrorClass::usage, "neither a schedule nor --every is given",
                      "holdfast schedule next NAME, or holdfast schedule next --every '0 6 * * mon-fri'");
  auto& connection = context.connection();
  std::string every = options.every;
  std::string zone = options.time_zone.empty() ? local_time_zone() : options.time_zone;
  if (!options.name.empty()) {
    const auto rows =
        catalog::list(connection, catalog::ListQuery{"schedules", 1}.by(
                                      "schedule", store::find(connection, options.name, store::FindAs::schedule).id));
    const auto row = rows.one();
    every = row.text("every");
    if (options.time_zone.empty()) zone = row.text("time_zone");
  }
  const auto rows = store::schedule_times(connection, every, zone, options.count);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (context.json())
      print_record("Time", {{"at", rows[i].text("at")}, {"local", rows[i].text("local")}});
    else
      std::cout << rows[i].text("local") << "  " << zone << '\n';
  }
  if (rows.empty()) std::cout << "never\n";
  std::cout.flush();
  return base::kExitSuccess;
}

constexpr const char* kEveryHelp =
    "minutely, hourly, daily, weekly, monthly, yearly, \"every 30 minutes\", or cron's five fields";
constexpr const char* kZoneHelp = "Time zone, for example Europe/Berlin (default: this machine's)";

Action adding(CLI::App& command) {
  const auto options = std::make_shared<ScheduleOptions>();
  command.add_option("--every", options->every, kEveryHelp)->required();
  command.add_option("--time-zone", options->time_zone, kZoneHelp);
  add_crawl_options(command, options->crawl);
  return [options](Context& context) { return add_schedule(context, *options); };
}

Action adding_watch(CLI::App& command) {
  const auto options = std::make_shared<ScheduleOptions>();
  options->every = "1h";
  options->watch = std::make_shared<nlohmann::json>(nlohmann::json::object());
  command.add_option("--every", options->every,
                     std::string("1h, 30m, 1d; 15m..1d: between these bounds, by how often it changes; or ") +
                         kEveryHelp);
  command.add_option("--time-zone", options->time_zone, kZoneHelp);
  for (const auto& field : catalog::watch_fields())
    add_field(command, field, options->watch);
  add_crawl_options(command, options->crawl);
  return [options](Context& context) { return add_schedule(context, *options); };
}

// Returns what has been learnt as noise on a page, for people; nothing where the archive cannot be read, as from a
// server: its page of the URL shows it.
std::vector<std::string> noise_on(Context& context, const std::string& url) {
  std::vector<std::string> lines;
  if (context.remote()) return lines;
  auto& connection = context.connection();
  try {
    const auto root = archive::Root::open(context.archive_root(), store::collection_id(connection), false);
    const auto open = [&root](const std::string& path) { return root.open_file(path); };
    for (const auto row : store::call(connection, "noise_of", url))
      for (auto& line : archive::noise(open, row.text("fingerprint"), row.text("directory")))
        lines.push_back(std::move(line));
  } catch (const base::Error& error) {
    if (error.error_class() == base::ErrorClass::temporary) throw;
  }
  return lines;
}

// Prints a watch, when it runs next and why then, and its last notices.
int show_watch(Context& context, const std::string& name) {
  auto& collection = context.collection();
  const auto id = collection.find(name, store::FindAs::schedule).id;
  const auto watch = catalog::ListQuery{"watches", 1}.by("schedule", id);
  const auto notices = catalog::ListQuery{"notices", 20}.by("schedule", id);
  if (context.json()) {
    print_records(collection.lines(watch), "Watch");
    for (const auto& line : noise_on(context, collection.rows(watch).one().text("url")))
      print_record("Noise", {{"text", line}});
    print_records(collection.lines(notices), "Notice");
    return base::kExitSuccess;
  }
  const auto rows = collection.rows(watch);
  if (rows.empty())
    throw base::Error(base::ErrorClass::refused, "schedule " + id + " has no condition",
                      "holdfast watch edit " + shell_word(name) + " --when 'anything changes'");
  const auto row = rows.one();
  std::vector<std::pair<std::string, std::string>> fields;
  for (const char* column :
       {"id", "label", "url", "every", "when", "select", "ignore", "notify", "state", "last", "note"})
    if (const auto value = row[column].value_or(""); value != "[]" && value != "{}")
      fields.emplace_back(column, printable(value));
  print_fields(fields);
  if (const auto noise = noise_on(context, row.text("url")); !noise.empty())
    std::cout << "\nnoise, which does not count (holdfast watch relearn " << shell_word(name) << " forgets it):\n  "
              << printable(base::join(noise, "\n  ")) << '\n';
  std::cout << "\n" << with_local_times(collection.why(id).reason) << "\n\n";
  print_table(collection.rows(notices), {"at", "said", "snapshot_id"});
  std::cout << std::flush;
  return base::kExitSuccess;
}

Action showing(CLI::App& command) {
  const auto name = std::make_shared<std::string>();
  command.add_option("watch", *name, "Its label or id")->required();
  return [name](Context& context) { return show_watch(context, *name); };
}

Action next(CLI::App& command) {
  const auto options = std::make_shared<ScheduleOptions>();
  command.add_option("schedule", options->name, "Its label or id; or use --every");
  command.add_option("--every", options->every, kEveryHelp);
  command.add_option("--time-zone", options->time_zone, kZoneHelp);
  command.add_option("-n,--count", options->count, "How many times")->check(number(1, std::optional(1000)));
  return [options](Context& context) { return next_times(context, *options); };
}

} // namespace

Action schedule_verb(CLI::App& command) {
  Group group(command);
  group.verb("add", "Make a schedule",
             "holdfast schedule add --every 'every 30 minutes' --label news https://example.org/news", &adding);
  list_verb_of(group, "schedule");
  for (const char* const verb : {"pause", "resume", "remove"})
    operation_verb(group, verb, std::string(verb) + "Schedule", std::string("holdfast schedule ") + verb + " news");
  operation_verb(group, "run-now", "runSchedule", "holdfast schedule run-now news");
  group.verb("next", "When it will run",
             "holdfast schedule next news\n"
             "holdfast schedule next --every '0 6 * * mon-fri' -n 10",
             &next);
  return group.action();
}

Action watch_verb(CLI::App& command) {
  Group group(command);
  group.verb("add", "Watch a page or a feed",
             "holdfast watch add https://shop.example/lamp --every 1h --when \"number in '#price' below 100\" "
             "--notify me@example.org\n"
             "holdfast watch add https://example.org/news --every 15m..1d --label news --ignore '.ad'\n"
             "holdfast watch add https://blog.example.org/feed.xml",
             &adding_watch);
  list_verb_of(group, "watch");
  group.verb("show", "Show a watch, when it runs next, and its notices", "holdfast watch show news", &showing);
  operation_verb(group, "edit", "changeWatch", "holdfast watch edit news --every 2h --when 'text changes by 20 words'");
  for (const char* const verb : {"pause", "resume", "remove"})
    operation_verb(group, verb, std::string(verb) + "Schedule", std::string("holdfast watch ") + verb + " news");
  operation_verb(group, "run-now", "runSchedule", "holdfast watch run-now news");
  operation_verb(group, "relearn", "relearnSchedule", "holdfast watch relearn news");
  return group.action();
}

} // namespace holdfast::cli
