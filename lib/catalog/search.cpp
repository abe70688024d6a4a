#include "lib/catalog/search.hpp"

#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"

namespace holdfast::catalog {

namespace {

using namespace schema;

constexpr Field kSearchFields[] = {
    {"q", kWords, "Words, \"a phrase\", or, -not, begin*; or a URL", true},
    {"host", kWord, "Only of this host"},
    {"tag", kWord, "Only with this tag"},
    {"crawl", kId, "Only of this crawl"},
    {"outcome", kWord, "Only with this outcome"},
    {"since", kTime, "Only archived since: 2026-11-22T14:00:00Z"},
    {"until", kTime, "Only archived before"},
    {"all", kFlag, "Every capture of a URL, not only the newest"},
    {"cursor", kWord, "Continue behind the last page: its cursor"},
    {"limit", R"({"type":"integer","minimum":1,"maximum":200})", "At most this many (20)"},
};

} // namespace

std::span<const Field> search_fields() { return kSearchFields; }

std::string filter_value(const List& list, std::string_view filter, const std::string& value) {
  check_filter(list, filter, value);
  if (filter == "host") return base::host_named(value).value_or(base::lower_case(value));
  return schema_of(filter_of(filter).field).contains("x-time") ? base::canonical_timestamp(value) : value;
}

store::SearchQuery search_query(const nlohmann::json& given) {
  const auto& snapshots = list_of("snapshots");
  store::SearchQuery query;
  query.words = given.value("q", "");
  for (const auto& [name, field] : {std::pair{"host", &query.host},
                                    {"tag", &query.tag},
                                    {"crawl", &query.crawl_id},
                                    {"outcome", &query.outcome},
                                    {"since", &query.since},
                                    {"until", &query.until}})
    if (given.contains(name)) *field = filter_value(snapshots, name, given[name]);
  if (given.contains("cursor")) query.cursor = given["cursor"];
  query.all = given.value("all", false);
  query.limit = given.value("limit", query.limit);
  return query;
}

} // namespace holdfast::catalog
