#pragma once
// The text of pages and the search in it (migrations/functions/92_text.sql, 93_full_text.sql). Blocking; call on the
// thread that owns the connection.

#include "lib/store/worker.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

// Stores the text of a sealed page. Returns false if the page was not sealed with this fence.
bool text_keep(pg::Connection& connection, const Lease& lease, const std::string& text);

// Sealed pages with files whose text is not indexed, by id after `after`.
struct TextMissing {
  Lease lease;
  std::string directory;
};
std::vector<TextMissing> texts_missing(pg::Connection& connection, const std::optional<std::string>& after, int limit);
// Pages without a text among the next `rows` sealed pages behind `after` that were sealed at least `age` ago.
struct TextsLost {
  std::vector<TextMissing> pages;
  std::optional<std::string> last; // that was looked at; nullopt: there are no more
};
TextsLost texts_lost(pg::Connection& connection, const std::optional<std::string>& after, int rows,
                     std::chrono::milliseconds age);

struct SearchQuery {
  std::string words;
  std::optional<std::string> host, tag, crawl_id, outcome, since, until;
  bool all{false}; // every capture of a URL, not only the newest
  std::optional<std::string> cursor;
  int limit{20};
  std::string begin_mark{"«"}, end_mark{"»"}; // around the words in an excerpt
};
struct SearchHit {
  std::string id, crawl_id, url, title, excerpt, outcome, sealed_at, directory, cursor, json;
  std::string thumbnail; // below the directory; may be empty
  std::vector<std::string> tags;

  const std::string& name() const noexcept { return title.empty() ? url : title; }
};
// Best first. The next page begins behind the cursor of the last; less than `limit`: there is none.
std::vector<SearchHit> search(pg::Connection& connection, const SearchQuery& query);

} // namespace holdfast::store
