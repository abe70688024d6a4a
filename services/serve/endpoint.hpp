#pragma once
// Addresses on which a server listens. Pure; any thread.

#include "lib/base/metrics.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::serve {

// "127.0.0.1:8118", "[::1]:80", ":8118" (every address), "8118" (loopback).
struct Endpoint {
  std::string address;
  std::uint16_t port{0};
  bool loopback{true};
  std::string setting; // that names it
};
// Throws Error(configuration) naming `setting`.
Endpoint parse_endpoint(const std::string& text, const std::string& setting);
// Returns its URL for a browser of this machine: "http://localhost:8118/".
std::string url_of(const Endpoint& endpoint, std::uint16_t port);

// Endpoints of a worker for machines: /healthz (it lives), /readyz (its lease holds), /metrics (Prometheus). All three
// are open to every client that reaches the port: they hold numbers, and names of plugins and machines. Owned by the
// verb that runs the worker; threads and read-only database sessions of its own. The destructor ends both.
class WorkerEndpoint {
public:
  // Throws Error(configuration) for an address that is none, Error(unavailable) if it is taken.
  WorkerEndpoint(const std::string& listen, const std::string& dsn);
  ~WorkerEndpoint();
  std::uint16_t port() const noexcept;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Numbers in the text format that Prometheus reads, and those of this process. Any thread.
inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

// Samples of one family must follow each other.
std::string prometheus_text(const std::vector<base::Sample>& samples);

// Returns metrics of this process: its memory, processor time and files, and its own counters.
std::vector<base::Sample> process_samples();

} // namespace holdfast::serve
