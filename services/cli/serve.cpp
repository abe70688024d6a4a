#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/url.hpp"
#include "lib/store/verify.hpp"
#include "services/cli/signals.hpp"
#include "services/cli/verbs.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_server.hpp"
#include "services/serve/site.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>

namespace holdfast::cli {

namespace {

std::string read_token(const std::filesystem::path& path) {
  if (path.empty()) return "";
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token) || token.size() < 16)
    throw base::Error(base::ErrorClass::configuration,
                      "serve.token_file: " + path.string() + " holds no token of at least 16 characters",
                      "head -c 24 /dev/urandom | base64 >" + path.string());
  while (!token.empty() && (token.back() == '\r' || token.back() == ' '))
    token.pop_back();
  return token;
}

std::string shown(const serve::Endpoint& endpoint, std::uint16_t port) {
  const bool six = endpoint.address.find(':') != std::string::npos;
  const std::string host = endpoint.address == "0.0.0.0" || endpoint.address == "::" ? "localhost"
                           : six                                                     ? "[" + endpoint.address + "]"
                                                                                     : endpoint.address;
  return "http://" + host + ":" + std::to_string(port) + "/";
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

int serve(Context& context) {
  const auto& settings = context.settings();
  const auto endpoint = serve::parse_endpoint(settings.text("serve.listen"), "serve.listen");
  serve::Endpoint beside = endpoint;
  beside.port = endpoint.port == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(endpoint.port + 1);
  if (!settings.text("serve.files").empty())
    beside = serve::parse_endpoint(settings.text("serve.files"), "serve.files");
  const auto token = read_token(settings.path("serve.token_file"));
  if (token.empty() && (!endpoint.loopback || !beside.loopback))
    throw base::Error(base::ErrorClass::configuration,
                      "serve.listen: " + settings.text("serve.listen") +
                          " can be reached from other machines, but there is no token",
                      "put one in a file, and its name into serve.token_file; or listen on 127.0.0.1");
  const auto collection = store::collection_id(context.connection()); // there is one, and its schema is ours
  told_to_end();

  std::vector<std::string> hosts;
  if (token.empty()) // a name that leads here, but is not ours, is a trick
    hosts = {"localhost",
             "127.0.0.1",
             "[::1]",
             endpoint.address,
             "[" + endpoint.address + "]",
             beside.address,
             "[" + beside.address + "]"};
  const serve::Files files(context.archive_root(), collection,
                           token.empty() ? "" : base::sha256_hex("files " + token).substr(0, 32), hosts);
  const serve::HttpServer file_server(beside, 2,
                                      [&files](const serve::Request& request) { return files.answer(request); });
  serve::SiteOptions options;
  options.dsn = context.dsn();
  options.version = HOLDFAST_VERSION;
  options.token = token;
  options.files = &files;
  options.files_port = file_server.port();
  options.hosts = hosts;
  options.replay = replay_url(settings.text("serve.replay"), endpoint, beside);
  serve::Site site(std::move(options));
  const serve::HttpServer server(endpoint, 3, [&site](const serve::Request& request) { return site.answer(request); });
  std::cout << "Open " << shown(endpoint, server.port()) << (token.empty() ? "" : "?token=...") << "\n"
            << std::flush;
  spdlog::info("pages on {}, archived files on {}", shown(endpoint, server.port()), shown(beside, file_server.port()));
  while (!told_to_end_within(std::chrono::milliseconds(100)))
    ;
  return base::kExitSuccess;
}

} // namespace

Action serve_verb(CLI::App& command) {
  command.footer("Listens on serve.listen (127.0.0.1:8118), and on serve.files (the next port) for archived files. "
                 "Beyond this machine a\n"
                 "token is required: serve.token_file.");
  return &serve;
}

} // namespace holdfast::cli
