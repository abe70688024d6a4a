#include "lib/store/crawl.hpp"

#include "lib/base/error.hpp"
#include "lib/store/call.hpp"

#include <algorithm>
#include <set>

namespace holdfast::store {

namespace {

constexpr std::size_t kSeedBatch = 5000;

} // namespace

bool crawl_add(pg::Connection& connection, const NewCrawl& crawl, const std::vector<Seed>& seeds) {
  bool added = false;
  connection.transaction([&](pg::Transaction& transaction) {
    added = transaction.call("select holdfast.crawl_add($1::uuid, $2::jsonb)", crawl.id, json_text(crawl.options))
                .value()
                .as<bool>();
    if (!added) return;
    for (std::size_t from = 0; from < seeds.size(); from += kSeedBatch) {
      const std::size_t to = std::min(seeds.size(), from + kSeedBatch);
      std::vector<std::string> urls, titles, notes;
      std::vector<std::optional<std::string>> bookmarked;
      nlohmann::json tags = nlohmann::json::array();
      bool any_titles = false, any_tags = false, any_bookmarked = false, any_notes = false;
      for (std::size_t i = from; i < to; ++i) {
        urls.push_back(seeds[i].url);
        any_titles |= !seeds[i].title.empty();
        any_tags |= !seeds[i].tags.empty();
        any_bookmarked |= !seeds[i].bookmarked_at.empty();
        any_notes |= !seeds[i].notes.empty();
      }
      for (std::size_t i = from; i < to && any_titles; ++i)
        titles.push_back(seeds[i].title);
      for (std::size_t i = from; i < to && any_notes; ++i)
        notes.push_back(seeds[i].notes);
      for (std::size_t i = from; i < to && any_tags; ++i)
        tags.push_back(seeds[i].tags);
      for (std::size_t i = from; i < to && any_bookmarked; ++i)
        bookmarked.push_back(seeds[i].bookmarked_at.empty() ? std::nullopt : std::optional(seeds[i].bookmarked_at));
      transaction.call(
          "select holdfast.crawl_add_seeds($1::uuid, $2::text[], $3::text[], $4::jsonb, $5::timestamptz[], $6::text[])",
          crawl.id, urls, titles, any_tags ? std::optional<std::string>(json_text(tags)) : std::nullopt, bookmarked,
          notes);
    }
    // In the same commit, so that no worker can claim it before.
    if (!crawl.paused_why.empty())
      transaction.call("select holdfast.crawl_pause($1::uuid, $2, $3)", crawl.id, crawl.options.value("created_by", ""),
                       crawl.paused_why);
  });
  return added;
}

std::vector<ArchivedSeed> seeds_archived(pg::Connection& connection, const NewCrawl& crawl,
                                         const std::vector<Seed>& seeds) {
  const auto arguments = json_text(crawl.options);
  std::vector<ArchivedSeed> archived;
  for (std::size_t from = 0; from < seeds.size(); from += kSeedBatch) {
    std::vector<std::string> urls;
    for (std::size_t i = from; i < std::min(seeds.size(), from + kSeedBatch); ++i)
      urls.push_back(seeds[i].url);
    const auto rows = connection.call("select url, snapshot_id, directory, to_char(sealed_at at time zone 'UTC', "
                                      "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as sealed_at "
                                      "from holdfast.seeds_archived($1::jsonb, $2::text[])",
                                      arguments, urls);
    for (const auto row : rows)
      archived.push_back({row["url"], row["snapshot_id"], row["sealed_at"], row["directory"]});
  }
  return archived;
}

CrawlAdded crawl_add(pg::Connection& connection, const PlannedCrawl& planned) {
  CrawlAdded result;
  if (planned.crawl.options.value("only_new", false)) {
    result.archived = seeds_archived(connection, planned.crawl, planned.seeds);
    std::set<std::string_view> urls;
    for (const auto& seed : planned.seeds)
      urls.insert(seed.url);
    result.nothing_left = result.archived.size() == urls.size();
  }
  if (!result.nothing_left) result.added = crawl_add(connection, planned.crawl, planned.seeds);
  return result;
}

std::string schedule_add(pg::Connection& connection, const NewSchedule& schedule) {
  std::vector<std::string> urls;
  for (const auto& seed : schedule.seeds)
    urls.push_back(seed.url);
  return connection
      .call("select to_char(holdfast.schedule_add($1::uuid, $2, $3, $4, $5::text[], $6::jsonb, $7::jsonb) at time "
            "zone 'UTC', "
            "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
            schedule.id, schedule.label, schedule.every, schedule.time_zone, urls, json_text(schedule.crawl.options),
            schedule.watch.is_null() ? std::nullopt : std::optional(json_text(schedule.watch)))
      .value();
}

pg::Result schedule_times(pg::Connection& connection, const std::string& every, const std::string& time_zone,
                          int count) {
  return connection.call(
      "select to_char(t at time zone $2, 'Dy YYYY-MM-DD HH24:MI') as local, to_char(t at time zone 'UTC', "
      "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as at from holdfast.schedule_times($1, $2, clock_timestamp(), $3::integer) t",
      every, time_zone, count);
}

} // namespace holdfast::store
