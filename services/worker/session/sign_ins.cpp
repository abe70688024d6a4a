#include "services/worker/session/sign_ins.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/call.hpp"
#include "lib/store/persona.hpp"
#include "services/worker/hook/capabilities.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/prepare_hook.hpp"
#include "services/worker/hook/try_browser.hpp"
#include "services/worker/session/session_directory.hpp"
#include "services/worker/session/session_persona.hpp"
#include "services/worker/turn/failure.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl.hpp>
#include <nlohmann/json.hpp>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

namespace holdfast::worker {

namespace {

using asio::ip::tcp;
using View = boost::beast::ssl_stream<boost::beast::tcp_stream>; // the connection of a server

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable); // an error is a value

constexpr std::size_t kMostSignIns = 2; // of a worker at once: each is a browser
constexpr std::chrono::seconds kGreeting{5};
constexpr std::chrono::milliseconds kPause{100}; // where there are no more descriptors
constexpr int kMostStrangers = 16;
constexpr long kCentury = 100 * 365 * 24L * 60 * 60; // longer than a worker

constexpr std::chrono::seconds kStart{60};  // of the browser, on a machine that is busy
constexpr std::chrono::seconds kAlone{60};  // without a view: it may be opened again meanwhile
constexpr std::chrono::seconds kGoodBye{5}; // for the last messages
constexpr std::chrono::seconds kLeaveIt{1}; // for the browser to end by itself
constexpr std::size_t kPassed = 1 << 16;
constexpr std::size_t kLargestState = 64u << 20;

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

// The hook whose options the browser has; null: this worker has no browser.
const hooks::Hook* browser_hook(const HookServices& context) {
  const auto hooks = context.options.plugin_set->hooks_for(hooks::Event::crawl_setup, {std::string(kBrowserPlugin)});
  return hooks.empty() ? nullptr : hooks.front();
}

void close(View& view) {
  boost::system::error_code ignored;
  boost::beast::get_lowest_layer(view).socket().close(ignored);
}

} // namespace

// Shared by SignIns and its own coroutines. In this file, which is long therefore: it is of use to SignIns alone.
class SignIns::SignIn : public std::enable_shared_from_this<SignIn> {
public:
  SignIn(SignIns& all, store::SignIn asked)
      : all_(all), context_(all.context_), asked_(std::move(asked)), deadline_(Clock::now() + asked_.left),
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

  SignIns& all_;
  HookServices& context_;
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

void SignIns::SignIn::end(const std::string& why) {
  if (why_.empty()) why_ = why;
  if (child_) child_->terminate(kLeaveIt);
}

// Replaces the limit before.
void SignIns::SignIn::end_at(Clock::time_point at, const std::string& why) {
  limit_.expires_at(std::min(at, deadline_));
  limit_.async_wait([self = shared_from_this(), why](const boost::system::error_code& error) {
    if (!error) self->end(why);
  });
}

awaitable<void> SignIns::SignIn::run() {
  spdlog::info("sign-in to persona {} ({}) by {}", asked_.persona, asked_.id, asked_.asked_by);
  try {
    co_await work();
  } catch (const Failure& failure) { // its persona was removed, or cannot be decrypted
    end(failure.reason);
  } catch (const std::exception& error) {
    end(error.what());
  }
  limit_.cancel();
  // A user without a view yet reads the reason on the page.
  const auto problem = ready_ ? "" : why_;
  try {
    co_await context_.retry.repeat([&](pg::Connection& connection) {
      store::call(connection, "sign_in_end", context_.worker_id, asked_.id, problem);
    });
  } catch (const base::Error& error) { // it ends in the database with its deadline
    spdlog::debug("sign-in {} is not recorded as ended: {}", asked_.id, error.what());
  }
  co_await say_good_bye();
  route_.reset();
  network_.reset();
  co_await directory_.remove();
  spdlog::log(ready_ ? spdlog::level::info : spdlog::level::warn, "the sign-in to persona {} has ended: {}",
              asked_.persona, kept_ ? "its state is kept" : why_);
}

awaitable<void> SignIns::SignIn::work() {
  using namespace asio::experimental::awaitable_operators;
  co_await start();
  end_at(Clock::now() + kStart, "its browser did not start in time");
  const auto exit = co_await (browser_ended() && pass_on());
  limit_.cancel();
  if (!why_.empty()) co_return;
  if (exit.clean()) co_return co_await keep();
  const auto words = last_line(directory_.path() / "stderr");
  end(words.empty() ? "its browser ended" : words);
}

// Starts the browser, with a socket as its input, for both directions.
awaitable<void> SignIns::SignIn::start() {
  const auto* const hook = browser_hook(context_);
  co_await directory_.make();
  network_ = context_.networks.enter();
  const auto url = base::parse_url(asked_.url);
  route_ = context_.networks.route(network_, {url.host, url.port}, 0);
  auto hook_context = machine_context(context_);
  directory_.describe(hook_context);
  // The browser identifies itself like that of a crawl.
  const auto persona = co_await SessionPersona::open(context_, asked_.persona);
  auto options = context_.options.hook_options;
  for (const auto& [name, value] : persona->options())
    options[name] = value;
  auto prepared = prepare_hook(context_, *hook, options, hook_context);
  if (!prepared.missing.empty()) throw base::Error(base::ErrorClass::unavailable, prepared.missing);
  auto& command = prepared.command;
  confine(context_, directory_.sandbox(), command, {directory_.path()}, directory_.temporary());
  if (route_) route_->apply(command);
  command.argv = {process::executable_directory() / "holdfast-capture", "sign-in", asked_.url};
  command.limits = prepared.limits.process;
  command.directory = directory_.path();
  command.stdout_path = directory_.path() / "stdout";
  command.stderr_path = directory_.path() / "stderr";
  asio::local::stream_protocol::socket input(context_.executor);
  asio::local::connect_pair(browser_, input);
  command.stdin_file = input.native_handle();
  give_to_hooks(directory_.sandbox(), directory_.path());
  if (!why_.empty()) throw base::Error(base::ErrorClass::unavailable, why_);
  child_ = context_.launcher.start(command);
}

awaitable<process::Exit> SignIns::SignIn::browser_ended() {
  const auto exit = co_await child_->wait();
  over_ = true;
  limit_.expires_after(kGoodBye); // a view that takes nothing would hold up pass_on()
  limit_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->view_) close(*self->view_);
  });
  co_return exit;
}

// Passes on the screen of the browser. Without a view it is dropped: a new view gets a full one.
awaitable<void> SignIns::SignIn::pass_on() {
  std::array<char, kPassed> piece;
  for (;;) {
    const auto [error, count] = co_await browser_.async_read_some(asio::buffer(piece), kAsTuple);
    if (error) co_return;
    if (!ready_ && why_.empty()) co_await let_views_in();
    const auto view = view_;
    if (view) co_await asio::async_write(*view, asio::buffer(piece.data(), count), kAsTuple);
  }
}

awaitable<void> SignIns::SignIn::let_views_in() {
  try {
    const auto place = all_.listen(asked_.seen_at);
    ready_ = co_await context_.retry.repeat([&](pg::Connection& connection) {
      return store::sign_in_ready(connection, context_.worker_id, asked_.id, place);
    });
    if (!ready_) end("it was cancelled");
  } catch (const base::Error& problem) {
    end(problem.what());
  }
  if (!over_ && !view_) end_at(Clock::now() + kAlone, "its view was closed");
}

awaitable<void> SignIns::SignIn::show(std::shared_ptr<View> view) {
  if (over_) co_return;
  next_ = std::move(view);
  if (view_) co_return close(*view_); // the loop of that view goes on with this one
  std::array<char, kPassed> piece;
  while (!over_ && next_) {
    const auto shown = view_ = std::exchange(next_, nullptr);
    end_at(deadline_, "its time was over");
    // Ends what the view before has left half sent.
    bool passed = co_await to_browser(std::string_view("\0", 1)), gone = false;
    while (passed) {
      const auto [error, count] = co_await shown->async_read_some(asio::buffer(piece), kAsTuple);
      gone = error.failed();
      passed = !gone && co_await to_browser(std::string_view(piece.data(), count));
    }
    if (over_ || !gone) co_return; // the browser ends: the view gets the last message
    view_.reset();
  }
  if (!over_) end_at(Clock::now() + kAlone, "its view was closed");
}

awaitable<bool> SignIns::SignIn::to_browser(std::string_view bytes) {
  const auto [error, count] = co_await asio::async_write(browser_, asio::buffer(bytes.data(), bytes.size()), kAsTuple);
  co_return !error;
}

// Puts what the browser had into the persona, whatever happens to that meanwhile.
awaitable<void> SignIns::SignIn::keep() {
  const auto file = directory_.path() / "browser/state.json";
  const auto text = co_await base::on_thread(context_.files, [&] { return base::tail_of(file, kLargestState + 1); });
  if (text.empty() || text.size() > kLargestState)
    throw base::Error(base::ErrorClass::refused,
                      text.empty() ? "the browser has left no state" : "the browser's state is larger than 64 MiB");
  std::vector<std::string> left_out;
  const auto fresh = persona::State::parse(text, "the browser's state", left_out);
  for (const auto& one : left_out)
    spdlog::warn("sign-in to persona {}: left out: {}", asked_.persona, one);
  co_await context_.retry.repeat([&](pg::Connection& connection) {
    return store::persona_keep(connection, context_.options.key_ring, {context_.worker_id, asked_.id}, asked_.persona,
                               [&](persona::State& state) {
                                 renew(state, fresh);
                                 return true;
                               });
  });
  kept_ = true;
}

// Says how it ended, if there is a view.
awaitable<void> SignIns::SignIn::say_good_bye() {
  const auto view = std::exchange(view_, nullptr);
  if (!view) co_return;
  boost::beast::get_lowest_layer(*view).expires_after(kGoodBye);
  const auto text = base::json_text(nlohmann::json{{"type", "over"}, {"kept", kept_}, {"text", why_}}) + '\0';
  co_await asio::async_write(*view, asio::buffer(text), kAsTuple);
  close(*view);
}

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
  if (stopped_ || browser_hook(context_) == nullptr) return;
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
      const auto taken = co_await context_.retry.repeat(
          [&](pg::Connection& connection) { return store::sign_in_take(connection, context_.worker_id); });
      if (!taken) break;
      const auto one = std::make_shared<SignIn>(*this, *taken);
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
  const auto id = co_await context_.retry.repeat(
      [&](pg::Connection& database) { return store::sign_in_check(database, context_.worker_id, key); });
  if (const auto found = running_.find(id); found != running_.end()) {
    const auto one = found->second;
    co_await one->show(std::move(view));
  }
}

} // namespace holdfast::worker
