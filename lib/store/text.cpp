#include "lib/store/text.hpp"

#include "lib/base/text/url.hpp"

namespace holdfast::store {

bool text_keep(pg::Connection& connection, const Lease& lease, const std::string& text) {
  return connection
      .call("select holdfast.text_keep($1::uuid, $2::uuid, $3::bigint, $4)", lease.snapshot_id, lease.crawl_id,
            lease.fence, text)
      .value();
}

std::vector<TextMissing> texts_missing(pg::Connection& connection, const std::optional<std::string>& after, int limit) {
  return connection.call("select * from holdfast.texts_missing($1::uuid, $2::bigint)", after, limit)
      .map([](const pg::Row& row) {
        return TextMissing{{row["snapshot_id"], row["crawl_id"], row["fence"]}, row["directory"]};
      });
}

TextsLost texts_lost(pg::Connection& connection, const std::optional<std::string>& after, int rows,
                     std::chrono::milliseconds age) {
  const auto found =
      connection.call("select * from holdfast.texts_lost($1::uuid, $2::bigint, $3::interval)", after, rows, age);
  TextsLost lost;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto row = found[i];
    lost.last = row["last"];
    if (!row.is_null("snapshot_id"))
      lost.pages.push_back({{row["snapshot_id"], row["crawl_id"], row["fence"]}, row["directory"]});
  }
  return lost;
}

std::vector<SearchHit> search(pg::Connection& connection, const SearchQuery& query) {
  const auto url = base::try_parse_url(query.words); // in the spelling of rows
  const std::vector<std::string> marks{query.begin_mark, query.end_mark};
  return connection
      .call("select f.*, to_jsonb(f)::text as json from holdfast.search($1, $2, $3, $4::uuid, $5, $6::timestamptz, "
            "$7::timestamptz, $8::boolean, $9, $10::integer, $11::text[]) f",
            url ? url->text : query.words, query.host, query.tag, query.crawl_id, query.outcome, query.since,
            query.until, query.all, query.cursor, query.limit, marks)
      .map([](const pg::Row& row) {
        return SearchHit{row["id"],
                         row["crawl_id"],
                         row["url"],
                         row["title"],
                         row["excerpt"],
                         row["outcome"],
                         row["sealed_at"],
                         row["directory"],
                         row["cursor"],
                         row["json"],
                         row["thumbnail"].value_or(""),
                         row["tags"]};
      });
}

} // namespace holdfast::store
