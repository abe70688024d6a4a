#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/http/client.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/context/json_rows.hpp"
#include "services/cli/context/signals.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <map>

namespace holdfast::cli {

namespace {

using Json = nlohmann::ordered_json;
using base::ErrorClass;
using Parameters = std::vector<std::pair<std::string, std::string>>;

constexpr std::chrono::seconds kConnect{15}, kAnswer{300}, kMostWait{120};
constexpr std::int64_t kPage = 1000; // rows of an answer

bool is_loopback(const std::string& host) {
  const bool four = host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return four || host == "localhost" || host == "::1";
}

// The class of a problem is its title; of an answer that is none, its status decides.
ErrorClass class_of(int status, const std::string& title) {
  for (const auto one : {ErrorClass::usage, ErrorClass::refused, ErrorClass::unavailable, ErrorClass::bug,
                         ErrorClass::temporary, ErrorClass::schema_mismatch, ErrorClass::lease_lost})
    if (title == base::to_string(one)) return one;
  if (status == 401) return ErrorClass::configuration;
  if (status == 403 || status == 404 || status == 409 || status == 412) return ErrorClass::refused;
  if (status == 429 || status >= 500) return ErrorClass::temporary;
  return ErrorClass::unavailable; // what answers is no Holdfast
}

class Server : public Collection {
public:
  Server(const std::string& url, std::string token) : token_(std::move(token)) {
    const auto parsed = base::try_parse_url(url);
    if (!parsed || url.find_first_of("?#@") != std::string::npos)
      throw base::Error(ErrorClass::configuration, "server: \"" + url + "\" is not the URL of a server",
                        "HOLDFAST_SERVER=https://archive.example; a token goes into HOLDFAST_TOKEN_FILE");
    url_ = parsed->text;
    while (url_.ends_with('/'))
      url_.pop_back();
    loopback_ = is_loopback(parsed->host);
    if (parsed->scheme != "https" && !loopback_ && !token_.empty())
      throw base::Error(ErrorClass::configuration,
                        "server: " + url_ + " is not https, so that others could read the token on its way",
                        "HOLDFAST_SERVER=https://" + parsed->host + ", or a tunnel: ssh -L 8118:127.0.0.1:8118 " +
                            parsed->host + " and HOLDFAST_SERVER=http://127.0.0.1:8118");
  }

  pg::Result rows(const catalog::ListQuery& query) override {
    const auto items = items_of(query);
    return table(schema_of(query.view), items);
  }

  std::vector<std::string> lines(const catalog::ListQuery& query) override {
    std::vector<std::string> lines;
    for (const auto& item : items_of(query))
      lines.push_back(base::json_text(item));
    return lines;
  }

  Json run(const catalog::Operation& operation, const std::string& id, const std::string&,
           const nlohmann::json& body) override {
    auto path = std::string(operation.path);
    if (const auto at = path.find("{id}"); at != std::string::npos) path.replace(at, 4, base::percent_encode(id, ""));
    Json sent = Json::object();
    for (const auto& field : operation.body)
      if (const auto found = body.find(field.name); found != body.end()) sent[std::string(field.name)] = *found;
    return ask(operation.method, path, {}, sent.empty() ? "" : base::json_text(sent));
  }

  AddedCrawl add(const nlohmann::json& given, ReadSeeds read) override {
    const auto answer = post("v1/crawls", given, read);
    AddedCrawl added{base::text_at(answer, "id"), answer.value("seeds", std::size_t{0})};
    for (const auto& seed : answer.value("archived", Json::array()))
      added.archived.push_back(
          {base::text_at(seed, "url"), base::text_at(seed, "snapshot_id"), base::text_at(seed, "sealed_at"), ""});
    return added;
  }

  std::string add_schedule(const nlohmann::json& given, ReadSeeds read) override {
    return base::text_at(post("v1/schedules", given, read), "id");
  }

  store::Found find(const std::string& name, store::FindAs as) override {
    const auto found =
        get("v1/find", {{"of", name}, {"as", std::string(store::kFindAs[static_cast<std::size_t>(as)])}});
    return {base::text_at(found, "kind"), base::text_at(found, "id"), base::text_at(found, "crawl_id")};
  }

  pg::Result shelf_pages(const std::string& shelf, std::int64_t limit) override {
    std::vector<Column> columns;
    for (const char* const name : {"id", "status", "outcome", "title", "url"})
      columns.emplace_back(name, Json{{"type", "string"}});
    columns.emplace_back("json", Json{{"type", "string"}});
    std::vector<Json> items;
    for (auto& item : pages_of("v1/shelves/" + shelf + "/pages", {}, limit)) {
      item["json"] = base::json_text(item);
      items.push_back(std::move(item));
    }
    return table(columns, items);
  }

  store::Why why(const std::string& name) override {
    const auto answer = get("v1/why", {{"of", name}}, true);
    if (answer.contains("status"))
      return {"nothing", "", base::text_at(answer, "detail"), base::json_text(answer.value("facts", Json::object()))};
    return {base::text_at(answer, "kind"), base::text_at(answer, "id"), base::text_at(answer, "reason"),
            base::json_text(answer.value("facts", Json::object()))};
  }

  Json status() override { return get("v1/status"); }

  std::vector<Json> search(const nlohmann::json& given) override {
    Parameters parameters;
    for (const auto& [name, value] : given.items())
      parameters.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    return items_in(get("v1/search", parameters));
  }

  std::vector<Json> events_after(std::int64_t id, std::int64_t limit, const std::string& crawl) override {
    std::vector<Json> all;
    for (auto after = std::max<std::int64_t>(id, 0); static_cast<std::int64_t>(all.size()) < limit;) {
      auto some = events({{"after", std::to_string(after)}, {"limit", std::to_string(std::min(limit, kPage))}}, crawl);
      if (some.empty()) break;
      after = some.back().value("id", after);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  std::vector<Json> last_events(std::int64_t limit, const std::string& crawl) override {
    if (limit == 0) return {};
    return events({{"last", std::to_string(std::min(limit, kPage))}}, crawl);
  }

  base::Fd open(const std::string& snapshot, const std::string&, const std::string& file) override {
    constexpr std::string_view kKnown = "manifest-sha256.txt";
    auto& address = files_[snapshot];
    if (address.empty())
      for (const auto& one : items_in(get("v1/snapshots/" + snapshot + "/files")))
        if (base::text_at(one, "path") == kKnown) address = base::text_at(one, "url");
    if (!address.ends_with(kKnown)) throw base::Error(ErrorClass::unavailable, url_ + " serves no archived files");
    base::Fd opened(::memfd_create("holdfast", MFD_CLOEXEC));
    http::Request request = request_to(address.substr(0, address.size() - kKnown.size()) + base::percent_encode(file));
    request.sink = [&opened](std::string_view bytes) {
      if (!base::write_all(opened.get(), bytes)) throw base::Error(ErrorClass::system, base::errno_text(errno));
    };
    const auto response = client_.send(request); // without the token: its address has a key
    if (response.status == 404) return {};
    if (!response.good()) raise(response, request.url);
    ::lseek(opened.get(), 0, SEEK_SET); // it is read from its beginning
    return opened;
  }
  std::string page_of_crawl(const std::string& id) override { return url_ + "/crawl/" + id; }
  std::string page_of_snapshot(const std::string& id, const std::string&) override { return url_ + "/snapshot/" + id; }

private:
  static std::vector<Json> items_in(const Json& page) { return page.value("items", std::vector<Json>()); }

  http::Request request_to(std::string url) const {
    http::Request request;
    request.url = std::move(url);
    request.user_agent = "holdfast";
    request.connect_timeout = kConnect;
    request.timeout = kAnswer;
    request.use_proxy = !loopback_; // a proxy could read what is not encrypted
    return request;
  }

  // Sends a request, also again if the server asks to wait. `may_lack`: returns the problem if there is no such thing.
  Json ask(std::string_view method, const std::string& path, const Parameters& parameters, const std::string& body,
           bool may_lack = false) {
    std::string query;
    for (const auto& [name, value] : parameters)
      query += (query.empty() ? "?" : "&") + name + "=" + base::percent_encode(value, "");
    auto request = request_to(url_ + "/api/" + path + query);
    request.method = method;
    request.body = body;
    request.compressed = true;
    request.headers = {"Accept: application/json", "Expect:"};
    if (!body.empty()) request.headers.emplace_back("Content-Type: application/json");
    if (!token_.empty()) request.headers.push_back("Authorization: Bearer " + token_);
    if (method == "POST") request.headers.push_back("Idempotency-Key: " + base::new_uuid());
    std::chrono::seconds waited{0};
    for (;;) {
      const auto response = client_.send(request);
      const auto wait = response.retry_after.value_or(std::chrono::seconds(1));
      if (response.status == 429 && waited + wait <= kMostWait) {
        std::cerr << "holdfast: " << url_ << " limits requests; waiting " << wait.count() << " s\n";
        waited += wait;
        if (!interrupted_within(wait)) continue;
      }
      auto answer = base::strange_json<Json>(response.body);
      if (may_lack && response.status == 404 && base::text_at(answer, "title") == "not_found") return answer;
      if (!response.good() || !answer.is_object()) raise(response, url_);
      return answer;
    }
  }
  Json get(const std::string& path, const Parameters& parameters = {}, bool may_lack = false) {
    return ask("GET", path, parameters, "", may_lack);
  }

  [[noreturn]] void raise(const http::Response& response, const std::string& where) const {
    if (response.status == 0)
      throw base::Error(ErrorClass::unavailable, "no answer from " + where + ": " + response.error,
                        "is holdfast serve running there? HOLDFAST_SERVER names it");
    const auto problem = base::strange_json<Json>(response.body);
    const auto status = std::to_string(response.status);
    if (response.status == 401)
      throw base::Error(
          ErrorClass::configuration, where + (token_.empty() ? " wants a token" : " does not accept the token"),
          "HOLDFAST_TOKEN, or a file that HOLDFAST_TOKEN_FILE names; holdfast token add NAME there makes one");
    if (!problem.is_object() || !problem.contains("detail")) {
      if (response.good() || response.status < 500)
        throw base::Error(ErrorClass::unavailable,
                          where + " does not answer as holdfast serve does (status " + status + ")",
                          "HOLDFAST_SERVER is the URL of the page, for example https://archive.example");
      throw base::Error(ErrorClass::temporary, where + " cannot answer now (status " + status + ")");
    }
    auto detail = base::text_at(problem, "detail");
    if (const auto id = base::text_at(problem, "request_id"); response.status >= 500 && !id.empty())
      detail += " (request " + std::string(id) + ")";
    throw base::Error(class_of(response.status, base::text_at(problem, "title")), detail,
                      base::text_at(problem, "hint"));
  }

  // The columns of a list, in their order, from the server's document.
  std::vector<Column> schema_of(const std::string& list) {
    if (document_.is_null()) document_ = get("openapi.json");
    auto name = std::string(catalog::list_of(list).one);
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    const auto& schemas = document_["components"]["schemas"];
    std::vector<Column> columns;
    if (schemas.contains(name))
      for (const auto& [column, schema] : schemas[name]["properties"].items())
        columns.emplace_back(column, schema);
    return columns;
  }

  // All rows of a list that its query asks for, page by page.
  std::vector<Json> items_of(const catalog::ListQuery& query) {
    const auto& list = catalog::list_of(query.view);
    if (!list.for_guests)
      throw base::Error(ErrorClass::usage, std::string(list.name) + " are listed only where the database is",
                        "without HOLDFAST_SERVER");
    Parameters given(query.filters.begin(), query.filters.end());
    if (list.name == "events") { // of which a program reads the last ones in their order
      if (query.filter("snapshot"))
        throw base::Error(ErrorClass::usage, "events of one snapshot are listed only where the database is");
      auto events =
          query.limit > 0 ? last_events(query.limit, query.filter("crawl").value_or("")) : std::vector<Json>{};
      std::stable_sort(events.begin(), events.end(),
                       [](const auto& a, const auto& b) { return a.value("id", 0LL) > b.value("id", 0LL); });
      return events;
    }
    return pages_of("v1/" + std::string(list.name), given, query.limit);
  }

  std::vector<Json> pages_of(const std::string& path, const Parameters& given, std::int64_t limit) {
    std::vector<Json> items;
    Json cursor;
    while (static_cast<std::int64_t>(items.size()) < limit) {
      auto parameters = given;
      const auto left = limit - static_cast<std::int64_t>(items.size());
      parameters.emplace_back("limit", std::to_string(std::min(left, kPage)));
      if (!cursor.is_null())
        parameters.emplace_back("cursor", cursor.is_string() ? cursor.get<std::string>() : cursor.dump());
      auto page = get(path, parameters);
      for (auto& item : items_in(page)) {
        fill_age(item);
        items.push_back(std::move(item));
      }
      cursor = page.value("cursor", Json());
      if (cursor.is_null()) break;
    }
    return items;
  }

  std::vector<Json> events(Parameters parameters, const std::string& crawl) {
    if (!crawl.empty()) parameters.emplace_back("crawl", crawl);
    return items_in(get("v1/events", parameters));
  }

  // Sends what is to be archived as lines of JSON, which keep titles, tags and notes.
  Json post(const std::string& path, const nlohmann::json& given, const ReadSeeds& read) {
    Json body = given;
    body.erase("parser");
    body.erase("strict");
    std::string text;
    for (const auto& seed : read.seeds) {
      Json line{{"url", seed.url}};
      for (const auto& [name, value] :
           {std::pair{"title", seed.title}, {"time", seed.bookmarked_at}, {"notes", seed.notes}})
        if (!value.empty()) line[name] = value;
      if (!seed.tags.empty()) line["tags"] = seed.tags;
      text += base::json_text(line) + "\n";
    }
    body["text"] = text;
    return ask("POST", path, {}, base::json_text(body));
  }

  std::string url_, token_;
  bool loopback_{false};
  http::Client client_;
  Json document_;
  std::map<std::string, std::string> files_; // snapshot -> address of its manifest
};

} // namespace

std::unique_ptr<Collection> server_collection(const std::string& url, const std::string& token) {
  return std::make_unique<Server>(url, token);
}

} // namespace holdfast::cli
