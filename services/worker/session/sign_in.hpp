#pragma once
// One sign-in (sign_ins.hpp): its browser, the connection to it, and the view. Main thread only; shared by SignIns and
// its own coroutines.

#include "lib/process/launcher.hpp"
#include "lib/store/sign_in.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/session/session_directory.hpp"
#include "services/worker/session/sign_ins.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::worker {

class SignIn : public std::enable_shared_from_this<SignIn> {
public:
  SignIn(JobContext& context, store::SignIn asked, SignIns::Spawn spawn);

  // The hook whose options the browser has; null: this worker has no browser.
  static const hooks::Hook* hook(const JobContext& context);
  const std::string& id() const { return asked_.id; }
  // Completes when nothing of it is left. Does not throw.
  awaitable<void> run();
  void end(const std::string& why);

private:
  using Clock = std::chrono::steady_clock;
  using View = asio::ssl::stream<asio::ip::tcp::socket>;

  awaitable<void> work();
  awaitable<void> start();
  store::SignInPlace listen();
  awaitable<void> watch();
  awaitable<void> wait_for_end();
  awaitable<void> take_views();
  awaitable<void> serve(std::shared_ptr<View> view);
  awaitable<std::string> key_of(View& view, std::string& rest);
  awaitable<void> pass_on();
  awaitable<bool> to_browser(std::string_view bytes);
  awaitable<void> keep();
  awaitable<void> say_good_bye();
  void wake() { changed_.cancel(); }

  JobContext& context_;
  const store::SignIn asked_;
  const SignIns::Spawn spawn_;
  const Clock::time_point deadline_;
  SessionDirectory directory_;
  std::shared_ptr<HookNetwork> network_;
  std::unique_ptr<Route> route_;
  std::unique_ptr<process::Child> child_;
  asio::local::stream_protocol::acceptor door_; // of the browser
  asio::local::stream_protocol::socket browser_;
  asio::ip::tcp::acceptor views_;
  asio::ssl::context tls_{asio::ssl::context::tls_server};
  int strangers_{0};           // connections that have not shown a key yet
  std::shared_ptr<View> view_; // null: there is none
  Clock::time_point alone_since_{Clock::now()};
  asio::steady_timer changed_;
  process::Exit exit_;
  bool over_{false}, kept_{false}, passes_{false}; // over: the browser has ended; passes: pass_on() runs
  std::string why_;                                // it ends
};

} // namespace holdfast::worker
