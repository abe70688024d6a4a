#pragma once
// One sign-in (sign_ins.hpp): its browser, and what passes between that and the view. Main thread only; shared by
// SignIns and its own coroutines.

#include "lib/process/launcher.hpp"
#include "lib/store/sign_in.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/session/session_directory.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::worker {

using View = boost::beast::ssl_stream<boost::beast::tcp_stream>; // the connection of a server

class SignIn : public std::enable_shared_from_this<SignIn> {
public:
  using Listen = std::function<store::SignInPlace()>; // makes way for views; throws Error
  SignIn(JobContext& context, store::SignIn asked, Listen listen);

  // The hook whose options the browser has; null: this worker has no browser.
  static const hooks::Hook* hook(const JobContext& context);
  const std::string& id() const { return asked_.id; }
  // Completes when nothing of it is left. Does not throw.
  awaitable<void> run();
  // Passes on what a view says, until it ends or a newer one takes its place. `said`: what it has said already.
  awaitable<void> show(std::shared_ptr<View> view, std::string said);
  void end(const std::string& why);

private:
  using Clock = std::chrono::steady_clock;

  awaitable<void> work();
  awaitable<void> start();
  awaitable<process::Exit> browser_ended();
  awaitable<void> pass_on();
  awaitable<bool> to_browser(std::string_view bytes);
  awaitable<void> keep();
  awaitable<void> say_good_bye();
  void end_at(Clock::time_point at, const std::string& why);

  JobContext& context_;
  const store::SignIn asked_;
  const Listen listen_;
  const Clock::time_point deadline_;
  SessionDirectory directory_;
  std::shared_ptr<HookNetwork> network_;
  std::unique_ptr<Route> route_;
  std::unique_ptr<process::Child> child_;
  asio::local::stream_protocol::acceptor door_; // of the browser
  asio::local::stream_protocol::socket browser_;
  std::shared_ptr<View> view_;                         // null: there is none
  std::pair<std::shared_ptr<View>, std::string> next_; // takes its place; what it has said
  asio::steady_timer limit_;
  bool ready_{false}, over_{false}, kept_{false}; // views may come; the browser has ended; its state is stored
  std::string why_;                               // it ends
};

} // namespace holdfast::worker
