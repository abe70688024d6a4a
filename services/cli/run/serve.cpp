#include "services/cli/run/serve.hpp"

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/pg/conninfo.hpp"
#include "lib/process/hook_connection.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/token.hpp"
#include "services/cli/add/plan.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/run/run.hpp"
#include "services/cli/transfer/import_warc.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_server.hpp"
#include "services/serve/site.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

// Returns the role of requests without a token, by the setting serve.guest.
serve::Role guest_role(const std::string& setting, bool loopback) {
  if (setting == "automatic") return loopback ? serve::Role::reader : serve::Role::none;
  const auto role = serve::role_named(setting);
  if (role == serve::Role::operator_ && !loopback)
    throw base::Error(
        base::ErrorClass::configuration,
        "serve.guest: operator, but serve.listen can be reached from other machines: everyone could change "
        "the collection",
        "serve.guest: automatic, and holdfast token add NAME --role operator");
  return role;
}

// The replay tool runs scripts of archived pages: they must not share an origin with ours.
std::string replay_url(const std::string& given, const serve::Endpoint& endpoint, const serve::Endpoint& beside) {
  if (given.empty()) return "";
  const auto url = base::try_parse_url(given);
  const bool here = url && (url->host == "localhost" || url->host == "127.0.0.1" || url->host == endpoint.address);
  if (!url || (here && (url->port == endpoint.port || url->port == beside.port)))
    throw base::Error(base::ErrorClass::configuration,
                      "serve.replay: \"" + given + "\" is not the URL of a server with an origin of its own",
                      "serve.replay: http://127.0.0.1:8080/archive/");
  return url->text.ends_with('/') ? url->text : url->text + "/";
}

// Returns the origin of archived files for browsers; empty: the port of the files.
std::string files_origin(const std::string& given) {
  if (given.empty()) return "";
  const auto url = base::try_parse_url(given);
  if (!url || url->text.find_first_of("/?", url->scheme.size() + 3) != url->text.size() - 1)
    throw base::Error(base::ErrorClass::configuration,
                      "serve.files_url: \"" + given + "\" is not an origin (scheme, host and port)",
                      "serve.files_url: https://files.example");
  return url->text.substr(0, url->text.size() - 1);
}

// For sessions that act as a role of the database, whatever the login may do beyond that.
std::string dsn_as(pg::Connection& connection, const std::string& dsn, const std::string& role) {
  const auto name = store::role_of_requests(connection, role);
  return name.empty() ? dsn : pg::conninfo_with_role(dsn, name);
}

// Listens; with `standby`, as soon as no other process does. Returns false if it was stopped before.
bool listen(std::optional<serve::HttpServer>& server, Presence& presence, bool standby, const serve::Endpoint& endpoint,
            const serve::HttpOptions& options, const serve::Handler& handler) {
  constexpr std::chrono::milliseconds kLookAgain{500};
  for (bool waits = false;; waits = true) {
    try {
      server.emplace(endpoint, options, handler);
      return true;
    } catch (const base::Error& error) {
      if (!standby || error.error_class() != base::ErrorClass::unavailable) throw;
      if (!waits) spdlog::info("standing by: {}", error.what());
    }
    presence.set_standby(true);
    if (interrupted_within(kLookAgain)) return false;
  }
}

// Returns the address of archived files: a port of their own, so that a page in the archive cannot act as ours.
serve::Endpoint files_endpoint(const config::Settings& settings, const serve::Endpoint& pages) {
  if (const auto& given = settings.text("serve.files"); !given.empty())
    return serve::parse_endpoint(given, "serve.files");
  auto endpoint = pages;
  endpoint.port = pages.port == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(pages.port + 1);
  endpoint.setting = "serve.files";
  return endpoint;
}

} // namespace

std::string files_url(const config::Settings& settings) {
  const auto given = files_origin(settings.text("serve.files_url"));
  if (!given.empty()) return given;
  const auto endpoint = files_endpoint(settings, serve::parse_endpoint(settings.text("serve.listen"), "serve.listen"));
  const auto url = serve::url_of(endpoint, endpoint.port);
  return url.substr(0, url.size() - 1);
}

namespace {

// The host names of requests that are answered: without sign-in, a name that leads here, but is not ours, is a trick.
// Empty: all.
std::vector<std::string> own_hosts(serve::Role guest, const config::Settings& settings) {
  if (guest == serve::Role::none) return {};
  auto names = base::split(base::lower_case(settings.text("serve.hosts")), ", ");
  names.insert(names.end(), {"localhost", base::lower_case(base::own_host_name())});
  if (const auto files = base::try_parse_url(settings.text("serve.files_url"))) names.push_back(files->host);
  return names;
}

// Returns what plans the crawl of a request: as `holdfast add` with the same options, but it reads no files of this
// machine. Any thread; one at a time, because the context belongs to one thread. Loads the plugins first, on this
// thread.
std::function<store::PlannedCrawl(const nlohmann::json& body)> plan_of_requests(Context& context) {
  context.plugin_set();
  return [&context](const nlohmann::json& body) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    return plan_crawl(context, body,
                      read_request(body.value("urls", std::vector<std::string>()), body.value("text", ""),
                                   base::base64_decode(body.value("file", "")), reading_of(context, body)));
  };
}

// Without what depends on the ports.
serve::SiteOptions site_options(Context& context) {
  const auto& settings = context.settings();
  auto& connection = context.connection();
  serve::SiteOptions options;
  options.dsn = dsn_as(connection, context.dsn(), "reader");
  try {
    options.dsn_to_change = dsn_as(connection, context.dsn(), "operator");
  } catch (const base::Error& error) {
    spdlog::warn("{}; nothing can be changed", error.what());
  }
  options.api = {plan_of_requests(context), import_of_uploads(context), settings.boolean("urls.allow_private")};
  options.api.program = own_command(context);
  options.collection_id = store::collection_id(connection);
  options.files_origin = files_origin(settings.text("serve.files_url"));
  options.changes_in_a_minute = static_cast<int>(settings.integer("serve.changes_per_minute"));
  return options;
}

int serve(Context& context, bool standby) {
  const auto& settings = context.settings();
  const auto endpoint = serve::parse_endpoint(settings.text("serve.listen"), "serve.listen");
  const auto beside = files_endpoint(settings, endpoint);
  const auto guest = guest_role(settings.text("serve.guest"), endpoint.loopback && beside.loopback);
  context.connection(true); // in an empty place, this makes a collection
  interrupted();

  const auto hosts = own_hosts(guest, settings);
  auto options = site_options(context);
  const serve::Files files(context.archive_root(), options.collection_id, options.dsn, guest == serve::Role::none,
                           hosts);
  const serve::TrustedProxies proxies(settings.text("serve.trusted_proxies"), "serve.trusted_proxies");
  const auto timeout = settings.duration("serve.client_timeout");
  const auto user_header = settings.text("serve.user_header");
  if (!user_header.empty() && settings.text("serve.trusted_proxies").empty())
    throw base::Error(base::ErrorClass::configuration,
                      "serve.user_header is set, but serve.trusted_proxies names no proxy that may send it",
                      "serve.trusted_proxies: 127.0.0.1");
  Presence presence(context, "serve", settings.text("serve.listen"));
  std::optional<serve::HttpServer> file_server; // its threads use what is above
  // Hooks on this machine may not read as guests do, nor name a user.
  const std::function<bool(int)> refuses =
      guest == serve::Role::none && user_header.empty() ? std::function<bool(int)>() : process::comes_from_hook;
  const serve::HttpOptions of_files{2, timeout, proxies, "", "", {}, refuses};
  if (!listen(file_server, presence, standby, beside, of_files,
              [&files](const serve::Request& request) { return files.answer(request); }))
    return base::kExitSuccess;
  options.guest = guest;
  options.files = &files;
  options.files_port = file_server->port();
  options.groups = {base::split(settings.text("serve.operator_groups"), ","),
                    base::split(settings.text("serve.reader_groups"), ",")};
  options.hosts = hosts;
  options.url = settings.text("serve.url");
  while (options.url.ends_with('/'))
    options.url.pop_back();
  options.replay = replay_url(settings.text("serve.replay"), endpoint, beside);
  serve::Site site(std::move(options));
  std::optional<serve::HttpServer> server; // its threads use the site
  const serve::HttpOptions of_pages{3,
                                    timeout,
                                    proxies,
                                    user_header,
                                    settings.text("serve.groups_header"),
                                    [&site](const serve::Request& request) { return site.body_limit(request); },
                                    refuses};
  if (!listen(server, presence, standby, endpoint, of_pages,
              [&site](const serve::Request& request) { return site.answer(request); }))
    return base::kExitSuccess;
  presence.set_standby(false);
  std::cout << "Open " << serve::url_of(endpoint, server->port()) << "\n";
  if (guest != serve::Role::operator_) {
    if (const auto link = site.sign_in_link(); !link.empty())
      std::cout << "  sign in, once: " << serve::url_of(endpoint, server->port()) << link << "\n";
    std::cout << "  sign in with a token: holdfast token add NAME --role operator\n";
  }
  std::cout << std::flush;
  spdlog::info("pages on {}, archived files on {}", serve::url_of(endpoint, server->port()),
               serve::url_of(beside, file_server->port()));
  while (!interrupted_within(std::chrono::milliseconds(100)))
    ;
  return base::kExitSuccess;
}

} // namespace

Action serve_verb(CLI::App& command) {
  command.footer("Listens on serve.listen (127.0.0.1:8118), and on serve.files (the next port) for archived files. "
                 "On other\naddresses than this machine's a token is required: holdfast token.");
  const auto standby = std::make_shared<bool>(false);
  command.add_flag("--standby", *standby, "Wait while another process listens there, and take over when it ends");
  return [standby](Context& context) { return serve(context, *standby); };
}

} // namespace holdfast::cli
