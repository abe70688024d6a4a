#include "services/serve/endpoint.hpp"

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/number.hpp"
#include "lib/store/live.hpp"
#include "services/serve/connections.hpp"
#include "services/serve/http_server.hpp"

#include <boost/asio/ip/address.hpp>
#include <spdlog/spdlog.h>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace holdfast::serve {

Endpoint parse_endpoint(const std::string& text, const std::string& setting) {
  const auto wrong = [&] {
    return base::Error(base::ErrorClass::configuration, setting + ": \"" + text + "\" is not a listen address",
                       "ADDRESS:PORT, [IPv6]:PORT, or PORT for this machine alone");
  };
  Endpoint endpoint;
  const auto colon = text.rfind(':');
  std::string address = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  if (address.empty() || address == "*") address = "0.0.0.0";
  if (address == "localhost") address = "127.0.0.1";
  const auto number = base::parse_number<std::uint16_t>(port);
  if (!number) throw wrong();
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(address, error);
  if (error) throw wrong();
  endpoint.address = parsed.to_string();
  endpoint.port = *number;
  endpoint.loopback = parsed.is_loopback();
  endpoint.setting = setting;
  return endpoint;
}

std::string url_of(const Endpoint& endpoint, std::uint16_t port) {
  const bool six = endpoint.address.find(':') != std::string::npos;
  const std::string host = endpoint.address == "0.0.0.0" || endpoint.address == "::" ? "localhost"
                           : six                                                     ? "[" + endpoint.address + "]"
                                                                                     : endpoint.address;
  return "http://" + host + ":" + std::to_string(port) + "/";
}

namespace {

// Returns metrics of the worker that this process runs, from the database; empty if its lease has expired.
std::vector<base::Sample> worker_samples(pg::Connection& connection) {
  return store::worker_metrics(connection, base::own_host_name(), ::getpid());
}

} // namespace

struct WorkerEndpoint::Impl {
  Impl(const std::string& listen, const std::string& dsn)
      : connections(dsn, std::chrono::seconds(3)), // below what a scraper waits
        server(parse_endpoint(listen, "http.listen"), {},
               [this](const Request& request) { return answer(request).with("Cache-Control", "no-store"); }) {}

  Response answer(const Request& request) {
    if (request.path == "/healthz") return plain(200, "ok\n");
    if (request.path != "/readyz" && request.path != "/metrics") return plain(404, "/healthz, /readyz or /metrics\n");
    std::vector<base::Sample> samples;
    std::string problem;
    try {
      samples = connections.with([](pg::Connection& connection) { return worker_samples(connection); });
      if (samples.empty()) problem = "this worker is not counted on: its lease does not hold";
      for (const auto& sample : samples)
        if (sample.name == "holdfast_worker_claiming" && sample.value == 0)
          problem = "this worker claims nothing: holdfast why has the reason";
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

namespace {

std::string escaped(const std::string& text, bool quotes) {
  std::string out;
  for (const char character : text)
    if (character == '\\')
      out += "\\\\";
    else if (character == '\n')
      out += "\\n";
    else if (character == '"' && quotes)
      out += "\\\"";
    else
      out += character;
  return out;
}

std::string sample_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

} // namespace

std::string prometheus_text(const std::vector<base::Sample>& samples) {
  std::string out, last;
  for (const auto& sample : samples) {
    if (sample.family != last) {
      out += "# HELP " + sample.family + " " + escaped(sample.help, false) + "\n# TYPE " + sample.family + " " +
             sample.type + "\n";
      last = sample.family;
    }
    out += sample.name;
    if (!sample.labels.empty()) {
      std::string inside;
      for (const auto& [name, value] : sample.labels)
        inside += (inside.empty() ? "" : ",") + name + "=\"" + escaped(value, true) + "\"";
      out += "{" + inside + "}";
    }
    out += " " + sample_text(sample.value) + "\n";
  }
  return out;
}

std::vector<base::Sample> process_samples() {
  std::vector<base::Sample> samples;
  const auto gauge = [&](const std::string& name, const std::string& type, const std::string& help, double value) {
    samples.push_back({name, name, type, help, {}, value});
  };
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  if (statm >> pages >> resident)
    gauge("process_resident_memory_bytes", "gauge", "Memory of this process itself, without its hooks.",
          resident * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    gauge("process_cpu_seconds_total", "counter", "Processor time of this process itself.",
          seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  std::error_code error;
  const auto files = std::filesystem::directory_iterator("/proc/self/fd", error);
  if (!error)
    gauge("process_open_fds", "gauge", "Files that this process holds open.",
          static_cast<double>(std::distance(begin(files), end(files))));
  const auto own = base::own_samples();
  samples.insert(samples.end(), own.begin(), own.end());
  return samples;
}

} // namespace holdfast::serve
