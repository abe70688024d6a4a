#include "lib/store/schedule.hpp"

#include "lib/base/error.hpp"
#include "lib/store/json.hpp"

namespace holdfast::store {

std::string schedule_add(pg::Connection& connection, const NewSchedule& schedule) {
  std::vector<std::string> urls;
  for (const auto& seed : schedule.seeds)
    urls.push_back(seed.url);
  return connection
      .call("select to_char(holdfast.schedule_add($1::uuid, $2, $3, $4, $5::text[], $6::jsonb) at time zone 'UTC', "
            "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
            schedule.id, schedule.label, schedule.every, schedule.time_zone, urls, json_text(schedule.crawl.options))
      .value();
}

std::string schedule_find(pg::Connection& connection, const std::string& text) {
  const auto rows = connection.call("select * from holdfast.schedule_find($1) as id", text);
  if (rows.size() != 1)
    throw base::Error(base::ErrorClass::refused,
                      rows.empty() ? "there is no schedule \"" + text + "\""
                                   : "\"" + text + "\" names " + std::to_string(rows.size()) + " schedules",
                      "holdfast schedule list shows ids and labels");
  return rows.value();
}

pg::Result schedule_times(pg::Connection& connection, const std::string& every, const std::string& time_zone,
                          int count) {
  return connection.call(
      "select to_char(t at time zone $2, 'Dy YYYY-MM-DD HH24:MI') as local, to_char(t at time zone 'UTC', "
      "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as at from holdfast.schedule_times($1, $2, clock_timestamp(), $3::integer) t",
      every, time_zone, count);
}

} // namespace holdfast::store
