#include "services/worker/options.hpp"

#include <algorithm>

namespace holdfast::worker {

pg::ConnectionOptions connection_options(const std::string& label, const Options& worker) {
  using std::chrono::milliseconds;
  const auto window = worker.lease - worker.margin;
  pg::ConnectionOptions options;
  options.application_name = label;
  options.connect_timeout = std::clamp(window / 2, milliseconds(2000), milliseconds(5000));
  options.statement_timeout = std::clamp(window, milliseconds(2000), milliseconds(30000));
  options.lock_timeout = std::min(options.lock_timeout, options.statement_timeout);
  options.answer_timeout = options.statement_timeout + std::clamp(window / 4, milliseconds(500), milliseconds(5000));
  return options;
}

pg::ConnectionOptions heartbeat_options(const std::string& label, const Options& worker) {
  using std::chrono::milliseconds;
  auto options = connection_options(label + " heartbeat", worker);
  options.connect_timeout = std::clamp(worker.heartbeat, milliseconds(2000), milliseconds(5000));
  options.statement_timeout = std::clamp(worker.heartbeat, milliseconds(1000), milliseconds(30000));
  options.lock_timeout = std::min(options.lock_timeout, options.statement_timeout);
  options.answer_timeout = options.statement_timeout;
  return options;
}

} // namespace holdfast::worker
