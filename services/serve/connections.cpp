#include "services/serve/connections.hpp"

#include <algorithm>

namespace holdfast::serve {

namespace {

constexpr std::size_t kKept = 8;

} // namespace

std::unique_ptr<pg::Connection> Connections::take(bool fresh) {
  if (!fresh) {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  pg::ConnectionOptions options;
  options.application_name = "holdfast serve";
  options.read_only = read_only_;
  options.statement_timeout = timeout_;
  options.connect_timeout = std::min(options.connect_timeout, timeout_);
  options.answer_timeout = timeout_ + std::chrono::seconds(1);
  return std::make_unique<pg::Connection>(dsn_, options);
}

void Connections::give_back(std::unique_ptr<pg::Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (!connection->broken() && idle_.size() < kKept) idle_.push_back(std::move(connection));
}

} // namespace holdfast::serve
