// Operations that add what `holdfast add` and `holdfast schedule add` add.
#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/catalog/crawl_options.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/store/crawl.hpp"
#include "services/serve/api/table.hpp"

namespace holdfast::serve {

namespace {

using namespace schema;

constexpr std::string_view kFileBytes = R"({"type":"string","contentEncoding":"base64","maxLength":90000000})";

// The options of `holdfast add`, what lists the URLs, and fields of its own.
std::vector<ApiField> crawl_fields(std::vector<ApiField> fields) {
  fields.insert(fields.end(),
                {{"urls", kUrlList, "URLs to archive"},
                 {"text", R"({"type":"string","maxLength":67108864})",
                  "A list of URLs, bookmarks, a feed or a sitemap, as in a file"},
                 {"file", kFileBytes, "The bytes of such a file, in any encoding or packed by gzip, as base64"}});
  fields.insert(fields.end(), catalog::crawl_options().begin(), catalog::crawl_options().end());
  return fields;
}

const auto kAdd = crawl_fields({{"dry_run", kFlag, "Only check, and say what would be added"}});
std::vector<ApiField> with_watch(std::vector<ApiField> fields) {
  fields.insert(fields.end(), catalog::watch_fields().begin(), catalog::watch_fields().end());
  return fields;
}
const auto kAddSchedule = crawl_fields(
    with_watch({{"every", kText,
                 "minutely, hourly, daily, weekly, monthly, yearly, \"every 30 minutes\", or cron's five fields", true},
                {"time_zone", kText, "For example Europe/Berlin (UTC)"}}));
Json added(const store::NewCrawl& crawl, const store::PlannedCrawl& planned) {
  Json json{{"id", crawl.id}, {"seeds", planned.seeds.size()}, {"left_out", planned.left_out}};
  if (!planned.problems.empty()) json["problems"] = planned.problems;
  return json;
}

Response add(const ApiCall& call) {
  auto planned = call.options.plan(call.body);
  auto& crawl = planned.crawl;
  crawl.id = call.new_id;
  crawl["created_by"] = call.caller.by();
  const bool dry = call.checked("dry_run");
  const auto result = dry ? store::CrawlAdded{} : store::crawl_add(call.connection, planned);
  auto json = added(crawl, planned);
  json["added"] = result.added;
  for (const auto& seed : result.archived)
    json["archived"].push_back({{"url", seed.url}, {"snapshot_id", seed.snapshot_id}, {"sealed_at", seed.sealed_at}});
  if (dry || result.nothing_left) json["id"] = nullptr;
  if (dry) {
    json["urls"] = Json::array();
    for (const auto& seed : planned.seeds)
      json["urls"].push_back(seed.url);
  }
  auto response = json_response(json, result.added ? 201 : 200);
  if (!json["id"].is_null()) response.headers.emplace_back("Location", "/api/v1/crawls/" + crawl.id);
  return response;
}

Response add_schedule(const ApiCall& call) {
  auto planned = call.options.plan(call.body);
  planned.crawl.id = call.new_id;
  planned.crawl["created_by"] = call.caller.by();
  const auto schedule = catalog::schedule_of(call.body, std::move(planned));
  store::schedule_add(call.connection, schedule);
  return json_response(
      array_of(catalog::list_json(call.connection, catalog::ListQuery{"schedules", 1}.by("schedule", schedule.id)))
          .at(0));
}

const ApiField kPage[] = {
    {"file", kFileBytes, "The saved page: MHTML, or HTML of SingleFile; in JSON as base64", true},
    {"url", kText, "Its URL, if the file does not name it"},
};

Response import_page(const ApiCall& call) {
  const auto bytes = base::base64_decode(call.text("file"));
  const auto page = call.options.import_page({call.connection, bytes, call.text("url"), call.caller.by()});
  if (!page.added && !page.known)
    throw base::Error(base::ErrorClass::refused, page.problems.empty() ? "this page was removed; try again later"
                                                                       : base::join(page.problems, "; "));
  Json json{{"id", page.crawl}, {"snapshot", page.snapshot}, {"url", page.url}, {"added", page.added}};
  if (!page.problems.empty()) json["warnings"] = page.problems;
  return json_response(json, page.added ? 201 : 200).with("Location", "/api/v1/snapshots/" + page.snapshot);
}

const ApiOperation kCrawlOperations[] = {
    {"POST",
     "v1/pages",
     "importPage",
     "Import a page that a browser saved as one file; also as multipart/form-data",
     &import_page,
     "Imported",
     {},
     kPage,
     201},
    {"POST", "v1/crawls", "addCrawl", "Add URLs as one crawl", &add, "Added", {}, kAdd, 201},
    {"POST",
     "v1/schedules",
     "addSchedule",
     "Make a schedule; with a condition, a watch",
     &add_schedule,
     "Schedule",
     {},
     kAddSchedule},
};

} // namespace

std::span<const ApiOperation> api_crawls() { return kCrawlOperations; }

} // namespace holdfast::serve
