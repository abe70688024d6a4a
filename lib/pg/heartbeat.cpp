#include "lib/pg/heartbeat.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/pg/hosts.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

namespace holdfast::pg {
namespace {

namespace asio = boost::asio;
using base::Error;
using base::ErrorClass;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Guards callbacks posted to the owner, which may run after the Heartbeat was destroyed.
struct Recipient {
  Heartbeat::Callbacks callbacks;
  std::atomic<bool> alive{true};
};

} // namespace

// All members below `run` belong to the heartbeat thread. Handlers of the io_context only raise flags; the loops check
// the flags after each handler, so no blocking call ever happens inside a handler.
struct Heartbeat::Impl {
  Impl(std::string dsn_in, ConnectionOptions options_in, std::string channel_in, milliseconds interval_in,
       asio::any_io_executor executor_in, Callbacks callbacks)
      : dsn(std::move(dsn_in)), options(std::move(options_in)), channel(std::move(channel_in)), interval(interval_in),
        executor(std::move(executor_in)), recipient(std::make_shared<Recipient>()) {
    if (!callbacks.heartbeat) throw Error(ErrorClass::bug, "a heartbeat needs a heartbeat");
    if (!callbacks.on_notify) callbacks.on_notify = [](const std::vector<std::string>&) {};
    if (!callbacks.on_lost) callbacks.on_lost = [](const std::string&) {};
    if (!callbacks.on_restored) callbacks.on_restored = [] {};
    if (!callbacks.on_fatal) callbacks.on_fatal = [](const std::exception_ptr&) {};
    recipient->callbacks = std::move(callbacks);
    try {
      thread = std::thread([this] { run(); });
      watch_hosts.emplace(dsn, options.application_name, [this] { heartbeat_soon(); });
    } catch (const std::system_error& error) {
      throw Error(ErrorClass::system, "cannot start the heartbeat thread: " + std::string(error.what()));
    }
  }

  ~Impl() {
    recipient->alive = false;
    watch_hosts.reset();
    asio::post(context, [this] { stopping = true; });
    thread.join();
  }

  void heartbeat_soon() {
    asio::post(context, [this] { requested = true; });
  }

  void run() {
    pthread_setname_np(pthread_self(), "hf-heartbeat");
    std::exception_ptr fatal;
    while (!stopping && !fatal)
      fatal = one_session();
    if (fatal) tell([fatal = std::move(fatal)](const Callbacks& owner) { owner.on_fatal(fatal); });
  }

  // Connects, heartbeats until the session is lost or the owner leaves, and pauses. Returns what must not be retried.
  std::exception_ptr one_session() {
    bool connected = false;
    try {
      Connection connection(dsn, options);
      connected = true;
      listen(connection);
      serve(connection);
    } catch (const Error& error) {
      if (connected ? error.error_class() != ErrorClass::temporary : !may_pass(error)) return std::current_exception();
      if (!std::exchange(lost, true)) {
        tell([text = std::string(error.what())](const Callbacks& owner) { owner.on_lost(text); });
      } else {
        spdlog::debug("heartbeat: {}", error.what());
      }
    } catch (...) {
      return std::current_exception();
    }
    if (!stopping) wait_for(backoff.next());
    return nullptr;
  }

  // The service has connected once before it made us, so any present obstacle (restart, failover, restore, a rotated
  // password) may pass. The owner's trust window decides how long is too long.
  static bool may_pass(const Error& error) {
    return error.error_class() == ErrorClass::temporary || error.error_class() == ErrorClass::unavailable ||
           error.error_class() == ErrorClass::configuration;
  }

  void listen(Connection& connection) {
    if (channel.empty()) return;
    try {
      connection.listen(channel);
    } catch (const Error& error) {
      if (connection.broken()) throw;
      spdlog::warn("no notifications, polling only: {}", error.what()); // a pooler, or a standby
    }
  }

  // Heartbeats and listens on one session until it is lost (an exception) or the owner leaves.
  void serve(Connection& connection) {
    asio::posix::stream_descriptor socket(context, duplicate(connection.descriptor()));
    asio::steady_timer timer(context);
    bool first = true;
    due = true;
    readable = false;
    watch(socket);
    while (!stopping) {
      if (due || requested) {
        due = requested = false;
        const auto sent = steady_clock::now();
        recipient->callbacks.heartbeat(connection);
        if (connection.broken()) throw Error(ErrorClass::temporary, "lost the database session during a heartbeat");
        arm(timer, sent + interval);
        if (std::exchange(first, false)) begin(connection);
        readable =
            true; // the heartbeat may have read notifications off the socket, which then does not become readable
      }
      if (std::exchange(readable, false)) {
        auto payloads = connection.notifications();
        if (!payloads.empty()) ring(std::move(payloads));
        watch(socket);
      }
      context.run_one();
    }
  }

  // After the first heartbeat, the session has proved good. Notifications sent before it listened are lost, so one
  // empty batch makes the owner check once.
  void begin(Connection& connection) {
    backoff.reset();
    if (std::exchange(lost, false)) tell([](const Callbacks& owner) { owner.on_restored(); });
    (void)connection.notifications();
    ring({});
  }

  void ring(std::vector<std::string> payloads) {
    tell([payloads = std::move(payloads)](const Callbacks& owner) { owner.on_notify(payloads); });
  }

  void watch(asio::posix::stream_descriptor& socket) {
    socket.cancel(); // at most one wait at a time
    socket.async_wait(asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& error) {
      if (!error) readable = true;
    });
  }

  void arm(asio::steady_timer& timer, steady_clock::time_point when) {
    timer.expires_at(when);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) due = true;
    });
  }

  void wait_for(milliseconds pause) {
    asio::steady_timer timer(context);
    due = false;
    arm(timer, steady_clock::now() + pause);
    while (!stopping && !due)
      context.run_one();
  }

  static int duplicate(int descriptor) {
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0 && errno == EBADF) // the library has closed it: the session did not live to its first heartbeat
      throw Error(ErrorClass::temporary, "lost the database session before its first heartbeat");
    if (copy < 0) throw Error(ErrorClass::system, "cannot watch the database socket: " + base::errno_text(errno));
    return copy;
  }

  template <class Message>
  void tell(Message message) {
    asio::post(executor, [to = recipient, message = std::move(message)]() mutable {
      if (to->alive) message(to->callbacks);
    });
  }

  const std::string dsn;
  const ConnectionOptions options;
  const std::string channel;
  const milliseconds interval;
  const asio::any_io_executor executor;
  const std::shared_ptr<Recipient> recipient;
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_running{context.get_executor()};
  base::Backoff backoff{milliseconds(50), milliseconds(5000)};
  // Flags, not locals of serve(): a handler may still be queued when serve() has been left by an exception.
  bool stopping{false};
  bool requested{false}; // heartbeat_now()
  bool due{false};       // the timer has fired
  bool readable{false};  // the socket has something
  bool lost{false};      // the loss of the session was reported
  std::thread thread;    // uses everything above
  std::optional<HostWatch> watch_hosts;
};

Heartbeat::Heartbeat(std::string dsn, ConnectionOptions options, std::string channel, milliseconds interval,
                     asio::any_io_executor executor, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(std::move(dsn), std::move(options), std::move(channel), interval,
                                   std::move(executor), std::move(callbacks))) {}

Heartbeat::~Heartbeat() = default;

void Heartbeat::heartbeat_now() { impl_->heartbeat_soon(); }

} // namespace holdfast::pg
