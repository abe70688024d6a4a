#include "services/worker/session/sign_ins.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/store/call.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl.hpp>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>

#include <tuple>
#include <utility>

namespace holdfast::worker {

namespace {

using asio::ip::tcp;
using View = SignIn::View;

constexpr std::size_t kMostSignIns = 2; // of a worker at once: each is a browser
constexpr std::chrono::seconds kGreeting{5};
constexpr std::chrono::milliseconds kPause{100}; // where there are no more descriptors
constexpr int kMostStrangers = 16;
constexpr long kCentury = 100 * 365 * 24L * 60 * 60; // longer than a worker

// Makes a self-signed certificate: clients compare its SHA-256, which this returns.
std::string certify(asio::ssl::context& context) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
  std::string hash(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  if (!key || !made || !X509_gmtime_adj(X509_getm_notBefore(made.get()), 0) ||
      !X509_gmtime_adj(X509_getm_notAfter(made.get()), kCentury) || !X509_set_pubkey(made.get(), key.get()) ||
      !X509_sign(made.get(), key.get(), EVP_sha256()) ||
      !SSL_CTX_use_certificate(context.native_handle(), made.get()) ||
      !SSL_CTX_use_PrivateKey(context.native_handle(), key.get()) ||
      !SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION) ||
      !X509_digest(made.get(), EVP_sha256(), reinterpret_cast<unsigned char*>(hash.data()), &size))
    throw base::Error(base::ErrorClass::system, "no certificate can be made for its view");
  return base::hex(hash.substr(0, size));
}

} // namespace

SignIns::SignIns(HookServices& context, Spawn spawn)
    : context_(context), spawn_(std::move(spawn)), views_(context.executor) {}

void SignIns::heed(const std::string& notification) {
  constexpr std::string_view kOver = "sign_in_over ";
  if (notification == "sign_in") look();
  if (!notification.starts_with(kOver)) return;
  const auto found = running_.find(notification.substr(kOver.size()));
  if (found != running_.end()) found->second->end("it was cancelled");
}

void SignIns::look() {
  if (stopped_ || sign_in_hook(context_) == nullptr) return;
  again_ = true;
  if (taking_) return;
  taking_ = true;
  spawn_(take());
}

void SignIns::stop(const std::string& reason) {
  stopped_ = true;
  for (const auto& [id, one] : running_)
    one->end(reason);
}

awaitable<void> SignIns::take() {
  while (std::exchange(again_, false) && !stopped_ && running_.size() < kMostSignIns) {
    try {
      const auto taken = co_await context_.retry.repeat(&store::sign_in_take, context_.worker_id);
      if (!taken) break;
      const auto one =
          std::make_shared<SignIn>(context_, *taken, [this](const auto& seen_at) { return listen(seen_at); });
      running_[taken->id] = one;
      if (stopped_) one->end("its worker stops");
      spawn_(run(one));
      again_ = true;
    } catch (const base::Error& error) {
      spdlog::debug("no sign-in is taken: {}", error.what());
    }
  }
  taking_ = false;
}

awaitable<void> SignIns::run(std::shared_ptr<SignIn> one) {
  co_await one->run();
  running_.erase(one->id());
  boost::system::error_code ignored;
  if (running_.empty()) views_.close(ignored);
  look();
}

// Returns the address of this worker for servers. The database sees another address than they if a pooler stands
// between.
store::SignInAddress SignIns::listen(const std::string& seen_at) {
  const auto set = asio::ip::make_address(context_.options.address);
  const tcp::endpoint place(set.is_unspecified() ? asio::ip::make_address(seen_at) : set, context_.options.port);
  if (!views_.is_open()) {
    certificate_hash_ = certify(tls_);
    try {
      views_ = tcp::acceptor(context_.executor, place); // with SO_REUSEADDR
    } catch (const boost::system::system_error& error) {
      throw base::Error(base::ErrorClass::configuration, "its worker cannot listen at " + place.address().to_string() +
                                                             " port " + std::to_string(place.port()) + " (" +
                                                             error.code().message() + "): see worker.address there");
    }
    spawn_(take_views());
  }
  return {place.address().to_string(), certificate_hash_, views_.local_endpoint().port()};
}

awaitable<void> SignIns::take_views() {
  while (views_.is_open()) {
    auto [error, socket] = co_await views_.async_accept(kAsTuple);
    if (error) {
      asio::steady_timer pause(context_.executor, kPause);
      co_await pause.async_wait(kAsTuple);
    } else if (strangers_ < kMostStrangers) {
      ++strangers_;
      spawn_(greet(std::move(socket)));
    }
  }
}

// Reads the key of a sign-in, then passes the connection to its browser.
awaitable<void> SignIns::greet(tcp::socket socket) {
  auto view = std::make_shared<View>(boost::beast::tcp_stream(std::move(socket)), tls_);
  auto& connection = boost::beast::get_lowest_layer(*view);
  connection.expires_after(kGreeting);
  auto [error] = co_await view->async_handshake(View::server, kAsTuple);
  std::string key(store::SignInAddress::kKeySize, '\0');
  std::size_t length = 0;
  if (!error) std::tie(error, length) = co_await asio::async_read(*view, asio::buffer(key), kAsTuple);
  --strangers_;
  if (error) co_return;
  connection.expires_never();
  connection.socket().set_option(tcp::no_delay(true), error);
  const auto id = co_await context_.retry.repeat(&store::sign_in_check, context_.worker_id, key);
  if (const auto found = running_.find(id); found != running_.end()) {
    const auto one = found->second;
    co_await one->show(std::move(view));
  }
}

} // namespace holdfast::worker
