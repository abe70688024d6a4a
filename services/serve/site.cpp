#include "services/serve/site.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "lib/store/persona.hpp"
#include "services/serve/atom.hpp"
#include "services/serve/cdx.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/endpoint.hpp"
#include "services/serve/memento.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"
#include "services/serve/routes.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast::serve {

namespace {

// Returns files that need no token: they reveal nothing of the collection.
std::optional<Response> asset(const std::string& path) {
  if (path == "/healthz") return plain(200, "ok\n");
  if (path == "/style.css")
    return content("text/css; charset=utf-8", html::page_style().text() + std::string(embedded::site_css));
  if (path == "/live.js") return content("text/javascript; charset=utf-8", std::string(embedded::live_js));
  if (path == "/persona_view.js")
    return content("text/javascript; charset=utf-8", std::string(embedded::persona_view_js));
  if (path == "/manifest.json") return content("application/manifest+json", std::string(embedded::manifest_json));
  if (path == "/icon.svg" || path == "/favicon.ico") return content("image/svg+xml", std::string(embedded::icon_svg));
  return std::nullopt;
}

constexpr std::size_t kUnknownBody = 16 << 10; // of a client that is not known: a form with a token
constexpr std::size_t kLargestBody = 4 << 20, kLargestUpload = 90 << 20; // 64 MiB in base64
constexpr std::string_view kForm = "/do/";                               // before the name of an operation
constexpr std::string_view kView = "/view/";                             // before the id of a sign-in: its WebSocket
constexpr std::string_view kArchive = "/archive/";

// Returns where the browser goes after a form: to the crawl, page or sign-in that it has added, else back.
std::string page_after(const Response& answer, const std::string& back) {
  const auto told = nlohmann::json::parse(answer.body, nullptr, false);
  if (!told.is_object()) return back;
  for (const auto& [name, path] : {std::pair{"sign_in", "/persona/"}, {"snapshot", "/snapshot/"}, {"shelf", "/shelf/"}})
    if (told.contains(name)) return path + told[name].get<std::string>();
  const auto id = told.value("id", nlohmann::json());
  return id.is_string() && !told.contains("every") ? "/crawl/" + id.get<std::string>() : back;
}

} // namespace

Site::Site(SiteOptions options)
    : options_(std::move(options)), access_(options_.collection_id, options_.guest, options_.groups),
      connections_(options_.dsn), changing_(options_.dsn_to_change, std::chrono::seconds(10), false),
      feed_(options_.dsn), changes_(options_.changes_in_a_minute) {
  options_.api.feed = &feed_;
  if (options_.files != nullptr)
    options_.api.file_url = [this](const Request& request, const Caller& caller, const std::string& path) {
      return files_origin(request) + options_.files->href(path, caller.files_key);
    };
}

std::string Site::files_origin(const Request& request) const {
  if (!options_.files_origin.empty()) return options_.files_origin;
  return "http://" + request.host + ":" + std::to_string(options_.files_port);
}

namespace {

// ArchiveBox's extension checks whether a token is valid before it sends any with a header.
Request with_token_of_body(Request request) {
  if (request.path != "/api/v1/auth/check_api_token" || !request.authorization.empty()) return request;
  const auto body = nlohmann::json::parse(request.body, nullptr, false);
  if (body.is_object() && body.contains("token") && body["token"].is_string())
    request.authorization = "Bearer " + body["token"].get<std::string>();
  return request;
}

} // namespace

Response Site::answer(const Request& asked) {
  const auto request = with_token_of_body(asked);
  auto response = admit(request);
  const auto header = [&](const char* name, std::string value) {
    response.headers.emplace_back(name, std::move(value));
  };
  const bool pictures = options_.files != nullptr && response.type.starts_with("text/html");
  header("Content-Security-Policy",
         "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
         "base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; img-src 'self'" +
             (pictures ? " " + files_origin(request) + "; frame-src " + files_origin(request) : ""));
  // A page elsewhere may use the API with a token of its own, never with a cookie.
  if (request.path.starts_with(kApi) && request.user.empty() &&
      (request.method == "OPTIONS" || !request.authorization.empty()))
    header("Access-Control-Allow-Origin", "*");
  header("Access-Control-Expose-Headers", "ETag, Link, Location, Retry-After");
  header("Referrer-Policy", "same-origin"); // with none, forms would have no origin
  header("X-Frame-Options", "DENY");
  header("Cross-Origin-Opener-Policy", "same-origin");
  header("Cross-Origin-Resource-Policy", "same-origin");
  const bool kept = std::any_of(response.headers.begin(), response.headers.end(),
                                [](const auto& one) { return one.first == "Cache-Control"; });
  if (!kept) header("Cache-Control", "no-store");
  return response;
}

BodyLimit Site::body_limit(const Request& request) {
  const BodyLimit unknown{kUnknownBody, false};
  if (!request.changes() || request.path == "/sign-in" || request.path == "/sign-out") return unknown;
  if (!is_named(options_.hosts, request) || access_.wait(request).count() > 0) return unknown;
  const auto user = access_.user(request);
  const bool guest = !user && request.authorization.empty() && request.cookie.empty();
  if (guest && options_.guest != Role::operator_) return unknown;
  const auto known = [&](pg::Connection& connection) { return access_.caller(request, connection).may_change(); };
  if (!guest && !(user ? user->may_change() : connections_.with(known))) return unknown;
  const auto& path = request.path;
  const bool adds = request.method == "POST" &&
                    (path.starts_with("/do/add") || path == "/do/importPage" || path.starts_with("/api/v1/crawls") ||
                     path == "/api/v1/pages" || path.starts_with("/api/v1/schedules"));
  return {adds ? kLargestUpload : kLargestBody, true};
}

Response Site::admit(const Request& request) {
  // A name that leads here but is not ours: a page elsewhere that had its name changed to our address.
  if (!is_named(options_.hosts, request))
    return plain(403, "ask for this page by its address, or add this name to serve.hosts\n");
  if (request.method == "OPTIONS" && request.path.starts_with(kApi)) // a browser's preflight for another page
    return plain(204, "")
        .with("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
        .with("Access-Control-Allow-Headers",
              "Authorization, X-ArchiveBox-API-Key, Content-Type, Idempotency-Key, If-Match, If-None-Match")
        .with("Access-Control-Max-Age", "86400");
  // Browsers send cookies and Basic by themselves, whichever page asks; a proxy adds the user, and maybe a token.
  const bool by_itself = !request.user.empty() || !request.authorization.starts_with("Bearer ");
  if (request.changes() && by_itself && is_cross_site(request))
    return refusal(request.path, 403, "forbidden", "only pages of this server may send this");
  if (auto file = asset(request.path)) {
    if (request.path != "/healthz") tag_with_digest(request, *file);
    return std::move(*file);
  }
  if (request.path == "/readyz" && !request.changes()) { // for probes, which have no token
    connections_.with([](pg::Connection& connection) { return store::ping(connection), true; });
    return plain(200, "ok\n");
  }
  if (request.path == kApi && !request.changes()) return plain(200, "GET /api/openapi.json describes this API\n");
  if (request.path == "/sign-in" || request.path == "/sign-out") return sign_in(request);
  // Browsers send the cookie of a session with no request that another site begins, as a bookmarklet does; a page of
  // this server begins it again.
  if (request.path == "/add" && !request.changes() && request.cookie.empty() && is_cross_site(request)) {
    Response again;
    again.body = html::fill(embedded::again_html, {{"here", request.here()}}).text();
    return again;
  }
  if (const auto wait = access_.wait(request); wait.count() > 0) return too_many(request.path, wait);
  auto caller = connections_.with([&](pg::Connection& connection) { return access_.caller(request, connection); });
  if (!caller.user.empty() && caller.may_read() && options_.files != nullptr)
    caller.files_key = options_.files->key_of_user(caller.user);
  if (request.changes() && caller.may_change())
    if (const auto wait = changes_.take(caller.is_guest() ? request.peer : caller.by()); wait.count() > 0)
      return too_many(request.path, wait);
  if (request.path.starts_with(kApi))
    return answer_api(request, caller, options_.api,
                      [this](Role role, const auto& work) { return run_as(role, work); });
  if (caller.may_read()) return route(request, caller);
  if (!caller.user.empty()) return plain(403, caller.user + " is in no group that may read this collection\n");
  return sign_in_page(401, request.here(), "", "", has_accounts()).with("WWW-Authenticate", "Bearer");
}

Response Site::run_as(Role role, const std::function<Response(pg::Connection&)>& work) {
  if (role != Role::operator_) return connections_.with(work);
  if (options_.dsn_to_change.empty())
    return problem(403, "forbidden", "the database login of this server may only read",
                   "grant holdfast_operator to the login in database.url of holdfast serve");
  return changing_.with(work);
}

// The operation's name is in the path; "back" is where the browser goes then.
Response Site::form(const Request& request, const Caller& caller) {
  Form fields;
  if (!read_form(request, fields)) return plain(400, "not a form\n");
  std::string back = "/";
  for (const auto& [name, value] : fields)
    if (name == "back") back = value;
  const auto answer = answer_form(request.path.substr(kForm.size()), fields, request, caller, options_.api,
                                  [this](Role role, const auto& work) { return run_as(role, work); });
  const auto told = nlohmann::json::parse(answer.body, nullptr, false);
  if (answer.status >= 400)
    return problem_page(answer.status,
                        {"Request failed", told.value("detail", ""), told.value("hint", ""), local_path(back)}, request,
                        caller);
  for (const auto& [secret, heading] : {std::pair{"link", "Link made"}, std::pair{"token", "Token made"}})
    if (told.is_object() && told.contains(secret))
      return problem_page(
          200, {heading, told[secret], "Copy it now. It is not stored and cannot be shown again.", local_path(back)},
          request, caller);
  const auto next = page_after(answer, back);
  if (!told.is_object() || !told.contains("problems")) return see_other(next);
  const auto seeds = told.value("seeds", 0U);
  return problem_page(200,
                      {"Added " + html::counted(seeds, "page"), told["problems"], "The rest was added.", next,
                       "See what happens with it"},
                      request, caller);
}

std::string Site::site_of(const Request& request) const {
  return options_.url.empty() ? "http://" + request.authority : options_.url;
}

Response Site::route(const Request& request, const Caller& caller) {
  const auto& path = request.path;
  if (request.method == "POST" && path.starts_with(kForm)) return form(request, caller);
  if (request.method == "POST" && path == "/password") return change_password(request, caller);
  if (request.changes()) return plain(405, "only GET and HEAD\n").with("Allow", "GET, HEAD");
  if (path == "/live.json" || path == "/live") return live(request, caller);
  if (path.starts_with(kView)) return view(request, caller);
  if (path == "/metrics") {
    const auto samples = connections_.with([](pg::Connection& connection) { return store::metrics(connection); });
    return content(kPrometheusType, prometheus_text(samples));
  }
  if (path.starts_with(kArchive)) { // links of ArchiveBox's extension: /archive/https://example.org/?a=b
    const auto here = request.here();
    return see_other(search_href(path.substr(kArchive.size()) + here.substr(std::min(here.find('?'), here.size()))));
  }
  if (is_memento_path(path))
    return connections_.with(
        [&](pg::Connection& connection) { return memento(connection, request, site_of(request)); });
  if (path == "/atom")
    return connections_.with([&](pg::Connection& connection) {
      return atom(connection, request, options_.collection_id, site_of(request));
    });
  if (path == "/cdx")
    return connections_.with(
        [&](pg::Connection& connection) { return cdx(connection, request, options_.files, caller.files_key); });
  return page(request, caller);
}

// Opens the WebSocket of a sign-in. Other sites could open one with the user's cookie, for which a GET is enough.
Response Site::view(const Request& request, const Caller& caller) {
  const auto id = request.path.substr(kView.size());
  if (!caller.may_change() || options_.dsn_to_change.empty() || is_cross_site(request))
    return plain(403, "only an operator may sign in\n");
  if (!base::is_uuid(id)) return no_such("sign-in", request, caller);
  auto watch = feed_.watch_token(caller.name);
  if (!watch) return plain(503, "too many clients watch; try again later\n");
  auto response = plain(426, "this is a WebSocket\n");
  response.watch = std::move(watch);
  response.far_end = [this, id, by = caller.by()] {
    store::SignInAddress place;
    try {
      place = changing_.with([&](pg::Connection& connection) { return store::sign_in_open(connection, id, by); });
    } catch (const base::Error& error) {
      const bool refused = error.error_class() == base::ErrorClass::refused;
      place.problem = refused ? error.what() : outage(error);
    }
    return place;
  };
  return response;
}

std::optional<Page> Site::page_at(pg::Connection& connection, const Request& request, const Caller& caller,
                                  const Found& found) const {
  const Links links{options_.files, files_origin(request), caller.files_key, options_.replay};
  const auto before = request.parameter("before");
  const bool may_change = caller.may_change() && !options_.dsn_to_change.empty();
  return found.route->page({connection, links, found.id, request.parameter("q"),
                            base::is_uuid(before) ? std::optional(before) : std::nullopt, may_change, request.here(),
                            request.query, caller.by(), site_of(request), caller.account});
}

Response Site::page(const Request& request, const Caller& caller) {
  const auto found = find_route(request.path);
  if (found.route == nullptr) return no_such("page", request, caller);
  const auto page =
      connections_.with([&](pg::Connection& connection) { return page_at(connection, request, caller, found); });
  if (!page) return no_such(found.route->what, request, caller);
  Response response;
  response.body = layout(*found.route, *page, request.parameter("q"), request, caller);
  if (found.route->path == "/snapshot/")
    connections_.with([&](pg::Connection& connection) {
      add_memento(connection, request.path.substr(found.route->path.size()), site_of(request), response);
      return 0;
    });
  return response;
}

std::string Site::sections(pg::Connection& connection, const Request& shown, const Caller& caller) const {
  nlohmann::json sections = nlohmann::json::object(), digests = nlohmann::json::object();
  const auto found = find_route(shown.path);
  const bool live = found.route != nullptr && found.route->live;
  const auto page = live ? page_at(connection, shown, caller, found) : std::nullopt;
  for (const auto& section : page ? page->sections : std::vector<Section>()) {
    if (!section.live) continue;
    sections[section.id] = section.html.text();
    digests[section.id] = digest_of(section.html);
  }
  return base::json_text(nlohmann::json{{"sections", sections}, {"digests", digests}});
}

// Sends sections of the page whose address is the parameter "at": once, or on each change.
Response Site::live(const Request& request, const Caller& caller) {
  const auto at = request.parameter("at");
  Request shown;
  shown.host = request.host;
  if (!read_target(at, shown)) return plain(400, "at: which page?\n");
  if (request.path == "/live.json")
    return content("application/json",
                   connections_.with([&](pg::Connection& connection) { return sections(connection, shown, caller); }));
  // Addresses of files are those of the token.
  const std::string who = (caller.may_change() ? "operator " : "reader ") + caller.files_key;
  return event_stream(feed_.watch_state(
      caller.name, who + " " + request.host + " " + at, "sections",
      [this, shown, caller](pg::Connection& connection) { return sections(connection, shown, caller); }));
}

} // namespace holdfast::serve
