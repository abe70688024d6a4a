#include "services/serve/worker_endpoint.hpp"

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/store/live.hpp"
#include "services/serve/connections.hpp"
#include "services/serve/http_server.hpp"
#include "services/serve/metrics.hpp"

#include <spdlog/spdlog.h>

#include <unistd.h>

#include <chrono>

namespace holdfast::serve {

namespace {

Response unkept(Response response) {
  response.headers = {{"Cache-Control", "no-store"}};
  return response;
}

// Returns metrics of the worker that this process runs, from the database; empty if its lease has expired.
std::vector<base::Sample> worker_samples(pg::Connection& connection) {
  return store::worker_metrics(connection, base::own_host_name(), ::getpid());
}

} // namespace

struct WorkerEndpoint::Impl {
  Impl(const std::string& listen, const std::string& dsn)
      : connections(dsn, std::chrono::seconds(3)), // below what a scraper waits
        server(parse_endpoint(listen, "http.listen"), {},
               [this](const Request& request) { return unkept(answer(request)); }) {}

  Response answer(const Request& request) {
    if (request.path == "/healthz") return plain(200, "ok\n");
    if (request.path != "/readyz" && request.path != "/metrics") return plain(404, "/healthz, /readyz or /metrics\n");
    std::vector<base::Sample> samples;
    std::string problem;
    try {
      samples = connections.with([](pg::Connection& connection) { return worker_samples(connection); });
      if (samples.empty()) problem = "this worker is not counted on: its lease does not hold";
    } catch (const base::Error& error) {
      problem = "the database does not answer"; // the client may be anybody
      spdlog::debug("{}: {}", request.path, error.what());
    }
    if (request.path == "/readyz") return problem.empty() ? plain(200, "ok\n") : plain(503, problem + "\n");
    // The counters of the process are reported also when the database is unreachable.
    const std::string up = "holdfast_worker_ready";
    samples.insert(samples.begin(), {up,
                                     up,
                                     "gauge",
                                     "Whether this worker is counted on: the database answers and its lease holds.",
                                     {},
                                     problem.empty() ? 1.0 : 0.0});
    const auto own = process_samples();
    samples.insert(samples.end(), own.begin(), own.end());
    return content(kPrometheusType, prometheus_text(samples));
  }

  Connections connections;
  HttpServer server; // last: its threads end first
};

WorkerEndpoint::WorkerEndpoint(const std::string& listen, const std::string& dsn)
    : impl_(std::make_unique<Impl>(listen, dsn)) {}
WorkerEndpoint::~WorkerEndpoint() = default;
std::uint16_t WorkerEndpoint::port() const noexcept { return impl_->server.port(); }

} // namespace holdfast::serve
