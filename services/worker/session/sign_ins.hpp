#pragma once
// Sign-ins of users to sites by hand. For each, a worker runs a browser (services/capture/browser/sign_in.hpp) as it
// runs that of a crawl: in the sandbox, with the user and the network of hooks. It passes on the bytes of a server
// (services/serve/view_relay.hpp) unread. The server connects to a port that is open meanwhile, at worker.address, and
// shows a key that is valid once.
//
// A sign-in ends with its state kept, at its deadline, a minute after its view was closed, when it is cancelled, and
// with its worker. Main thread only; owned by Worker, which waits for its coroutines.

#include "lib/store/persona.hpp"
#include "services/worker/hook/hook_services.hpp"
#include "services/worker/session/sign_in.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace holdfast::worker {

class SignIns {
public:
  using Spawn = std::function<void(awaitable<void>)>;
  SignIns(HookServices& context, Spawn spawn);

  // "sign_in": one waits for a worker; "sign_in_over ID": it was cancelled.
  void heed(const std::string& notification);
  // Takes waiting sign-ins, if there is a free slot.
  void look();
  // Ends all, and takes no more.
  void stop(const std::string& reason);

private:
  awaitable<void> take();
  awaitable<void> run(std::shared_ptr<SignIn> one);
  store::SignInAddress listen(const std::string& seen_at);
  awaitable<void> take_views();
  awaitable<void> greet(asio::ip::tcp::socket socket);

  HookServices& context_;
  const Spawn spawn_;
  std::map<std::string, std::shared_ptr<SignIn>> running_; // by id
  asio::ip::tcp::acceptor views_;                          // of all of them: one port is enough
  asio::ssl::context tls_{asio::ssl::context::tls_server};
  std::string certificate_hash_;
  int strangers_{0}; // connections that have not shown a key yet
  bool stopped_{false}, taking_{false}, again_{false};
};

} // namespace holdfast::worker
