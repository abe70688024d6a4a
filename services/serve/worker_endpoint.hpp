#pragma once
// Endpoints of a worker for machines: /healthz (it lives), /readyz (its lease holds), /metrics (Prometheus). All three
// are open to every client that reaches the port: they hold numbers, and names of plugins and machines. Owned by the
// verb that runs the worker; threads and read-only database sessions of its own. The destructor ends both.

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::serve {

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

} // namespace holdfast::serve
