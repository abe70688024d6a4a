#include "services/serve/atom.hpp"

#include "lib/base/error.hpp"
#include "lib/html/template.hpp"
#include "lib/store/call.hpp"
#include "services/serve/embedded.hpp"

namespace holdfast::serve {

Response atom(pg::Connection& connection, const Request& request, const std::string& collection,
              const std::string& base) {
  const auto watch = request.parameter("watch"), tag = request.parameter("tag"), shelf = request.parameter("shelf");
  if (!watch.empty() + !tag.empty() + !shelf.empty() > 1) return plain(400, "one of watch, tag and shelf\n");
  const auto rows = store::call(connection, "feed_entries", watch, tag, shelf);
  if (rows.empty())
    return plain(404, "there is no " + (shelf.empty() ? "watch \"" + watch : "shelf \"" + shelf) + "\"\n");
  html::List entries;
  for (const auto& row : rows)
    if (const auto id = row["entry_id"].value_or(""); !id.empty())
      entries.push_back({{"entry_id", id},
                         {"entry_title", row.text("entry_title")},
                         {"at", row.text("at")},
                         {"snapshot", row.text("snapshot_id")},
                         {"url", row.text("url")},
                         {"said", row.text("said")}});
  const auto first = rows[0];
  return content("application/atom+xml; charset=utf-8", html::fill(embedded::atom_xml, {{"collection", collection},
                                                                                        {"base", base},
                                                                                        {"self", base + request.here()},
                                                                                        {"name", first.text("name")},
                                                                                        {"title", first.text("title")},
                                                                                        {"updated", first.text("at")},
                                                                                        {"entries", entries}})
                                                            .text());
}

} // namespace holdfast::serve
