#include "services/cli/context/presence.hpp"

#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/member/membership.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/call.hpp"

#include <spdlog/spdlog.h>

#include <exception>
#include <memory>

namespace holdfast::cli {

Presence::Presence(Context& context, const std::string& type, const std::string& what)
    : dsn_(context.dsn()), lease_(context.settings().duration("lease")),
      heartbeat_(context.settings().duration("heartbeat")),
      process_(member::describe_process(type, what, HOLDFAST_VERSION, 0, context.data_dir())) {
  process_.label =
      (type == "command" ? what : type) + " on " + process_.machine.hostname + " pid " + std::to_string(process_.pid);
  thread_ = std::thread(&Presence::keep, this);
}

Presence::~Presence() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    failed_ = std::uncaught_exceptions() > 0;
  }
  changed_.notify_one();
  thread_.join();
}

void Presence::set_standby(bool standby) {
  const std::lock_guard lock(mutex_);
  if (standby == standby_) return;
  standby_ = standby;
  changed_.notify_one();
}

void Presence::keep() {
  pg::ConnectionOptions options;
  options.application_name = process_.label;
  std::unique_ptr<pg::Connection> connection;
  std::unique_lock lock(mutex_);
  bool shown = false; // what ends at once is shown too
  for (bool told = true; told;) {
    const bool standby = process_.standby = standby_, ended = ended_;
    lock.unlock();
    try {
      if (!connection) connection = std::make_unique<pg::Connection>(dsn_, options);
      if (!ended || !shown) store::process_present(*connection, process_, lease_);
      shown = true;
      if (ended) store::call(*connection, "process_left", process_.id, failed_ ? "failed" : "done");
    } catch (const base::Error& error) {
      spdlog::debug("{} is not shown: {}", process_.label, error.what());
      // After a lapse it joins again, as another incarnation. Permission errors and bugs are not retried.
      if (error.error_class() == base::ErrorClass::lease_lost) process_.id = base::new_uuid();
      told = error.error_class() == base::ErrorClass::lease_lost ||
             error.error_class() == base::ErrorClass::temporary || error.error_class() == base::ErrorClass::unavailable;
      connection.reset();
    }
    lock.lock();
    if (ended) break;
    changed_.wait_for(lock, heartbeat_, [&] { return ended_ || standby_ != standby; });
  }
}

} // namespace holdfast::cli
