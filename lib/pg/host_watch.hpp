#pragma once
// Looks at the other servers of a connection string that names several. A worker may hold sessions to an old primary
// that came back after a pause, and would not learn of the promotion while they work. Looking means to connect: the
// timeline that is seen there ends all sessions of this process with servers on earlier ones. One thread; the
// destructor joins it, after at most one attempt to connect. Without several hosts it does nothing.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::pg {

class HostWatch {
public:
  // `superseded` is called on the watch's thread when a newer timeline was found.
  HostWatch(const std::string& dsn, const std::string& label, std::function<void()> superseded);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::pg
