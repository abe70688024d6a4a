// Operations that change nothing. The lists are those of `holdfast list`.
#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/search.hpp"
#include "lib/store/call.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "lib/store/text.hpp"
#include "services/serve/api/table.hpp"
#include "services/serve/feed.hpp"

#include <deque>

namespace holdfast::serve {

namespace {

using namespace schema;

constexpr int kUsualLimit = 50;

constexpr ApiField kCrawl{"crawl", kId, "Only of this crawl"};
constexpr ApiField kMost{"limit", kLimit, "At most this many (50)"};
constexpr ApiField kOfWhy[] = {{"of", kWord, "An id, whole or shortened, a URL, or a host", true}};
constexpr ApiField kOfFind[] = {
    {"of", kWords, "An id, whole or shortened, a URL, or the label of a crawl or schedule", true},
    {"as", R"({"type":"string","enum":["only","newest","schedule","shelf"]})",
     "newest: of those that a URL or label names; schedule, shelf: the name of one (only: it must name one)"}};
constexpr ApiField kOfEvents[] = {
    {"after", R"({"type":"integer","minimum":0,"maximum":2147483647})", "Only events behind this id (0)"},
    {"last", kLimit, "In place of after: the last so many"},
    kCrawl,
    kMost};

constexpr ApiField kOfStream[] = {
    {"after", R"({"type":"integer","minimum":0,"maximum":2147483647})", "First those behind this id"}, kCrawl};

constexpr ApiField kOfShelf[] = {
    {"order", R"({"type":"string","enum":["shelf","time"]})", "As it was arranged, or the latest first (shelf)"},
    {"cursor", kWord, "Continue behind the last page: its cursor"},
    kMost};

constexpr ApiField kOfExport[] = {{"of", kWord, "Only this crawl or snapshot: its id"},
                                  {"shelf", kWords, "Only pages on this shelf, in its order"},
                                  {"tag", kWords, "Only snapshots with this tag"},
                                  {"host", kWord, "Only of this host"},
                                  {"since", kTime, "Only captured since"},
                                  {"until", kTime, "Only captured before"},
                                  {"format", R"({"type":"string","enum":["wacz","files"]})",
                                   "wacz: one file for players; files: all, as a zip (wacz)"}};

Json page(Json items, const Json& cursor) { return {{"items", std::move(items)}, {"cursor", cursor}}; }

// The age of what has not ended grows; what has not changed shall have the same ETag.
void hide_age(Json& item) {
  const char* const end = item.contains("sealed_at") ? "sealed_at" : "ended_at";
  if (item.contains("age") && item.contains(end) && item[end].is_null()) item["age"] = nullptr;
}

catalog::ListQuery query_of(const ApiCall& call) {
  catalog::ListQuery query{std::string(call.operation.path.substr(call.operation.path.rfind('/') + 1)),
                           call.number("limit", kUsualLimit)};
  const auto& list = catalog::list_of(query.view);
  for (const auto& [name, column] : list.filters) {
    const auto value = call.parameter(std::string(name).c_str());
    if (value) query.by(name, catalog::filter_value(list, name, *value));
  }
  return query;
}

// The cursor is the id of the last row, where the list is in the order of ids, or the number of rows so far.
Response list(const ApiCall& call) {
  auto query = query_of(call);
  const bool by_id = catalog::list_of(query.view).knows("before");
  if (by_id) query.by("before", call.parameter("cursor").value_or(catalog::kNewest));
  if (!by_id) query.offset = call.number("cursor", 0);
  auto items = array_of(catalog::list_json(call.connection, query));
  for (auto& item : items)
    hide_age(item);
  const auto end = query.offset + static_cast<std::int64_t>(items.size());
  const bool full = end - query.offset == query.limit, from_start = !by_id || !call.parameter("cursor");
  auto answer = page(items, !full ? Json(nullptr) : by_id ? items.back()["id"] : Json(end));
  answer["total"] = full || !from_start ? Json(nullptr) : Json(end);
  return json_response(answer);
}

// A row of the list that the path names.
Response one_of(const ApiCall& call) {
  constexpr std::size_t kName = 3; // behind "v1/"
  const std::string what(
      catalog::list_of(call.operation.path.substr(kName, call.operation.path.rfind('/') - kName)).one);
  if (!base::is_uuid(call.id)) return not_found(what);
  const auto rows = catalog::list_json(call.connection, catalog::ListQuery{what, 1}.by(what, call.id));
  if (rows.empty()) return not_found(what);
  auto item = Json::parse(rows[0]);
  hide_age(item);
  return json_response(item);
}

Response shelf_pages(const ApiCall& call) {
  const auto id = store::find(call.connection, call.id, store::FindAs::shelf).id;
  const auto limit = call.number("limit", kUsualLimit);
  const auto rows = store::call(call.connection, "shelf_entries", id, call.parameter("order").value_or("shelf"),
                                call.parameter("cursor"), limit);
  const bool full = static_cast<int>(rows.size()) == limit;
  return json_response(page(array_of(rows.column("json")), full ? Json(rows[rows.size() - 1].text("cursor")) : Json()));
}

Response status(const ApiCall& call) { return json_response(store::status_json(call.connection)); }

Response why(const ApiCall& call) {
  const auto answer = store::why(call.connection, *call.parameter("of"));
  const auto facts = Json::parse(answer.facts.empty() ? "{}" : answer.facts);
  if (answer.kind != "nothing")
    return json_response({{"kind", answer.kind}, {"id", answer.id}, {"reason", answer.reason}, {"facts", facts}});
  auto response = problem(404, "not_found", answer.reason);
  auto json = Json::parse(response.body);
  json["facts"] = facts; // what it may mean
  response.body = base::json_text(json) + "\n";
  return response;
}

Response find(const ApiCall& call) {
  const auto as = call.parameter("as").value_or("only"); // one of these: its field says so
  const auto at = std::find(store::kFindAs.begin(), store::kFindAs.end(), as) - store::kFindAs.begin();
  const auto found = store::find(call.connection, *call.parameter("of"), static_cast<store::FindAs>(at));
  return json_response({{"kind", found.kind},
                        {"id", found.id},
                        {"crawl_id", found.crawl_id.empty() ? Json(nullptr) : Json(found.crawl_id)}});
}

Response search(const ApiCall& call) {
  const auto query = catalog::search_query(call.parameters);
  const auto hits = store::search(call.connection, query);
  auto items = Json::array();
  for (const auto& hit : hits)
    items.push_back(Json::parse(hit.json));
  const bool full = static_cast<int>(hits.size()) == query.limit;
  return json_response(page(std::move(items), full ? Json(hits.back().cursor) : Json(nullptr)));
}

Response events(const ApiCall& call) {
  const auto after = call.number("after", 0);
  const auto crawl = call.parameter("crawl").value_or("");
  auto items = array_of(
      call.parameters.contains("last")
          ? store::last_events(call.connection, call.number("last", 0), crawl)
          : store::events_after(call.connection, after, call.number("limit", kUsualLimit), crawl).column("json"));
  const auto cursor = items.empty() ? Json(after) : items.back()["id"];
  return json_response(page(std::move(items), cursor));
}

std::string progress_of(pg::Connection& connection, const std::string& id) {
  const auto crawl = store::find_crawl(connection, id);
  if (!crawl) return "null";
  return base::json_text(Json{{"id", id},
                              {"status", crawl->status},
                              {"outcome", crawl->outcome.empty() ? Json(nullptr) : Json(crawl->outcome)},
                              {"total", crawl->total},
                              {"open", crawl->open},
                              {"succeeded", crawl->succeeded},
                              {"partial", crawl->partial},
                              {"failed", crawl->failed},
                              {"cancelled", crawl->cancelled},
                              {"bytes", crawl->bytes}});
}

Response watch_events(const ApiCall& call) {
  const auto crawl = call.parameter("crawl").value_or("");
  if (!crawl.empty() && !store::find_crawl(call.connection, crawl)) return not_found("crawl");
  std::optional<std::int64_t> after;
  if (call.parameters.contains("after")) after = call.number("after", 0);
  // A reconnecting browser sends its position.
  if (const auto last = base::parse_number<std::int64_t>(call.request.last_event_id); last && *last >= 0) after = last;
  Feed::Read read;
  if (!crawl.empty()) read = [crawl](pg::Connection& connection) { return progress_of(connection, crawl); };
  return event_stream(call.options.feed->watch_events(call.caller.name, crawl, after, "progress " + crawl, read));
}

// Paths are relative to the snapshot's directory.
Response files(const ApiCall& call) {
  if (!base::is_uuid(call.id)) return not_found("snapshot");
  const auto rows = catalog::list(call.connection, catalog::ListQuery{"snapshots", 1}.by("snapshot", call.id));
  if (rows.empty()) return not_found("snapshot");
  const auto directory = rows.one()["directory"].value_or("");
  auto items = Json::array();
  const auto add = [&](const std::string& path, Json file) {
    file["path"] = path;
    file["url"] = call.options.file_url ? Json(call.options.file_url(call.request, call.caller, directory + "/" + path))
                                        : Json(nullptr);
    items.push_back(std::move(file));
  };
  if (!directory.empty()) {
    for (const char* name : {"index.html", "index.jsonl", "manifest-sha256.txt"})
      add(name, Json::object());
    for (const auto result : store::results(call.connection, call.id)) {
      const auto listed = Json::parse(result.text("files_json"), nullptr, false);
      for (const auto& file : listed)
        if (file.is_object() && file.contains("path"))
          add(result.text("plugin") + "/" + file["path"].get<std::string>(), file);
    }
  }
  return json_response(page(std::move(items), nullptr));
}

Response text(const ApiCall& call) {
  std::optional<std::string> text;
  if (const auto id = target(call, "snapshot"))
    text = store::call(call.connection, "snapshot_text", *id).value().optional<std::string>();
  return text ? content("text/plain; charset=utf-8", *text) : not_found("text of a snapshot");
}

// Hands on what `holdfast export` writes, as it comes.
Response export_pages(const ApiCall& call) {
  const auto format = call.parameter("format").value_or("wacz");
  const auto of = call.parameter("of"), shelf = call.parameter("shelf");
  std::vector<std::string> options;
  for (const char* name : {"tag", "host", "since", "until"})
    if (const auto value = call.parameter(name)) options.push_back("--" + std::string(name) + "=" + *value);
  if (shelf) options.push_back("--shelf=" + store::find(call.connection, *shelf, store::FindAs::shelf).id);
  if (of) options.insert(options.end(), {"--", store::find(call.connection, *of).id});
  if (options.empty() || (of && shelf))
    throw base::Error(base::ErrorClass::usage, "an export takes of, shelf, tag, host, since or until; not of and shelf",
                      "GET /api/v1/export?of=ID");
  Response response;
  response.type = "application/zip";
  response.program = call.options.program;
  response.program.insert(response.program.end(), {"export", "--format=" + format, "--output=-"});
  response.program.insert(response.program.end(), options.begin(), options.end());
  return std::move(response)
      .with("Content-Disposition",
            std::string("attachment; filename=\"holdfast.") + (format == "files" ? "zip" : "wacz") + "\"")
      .with("Cache-Control", "private, no-store");
}

Response openapi(const ApiCall& call) { return content("application/json", openapi_document(call.connection)); }

// clang-format off
const ApiOperation kReadOperations[] = {
    {"GET", "openapi.json", "openapi", "This document", &openapi, "Document"},
    {"GET", "v1/status", "status", "Totals, and what runs", &status, "Status"},
    {"GET", "v1/search", "search", "Full-text search; best first", &search, "Found[]", catalog::search_fields()},
    {"GET", "v1/why", "why", "Why something is in its state", &why, "Why", kOfWhy},
    {"GET", "v1/find", "find", "What an id, a URL or a label names", &find, "Named", kOfFind},
    {"GET", "v1/events", "listEvents", "Changes of state, oldest first", &events, "Event[]", kOfEvents},
    {"GET", "v1/events/stream", "watchEvents",
     "Events as they come, as server-sent events of the type change; of a crawl, also its numbers (progress)",
     &watch_events, "", kOfStream, {}, 200, "text/event-stream"},
    {"GET", "v1/crawls/{id}", "crawl", "A crawl", &one_of, "Crawl"},
    {"GET", "v1/snapshots/{id}", "snapshot", "A snapshot", &one_of, "Snapshot"},
    {"GET", "v1/shelves/{id}", "shelf", "A shelf", &one_of, "Shelf"},
    {"GET", "v1/shelves/{id}/pages", "listShelf", "Pages of a shelf, in its order", &shelf_pages, "ShelfEntry[]",
     kOfShelf},
    {"GET", "v1/snapshots/{id}/files", "listFiles", "Files of a sealed snapshot, and where they are", &files,
     "File[]"},
    {"GET", "v1/snapshots/{id}/text", "readText", "Readable text of a snapshot, as the search has it", &text, "", {},
     {}, 200, "text/plain"},
    {"GET", "v1/export", "exportPages", "Pages as one file, as the command export writes it", &export_pages, "",
     kOfExport, {}, 200, "application/zip"},
};
// clang-format on

} // namespace

std::span<const ApiOperation> api_reads() {
  static std::deque<std::string> names;                // that do not move
  static std::deque<std::vector<ApiField>> parameters; // like these
  static const auto all = [] {
    std::vector<ApiOperation> made(std::begin(kReadOperations), std::end(kReadOperations));
    for (const auto& list : catalog::lists()) {
      if (list.name == "events") continue; // a program reads those in their order
      if (!list.for_guests) continue;
      auto& fields = parameters.emplace_back();
      for (const auto& [name, column] : list.filters) {
        auto field = catalog::filter_of(name).field;
        if (const auto values = catalog::values_of(list, name); !values.empty())
          field.schema = names.emplace_back(Json{{"type", "string"}, {"enum", values}}.dump());
        if (name != "before") fields.push_back(field);
      }
      fields.push_back({"cursor", list.knows("before") ? kId : kCount, "Continue behind the last page: its cursor"});
      fields.push_back(kMost);
      const auto& path = names.emplace_back("v1/" + std::string(list.name));
      auto& name = names.emplace_back("list" + std::string(list.name));
      name[4] = static_cast<char>(name[4] - 'a' + 'A');
      made.push_back(
          {"GET", path, name, list.summary, &serve::list, names.emplace_back(answer_name(list) + "[]"), fields});
    }
    return made;
  }();
  return all;
}

} // namespace holdfast::serve
