#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/crawl.hpp"
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
  auto planned = plan_crawl(context, options.crawl);
  store::NewSchedule schedule;
  schedule.id = base::new_uuid();
  schedule.label = planned.crawl.options.value("label", "");
  schedule.every = options.every;
  schedule.time_zone = options.time_zone.empty() ? local_time_zone() : options.time_zone;
  schedule.crawl = std::move(planned.crawl);
  schedule.seeds = std::move(planned.seeds);
  auto& connection = context.connection(true);
  store::schedule_add(connection, schedule);
  const auto added = catalog::ListQuery{"schedules", 1}.by("schedule", schedule.id);
  if (context.json())
    print_json(connection, added);
  else
    std::cout << "schedule " << schedule.id << ": " << schedule.every << ", next on "
              << catalog::list(connection, added).one().text("next_run") << " (" << schedule.time_zone << ")\n"
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
    const auto rows = catalog::list(
        connection, catalog::ListQuery{"schedules", 1}.by("schedule", store::schedule_find(connection, options.name)));
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

} // namespace holdfast::cli
