#include "services/cli/limits.hpp"

#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/url.hpp"
#include "services/cli/checks.hpp"

#include <CLI/CLI.hpp>

#include <libpsl.h>

#include <functional>
#include <set>

namespace holdfast::cli {

namespace {

// Runs a parser of lib/base; its complaint names the option.
template <class Parse>
auto parsed(const char* option, const std::string& text, Parse parse) -> decltype(parse(text)) {
  try {
    return parse(text);
  } catch (const base::Error& error) {
    throw base::Error(base::ErrorClass::usage, std::string(option) + " " + text + ": " + error.what());
  }
}

std::chrono::milliseconds duration(const char* option, const std::string& text) {
  if (text.empty()) return std::chrono::milliseconds(0);
  return parsed(option, text, [](const std::string& given) { return base::parse_duration(given); });
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

} // namespace

std::string registrable_domain(const std::string& host) {
  // An address: the list knows names only.
  if (host.find_first_not_of("0123456789.") == std::string::npos || host.find(':') != std::string::npos) return host;
  const auto* list = psl_builtin();
  const char* domain = list != nullptr ? psl_registrable_domain(list, host.c_str()) : nullptr;
  return domain != nullptr ? domain : host;
}

void add_limit_options(CLI::App& command, LimitOptions& options) {
  const std::string group = "How far and how fast";
  command.add_option("--same", options.same, "Only follow links to the same host, domain, or prefix (directory)")
      ->check(CLI::IsMember({"host", "domain", "prefix"}))
      ->group(group);
  command
      .add_option("--allow", options.allow, "Only URLs that fit: example.com, *.example.com, or a regular expression")
      ->allow_extra_args(false)
      ->group(group);
  command.add_option("--deny", options.deny, "No URLs that fit this")->allow_extra_args(false)->group(group);
  command.add_option("--scheme", options.schemes, "Only URLs with this scheme: http or https")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"http", "https"}))
      ->group(group);
  command.add_option("--max-bytes", options.max_bytes, "Maximum size of the crawl: 500m, 2g")->group(group);
  command.add_option("--max-time", options.max_time, "Maximum duration: 30m, 2h")->group(group);
  command.add_option("--parallel", options.parallel, "Maximum number of its pages at once, in the whole cluster")
      ->check(number(1))
      ->group(group);
  command.add_option("--delay", options.delay, "Minimum time between two pages of a host without limits of its own")
      ->group(group);
  command.add_option("--priority", options.priority, "Above 0: before other crawls; below 0: after them")->group(group);
  auto* only_new =
      command.add_flag("--only-new", options.only_new, "Skip URLs that are already archived")->group(group);
  auto* update =
      command
          .add_flag(
              "--update", options.update,
              "Skip completely archived URLs and their links; for others, run only plugins that failed or are missing")
          ->group(group);
  command
      .add_flag("--overwrite", options.overwrite,
                "Archive again, and remove older snapshots of each URL with their files once it is sealed")
      ->excludes(only_new)
      ->excludes(update)
      ->group(group);
  command.add_flag("--robots,!--no-robots", options.robots, "Obey robots.txt (default: politeness.robots)")
      ->group(group);
  command
      .add_option("--patience", options.patience,
                  "How pages are read: quick, normal (default) or patient, which may take minutes for each")
      ->check(CLI::IsMember({"quick", "normal", "patient"}))
      ->group(group);
  command
      .add_option("--identify", options.identify,
                  "Say whose crawl it is: a URL or an address of mail in the user agent; with --robots: Holdfast")
      ->group(group);
  command.add_option("--max-page-bytes", options.max_page_bytes, "Maximum size of one page: 100m")->group(group);
  command
      .add_option("--max-age", options.max_age, "With --only-new or --update: archive again if older than this: 30d")
      ->group(group);
  command.add_option("--keep", options.keep, "Remove the crawl after this time: 90d")->group(group);
}

void apply_limits(const LimitOptions& options, const config::Settings& settings, const std::vector<store::Seed>& seeds,
                  store::NewCrawl& crawl) {
  crawl.priority = options.priority;
  crawl.max_parallel = options.parallel;
  crawl.max_time = duration("--max-time", options.max_time);
  crawl.keep = duration("--keep", options.keep);
  crawl.only_new = options.only_new || options.update;
  crawl.only_complete = options.update;
  crawl.overwrite = options.overwrite;
  crawl.robots = options.robots.value_or(settings.boolean("politeness.robots"));
  constexpr const char* kPatientTime = "600"; // seconds of a page
  if (!options.patience.empty()) crawl.options["BROWSER_PATIENCE"] = options.patience;
  if (options.patience == "patient") crawl.options.emplace("BROWSER_TIMEOUT", kPatientTime);
  if (!options.identify.empty())
    crawl.options["IDENTIFY"] = options.identify;
  else if (crawl.robots)
    crawl.options.emplace("IDENTIFY", "true");
  crawl.only_new_age = duration("--max-age", options.max_age);
  if (crawl.only_new_age.count() > 0 && !crawl.only_new)
    throw base::Error(base::ErrorClass::usage, "--max-age makes sense only with --only-new or --update");
  if (!options.max_bytes.empty())
    crawl.max_bytes = static_cast<std::int64_t>(
        parsed("--max-bytes", options.max_bytes, [](const std::string& given) { return base::parse_size(given); }));
  if (!options.max_page_bytes.empty())
    crawl.max_snapshot_bytes = static_cast<std::int64_t>(parsed(
        "--max-page-bytes", options.max_page_bytes, [](const std::string& given) { return base::parse_size(given); }));
  crawl.host_delay = options.delay.empty() ? settings.duration("politeness.delay") : duration("--delay", options.delay);
  crawl.host_parallel = static_cast<int>(settings.integer("politeness.parallel"));

  const auto list = [&](const char* name, const std::vector<std::string>& values) {
    if (!values.empty()) crawl.scope[name] = values;
  };
  list("allow", options.allow);
  list("deny", options.deny);
  list("schemes", options.schemes);
  const auto host_of = [](const store::Seed& seed) { return base::parse_url(seed.url).host; };
  if (options.same == "host") list("hosts", distinct(seeds, host_of));
  if (options.same == "domain")
    list("domains", distinct(seeds, [&](const auto& seed) { return registrable_domain(host_of(seed)); }));
  if (options.same == "prefix")
    list("prefixes", distinct(seeds, [](const auto& seed) { return directory_of(seed.url); }));
}

} // namespace holdfast::cli
