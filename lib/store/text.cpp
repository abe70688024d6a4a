#include "lib/store/text.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/call.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::store {

bool text_keep(pg::Connection& connection, const Lease& lease, const std::string& text) {
  return call(connection, "text_keep", lease.snapshot_id, lease.crawl_id, lease.fence, text).value();
}

std::vector<TextMissing> texts_missing(pg::Connection& connection, const std::optional<std::string>& after, int limit) {
  return call(connection, "texts_missing", after, limit).map([](const pg::Row& row) {
    return TextMissing{{row["snapshot_id"], row["crawl_id"], row["fence"]}, row["directory"]};
  });
}

TextsLost texts_lost(pg::Connection& connection, const std::optional<std::string>& after, int rows,
                     std::chrono::milliseconds age) {
  const auto found = call(connection, "texts_lost", after, rows, age);
  TextsLost lost;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto row = found[i];
    lost.last = row["last"];
    if (!row.is_null("snapshot_id"))
      lost.pages.push_back({{row["snapshot_id"], row["crawl_id"], row["fence"]}, row["directory"]});
  }
  return lost;
}

namespace {

constexpr std::ptrdiff_t kLongestQuery = 2000; // characters, as the API says
// Parameters of a URL that tell a site who has sent a visitor, besides utm_source and so on.
constexpr std::string_view kTracking = " fbclid gclid dclid msclkid yclid igshid mc_cid mc_eid ";

std::string without_tracking(std::string_view url) {
  const auto mark = std::min(url.find('?'), url.size()), end = std::min(url.find('#'), url.size());
  std::string result(url.substr(0, std::min(mark, end)));
  char next = '?';
  for (const auto& one : base::split(url.substr(result.size(), end - result.size()), "?&")) {
    const auto name = one.substr(0, one.find('='));
    if (name.starts_with("utm_") || kTracking.find(" " + name + " ") != std::string_view::npos) continue;
    result += std::exchange(next, '&') + one;
  }
  return result;
}

// Returns the query, and of a URL the spellings under which its page may be archived, the best first: in the form of
// rows, without what a browser or another archive sets before it ("view-source:", "https://archive.example/2026/"), and
// without parameters that name no page.
std::vector<std::string> spellings(const std::string& words) {
  std::string_view text = base::trimmed(words);
  if (text.starts_with('<') && text.ends_with('>')) text = text.substr(1, text.size() - 2);
  if (text.starts_with("view-source:")) text.remove_prefix(text.find(':') + 1);
  const auto url = base::try_parse_url(text);
  std::vector<std::string> all{url ? url->text : words};
  const auto path = text.substr(0, text.find_first_of("?# "));
  if (const auto inner = url ? path.rfind("/http") : path.npos; inner != path.npos)
    if (const auto other = base::try_parse_url(text.substr(inner + 1))) all.push_back(other->text);
  if (auto bare = without_tracking(all.back()); bare != all.back() && bare.find(' ') == bare.npos)
    all.push_back(std::move(bare));
  return all;
}

std::vector<SearchHit> search_words(pg::Connection& connection, const SearchQuery& query, const std::string& words) {
  const std::vector<std::string> marks{query.begin_mark, query.end_mark};
  return connection
      .call("select f.*, to_jsonb(f)::text as json from holdfast.search($1, $2, $3, $4::uuid, $5, $6::timestamptz, "
            "$7::timestamptz, $8::boolean, $9, $10::integer, $11::text[]) f",
            words, query.host, query.tag, query.crawl_id, query.outcome, query.since, query.until, query.all,
            query.cursor, query.limit, marks)
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

} // namespace

std::vector<SearchHit> search(pg::Connection& connection, const SearchQuery& query) {
  if (std::count_if(query.words.begin(), query.words.end(), [](char c) { return (c & 0xC0) != 0x80; }) > kLongestQuery)
    throw base::Error(base::ErrorClass::usage, "a search has at most " + std::to_string(kLongestQuery) + " characters");
  std::vector<SearchHit> hits;
  for (const auto& words : spellings(query.words))
    if (hits.empty()) hits = search_words(connection, query, words);
  return hits;
}

} // namespace holdfast::store
