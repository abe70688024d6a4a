#include "lib/catalog/crawl_options.hpp"

#include "lib/base/text/time.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/formats/list.hpp"

namespace holdfast::catalog {

namespace {

using namespace schema;
using enum CrawlOptionKind;

constexpr std::string_view kByName = R"({"type":"object","additionalProperties":{"type":"string","maxLength":10000}})";
constexpr std::string_view kSchemes = R"({"type":"array","items":{"type":"string","enum":["http","https"]}})";

std::vector<CrawlOption> made_options() {
  static const auto parsers = nlohmann::json{{"type", "string"}, {"enum", formats::parsers()}}.dump();
  return {
      {{"max_depth", R"({"type":"integer","minimum":0,"maximum":16})", "How many links to follow from each URL (0)",
        false, "-d,--depth"}},
      {{"max_urls", kCount, "At most this many snapshots; 0: no limit (default: crawl.max_urls)"}},
      {{"plugins", kNames, "Run only these plugins and the plugins they require: wget,title", false,
        "-p,--plugins,--plugin"}},
      {{"tags", kNames, "Tags of every snapshot", false, "-t,--tag"}},
      {{"persona", kText, "Sign in as this persona (default: that of the seeds' hosts, if any); none: without"}},
      {{"label", kText, "Name of the crawl"}},
      {{"options", kByName, "Set an option of a plugin, for example WGET_TIMEOUT=60", false, "--option"}},
      {{"notes", kText, "Notes on the crawl"}},
      {{"parser", parsers, "Format of a file or text that lists URLs (auto)"}, reading, false},
      {{"strict", kFlag, "Add nothing if a line of a file or text cannot be used (default: leave the line out)"},
       reading,
       false},
      {{"same", R"({"type":"string","enum":["host","domain","prefix"]})",
        "Only follow links to the same host, domain, or prefix (directory)"},
       limit,
       false},
      {{"allow", kTexts, "Only URLs that fit: example.com, *.example.com, or a regular expression"}, limit, false},
      {{"deny", kTexts, "No URLs that fit this"}, limit, false},
      {{"schemes", kSchemes, "Only URLs with this scheme: http or https", false, "--scheme"}, limit, false},
      {{"max_bytes", kSize, "Maximum size of the crawl: 500m, 2g"}, limit},
      {{"max_snapshot_bytes", kSize, "Maximum size of one snapshot: 100m"}, limit},
      {{"max_time", kDuration, "Maximum duration: 30m, 2h"}, limit},
      {{"max_parallel", kPositive, "Maximum number of its snapshots at once, in the whole cluster"}, limit},
      {{"host_delay", kDuration, "Minimum time between two pages of a host without limits of its own: 2s"}, limit},
      {{"priority", kPriority, "Above 0: before other crawls; below 0: after them"}, limit},
      {{"only_new", kFlag, "Skip URLs that are already archived"}, limit},
      {{"update", kFlag,
        "Skip completely archived URLs and their links; for others, run only plugins that failed or are missing"},
       limit,
       false},
      {{"max_age", kDuration,
        "Archive again if the newest snapshot is older than this: 30d (only with only_new or update)"},
       limit},
      {{"overwrite", kFlag, "Archive again, and remove older snapshots of each URL with their files once it is sealed"},
       limit},
      {{"full", kFlag, "Run all hooks, also on pages whose files have not changed since their last capture"}, limit},
      {{"robots", kFlag, "Obey robots.txt (default: politeness.robots)", false, "--robots,!--no-robots"}, limit},
      {{"effort", R"({"type":"string","enum":["quick","normal","thorough"]})",
        "Effort of reading pages: quick, normal (default) or thorough, which may take minutes for each"},
       limit,
       false,
       "BROWSER_EFFORT"},
      {{"identify", kText,
        "Add Holdfast and this URL or e-mail address to the user agent (with robots: at least Holdfast)"},
       limit,
       false,
       "IDENTIFY"},
      {{"keep", kDuration, "Remove the crawl after this time: 90d"}, limit},
  };
}

nlohmann::json stored(const nlohmann::json& schema, const nlohmann::json& value) {
  if (schema.contains("x-size")) return base::parse_size(value.get_ref<const std::string&>());
  if (schema.contains("x-duration")) return interval(base::parse_duration(value.get_ref<const std::string&>()));
  return value;
}

} // namespace

std::span<const CrawlOption> crawl_options() {
  static const auto options = made_options();
  return options;
}

nlohmann::json interval(std::chrono::milliseconds time) {
  return time.count() > 0 ? nlohmann::json(std::to_string(time.count()) + " milliseconds") : nlohmann::json();
}

nlohmann::json crawl_columns(const nlohmann::json& given) {
  auto columns = nlohmann::json::object();
  for (const auto& option : crawl_options())
    if (const auto value = given.find(option.name); option.column && value != given.end())
      columns[std::string(option.name)] = stored(schema_of(option), *value);
  return columns;
}

store::NewSchedule schedule_of(const nlohmann::json& body, store::PlannedCrawl planned) {
  store::NewSchedule schedule;
  schedule.watch = watch_of(body);
  schedule.id = planned.crawl.id;
  schedule.label = planned.crawl.options.value("label", "");
  schedule.every = body.value("every", "");
  if (const auto zone = body.value("time_zone", ""); !zone.empty()) schedule.time_zone = zone;
  schedule.crawl = std::move(planned.crawl);
  schedule.seeds = std::move(planned.seeds);
  return schedule;
}

} // namespace holdfast::catalog
