#pragma once
// A sign-in of a user to a site by hand: the browser of a worker, and what passes between that and the view of the
// user. Main thread only; owned by SignIns and by its own coroutines.

#include "lib/process/launcher.hpp"
#include "lib/store/persona.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/hook/hook_services.hpp"
#include "services/worker/session/session_directory.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::worker {

inline constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable); // an error is a value

// Returns the hook whose options the browser has; null: this worker has no browser.
const hooks::Hook* sign_in_hook(const HookServices& context);

class SignIn : public std::enable_shared_from_this<SignIn> {
public:
  using View = boost::beast::ssl_stream<boost::beast::tcp_stream>; // the connection of a server
  // Returns the address at which views reach this worker, which the database sees at `seen_at`. Throws.
  using Listen = std::function<store::SignInAddress(const std::string& seen_at)>;

  SignIn(HookServices& context, store::SignIn asked, Listen listen)
      : context_(context), listen_(std::move(listen)), asked_(std::move(asked)), deadline_(Clock::now() + asked_.left),
        directory_(context_, asked_.id, asked_.id, asked_.persona), browser_(context_.executor),
        limit_(context_.executor) {}

  // Completes when nothing of it is left. Does not throw.
  awaitable<void> run();
  // Passes on the messages of a view, until it ends or a newer one replaces it.
  awaitable<void> show(std::shared_ptr<View> view);
  void end(const std::string& why);
  const std::string& id() const { return asked_.id; }

private:
  using Clock = std::chrono::steady_clock;

  awaitable<void> work();
  awaitable<void> start();
  awaitable<process::Exit> browser_ended();
  awaitable<void> pass_on();
  awaitable<void> let_views_in();
  awaitable<bool> to_browser(std::string_view bytes);
  awaitable<void> keep();
  awaitable<void> say_good_bye();
  void end_at(Clock::time_point at, const std::string& why);

  HookServices& context_;
  const Listen listen_;
  const store::SignIn asked_;
  const Clock::time_point deadline_;
  SessionDirectory directory_;
  std::shared_ptr<HookNetwork> network_;
  std::unique_ptr<Route> route_;
  std::unique_ptr<process::Child> child_;
  asio::local::stream_protocol::socket browser_;
  std::shared_ptr<View> view_, next_; // null: there is none; the next one takes its place
  asio::steady_timer limit_;
  bool ready_{false}, over_{false}, kept_{false}; // views may come; the browser has ended; its state is stored
  std::string why_;                               // it ends
};

} // namespace holdfast::worker
