#include "lib/catalog/search.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/live.hpp"
#include "lib/store/text.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <array>
#include <set>

namespace holdfast::serve {

namespace {

constexpr int kHits = 20;
constexpr int kWindow = 5000; // snapshots in whose names one request looks
constexpr char kBegin = '\x02', kEnd = '\x03';
constexpr std::array kOutcomes = {"", "succeeded", "partial", "failed"};
constexpr std::initializer_list<const char*> kFilters = {"host", "tag", "outcome", "since", "until", "all"};

std::optional<std::string> filter(const PageRequest& request, const char* name) {
  const auto value = request.parameter(name);
  return value.empty() ? std::nullopt : std::optional(value);
}

// A date as <input type=date> sends it.
std::optional<std::string> date(const PageRequest& request, const char* name) {
  const auto value = request.parameter(name);
  const bool is_date = value.size() == 10 && value.find_first_not_of("0123456789-") == std::string::npos;
  return is_date ? std::optional(value) : std::nullopt;
}

html::List pieces(const std::string& excerpt) {
  html::List list;
  std::size_t at = 0;
  while (at < excerpt.size()) {
    const bool marked = excerpt[at] == kBegin;
    const auto end = std::min(excerpt.find(marked ? kEnd : kBegin, at), excerpt.size());
    const auto begin = at + (marked ? 1 : 0);
    list.push_back({{"marked", marked}, {"text", excerpt.substr(begin, end - begin)}});
    at = marked ? end + 1 : end;
  }
  return list;
}

// `each`: every capture is shown, not each page once.
html::Fields found(const std::string& id, const std::string& name, const std::string& url, Html state,
                   html::List excerpt, Html at, const std::string& picture, bool each) {
  return {{"href", each ? "/snapshot/" + id : timeline_href(url)},
          {"picture", picture},
          {"name", name},
          {"url", name == url ? "" : url},
          {"state", std::move(state)},
          {"pieces", std::move(excerpt)},
          {"when", std::move(at)}};
}

html::Fields found(const pg::Row& row, Html at, const std::string& picture, bool each) {
  return found(row["id"], name_of(row), row["url"], state_badge(row["status"], row["outcome"].value_or("")), {},
               std::move(at), picture, each || row.text("status") != "sealed");
}

std::string href(const PageRequest& request, const std::string& name, const std::string& value) {
  return "/search?q=" + base::percent_encode(request.query) + request.kept(kFilters) + "&" + name + "=" +
         base::percent_encode(value);
}

Html form(const PageRequest& request) {
  return html::fill(embedded::search_form_html, {{"query", request.query},
                                                 {"host", request.parameter("host")},
                                                 {"tag", request.parameter("tag")},
                                                 {"since", request.parameter("since")},
                                                 {"until", request.parameter("until")},
                                                 {"all", !request.parameter("all").empty()},
                                                 {"outcomes", options_of(kOutcomes, request.parameter("outcome"))},
                                                 {"filtered", !request.kept(kFilters).empty()}});
}

// In URLs, titles and tags, also of pages that have no text or wait.
// Each page once, without those in `shown`.
Html in_names(const PageRequest& request, std::set<std::string> shown) {
  const auto page = store::search_names(request.connection, request.query, request.before, kWindow, kSnapshotsOfPage);
  const std::string none = page.next.empty()
                               ? "No URL, title or tag has this."
                               : "Nothing " + std::string(request.before ? "more " : "") + "among the " +
                                     number(kWindow) + " newest snapshots" + (request.before ? " before that." : ".");
  html::List list;
  const bool all = filter(request, "all").has_value();
  for (const auto row : page.found)
    if (shown.insert(row.text("url")).second || all) list.push_back(found(row, {}, request.links.picture(row), all));
  return html::fill(embedded::search_html, {{"found", std::move(list)},
                                            {"none", none},
                                            {"more_name", "Search older"},
                                            {"more", page.next.empty() ? "" : href(request, "before", page.next)}});
}

// Without words: the newest that pass the filters.
Html newest(const PageRequest& request) {
  catalog::ListQuery query{"snapshots", kSnapshotsOfPage};
  for (const char* name : {"host", "tag", "outcome"})
    query.by(name, filter(request, name));
  query.by("since", date(request, "since")).by("before", request.before.value_or(catalog::kNewest));
  const auto rows = catalog::list(request.connection, query);
  auto pictures = store::thumbnails(request.connection, rows.column("id"));
  html::List list;
  for (const auto row : rows)
    list.push_back(found(row, ago(row.text("created_at")),
                         request.links.picture(row["directory"].value_or(""), pictures[row.text("id")]), true));
  const bool full = static_cast<int>(rows.size()) == kSnapshotsOfPage;
  return html::fill(embedded::search_html,
                    {{"found", std::move(list)},
                     {"none", "There are no such snapshots."},
                     {"more_name", "Older"},
                     {"more", full ? href(request, "before", rows[rows.size() - 1].text("id")) : ""}});
}

// Makes a shelf of this search.
Html keep_search(const PageRequest& request) {
  if (!request.may_change || (request.query.empty() && request.kept(kFilters).empty())) return {};
  html::List fields{{{"name", "q"}, {"value", request.query}}};
  for (const std::string name : kFilters)
    if (const auto value = request.parameter(name.c_str()); !value.empty())
      fields.push_back({{"name", name == "all" ? "captures" : name}, {"value", name == "all" ? name : value}});
  return html::fill(embedded::search_keep_html, {{"name", request.query}, {"fields", std::move(fields)}});
}

} // namespace

std::optional<Page> search_page(const PageRequest& request) {
  Page page{request.query.empty() ? "Snapshots" : request.query,
            request.query.empty() ? "Snapshots" : "“" + request.query + "”",
            {},
            form(request)};
  page.body += keep_search(request);
  if (request.query.empty()) {
    if (request.parameter("until").empty()) page.body += newest(request);
    return page;
  }
  if (request.before) {
    page.body += in_names(request, {});
    return page;
  }
  nlohmann::json given{{"q", request.query}, {"all", filter(request, "all").has_value()}, {"limit", kHits}};
  for (const char* name : {"host", "tag", "outcome", "cursor"})
    if (const auto value = filter(request, name)) given[name] = *value;
  for (const char* name : {"since", "until"})
    if (const auto value = date(request, name)) given[name] = *value;
  auto query = catalog::search_query(given);
  query.begin_mark = kBegin;
  query.end_mark = kEnd;
  html::List list;
  const auto hits = store::search(request.connection, query);
  std::set<std::string> shown;
  for (const auto& hit : hits) {
    shown.insert(hit.url);
    list.push_back(found(hit.id, hit.name(), hit.url, state_badge("sealed", hit.outcome), pieces(hit.excerpt),
                         ago(hit.sealed_at), request.links.picture(hit.directory, hit.thumbnail), query.all));
  }
  const bool full = hits.size() == kHits;
  page.body +=
      html::fill(embedded::search_html, {{"found", std::move(list)},
                                         {"none", query.cursor ? "Nothing more." : "No archived text has these words."},
                                         {"more_name", "More"},
                                         {"more", full ? href(request, "cursor", hits.back().cursor) : ""}});
  if (!query.cursor && !full) {
    page.body += Html(html::Literal(embedded::search_names_html));
    page.body += in_names(request, std::move(shown));
  }
  return page;
}

} // namespace holdfast::serve
