#include "services/worker/session/sign_in.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/on_thread.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text.hpp"
#include "lib/base/url.hpp"
#include "lib/store/persona.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/prepare_hook.hpp"
#include "services/worker/machine/browser_watch.hpp"
#include "services/worker/machine/capabilities.hpp"
#include "services/worker/session/session_persona.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>

#include <array>

namespace holdfast::worker {

namespace {

namespace local = asio::local;
using asio::ip::tcp;

constexpr std::chrono::seconds kStart{60};       // of the browser, on a machine that is busy
constexpr std::chrono::seconds kAlone{60};       // without a view: it may be opened again meanwhile
constexpr std::chrono::seconds kGoodBye{5};      // for the last message, and the key of a view
constexpr std::chrono::seconds kLeaveIt{1};      // for the browser to end by itself
constexpr std::chrono::milliseconds kPause{100}; // where there are no more descriptors
constexpr std::size_t kPassed = 1 << 16, kLongestKey = 200;
constexpr std::size_t kLargestState = 64u << 20;
constexpr int kMostStrangers = 16;
constexpr long kDay = 24L * 60 * 60; // longer than a sign-in

std::string with_nul(const nlohmann::json& message) { return base::json_text(message) + '\0'; }

// Makes a certificate that nothing vouches for: who connects knows its SHA-256, which this returns.
std::string certify(asio::ssl::context& context) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
  std::string hash(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  if (!key || !made || !X509_gmtime_adj(X509_getm_notBefore(made.get()), 0) ||
      !X509_gmtime_adj(X509_getm_notAfter(made.get()), kDay) || !X509_set_pubkey(made.get(), key.get()) ||
      !X509_sign(made.get(), key.get(), EVP_sha256()) ||
      !SSL_CTX_use_certificate(context.native_handle(), made.get()) ||
      !SSL_CTX_use_PrivateKey(context.native_handle(), key.get()) ||
      !SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION) ||
      !X509_digest(made.get(), EVP_sha256(), reinterpret_cast<unsigned char*>(hash.data()), &size))
    throw base::Error(base::ErrorClass::system, "no certificate can be made for its view");
  return base::hex(hash.substr(0, size));
}

// The last line that the browser has said before it ended.
std::string last_words(const std::filesystem::path& log) {
  const auto lines = base::split(base::tail_of(log, 4096), "\n");
  return lines.empty() ? "it ended" : lines.back();
}

} // namespace

SignIn::SignIn(JobContext& context, store::SignIn asked, SignIns::Spawn spawn)
    : context_(context), asked_(std::move(asked)), spawn_(std::move(spawn)), deadline_(Clock::now() + asked_.left),
      directory_(context, asked_.id, asked_.id, asked_.persona), door_(context.executor), browser_(context.executor),
      views_(context.executor), changed_(context.executor) {}

const hooks::Hook* SignIn::hook(const JobContext& context) {
  const auto hooks = context.options.catalog->hooks_for(hooks::Event::crawl_setup, {std::string(kBrowserPlugin)});
  return hooks.empty() ? nullptr : hooks.front();
}

void SignIn::end(const std::string& why) {
  if (why_.empty()) why_ = why;
  if (child_) child_->terminate(kLeaveIt);
  boost::system::error_code ignored;
  door_.close(ignored);
  wake();
}

awaitable<void> SignIn::run() {
  const auto self = shared_from_this();
  spdlog::info("a person signs in to persona {} ({}), for {}", asked_.persona, asked_.id, asked_.asked_by);
  try {
    co_await work();
  } catch (const std::exception& error) {
    end(error.what());
  }
  if (child_) co_await wait_for_end();
  try {
    co_await context_.retry.repeat(
        [this](pg::Connection& connection) { store::sign_in_end(connection, context_.worker_id, asked_.id); });
  } catch (const base::Error& error) { // it ends in the database with its deadline
    spdlog::debug("sign-in {} is not recorded as ended: {}", asked_.id, error.what());
  }
  co_await say_good_bye();
  route_.reset();
  network_.reset();
  co_await directory_.remove();
  spdlog::info("the sign-in to persona {} has ended: {}", asked_.persona, kept_ ? "its state is kept" : why_);
}

awaitable<void> SignIn::work() {
  co_await start();
  spawn_(watch());
  asio::steady_timer limit(context_.executor, kStart);
  limit.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->end("its browser did not start in time");
  });
  const auto [error] = co_await door_.async_accept(browser_, asio::as_tuple(asio::use_awaitable));
  limit.cancel();
  if (!error) {
    const auto place = listen();
    const auto first = with_nul({{"type", "open"}, {"url", asked_.url}});
    co_await to_browser(first);
    const bool asked_still = co_await context_.retry.repeat([&](pg::Connection& connection) {
      return store::sign_in_ready(connection, context_.worker_id, asked_.id, place);
    });
    if (!asked_still) end("it was cancelled");
    alone_since_ = Clock::now();
    passes_ = true;
    spawn_(take_views());
    spawn_(pass_on());
  }
  co_await wait_for_end();
  if (exit_.clean() && why_.empty())
    co_await keep();
  else if (why_.empty())
    why_ = last_words(directory_.path() / "stderr");
}

// Starts the browser, which connects to a socket in its directory.
awaitable<void> SignIn::start() {
  const auto* const hook = SignIn::hook(context_);
  co_await directory_.make();
  network_ = context_.networks.enter();
  const auto url = base::parse_url(asked_.url);
  route_ = context_.networks.route(network_, {url.host, url.port}, 0);
  auto hook_context = machine_context(context_);
  directory_.describe(hook_context);
  // The browser says of itself what that of a crawl will say.
  store::Claim claim;
  claim.persona = asked_.persona;
  const auto persona = co_await SessionPersona::open(context_, claim);
  auto options = context_.options.hook_options;
  for (const auto& [name, value] : persona->options())
    options[name] = value;
  auto prepared = prepare_hook(context_, *hook, options, hook_context);
  if (!prepared.missing.empty()) throw base::Error(base::ErrorClass::unavailable, prepared.missing);
  auto& command = prepared.command;
  confine(context_, directory_.sandbox(), command, {directory_.path()}, directory_.temporary());
  if (route_) route_->apply(command);
  command.argv = {process::executable_directory() / "holdfast-capture", "sign-in"};
  command.directory = directory_.path();
  command.stdout_path = directory_.path() / "stdout";
  command.stderr_path = directory_.path() / "stderr";
  const auto place = directory_.path() / "browser";
  std::filesystem::create_directories(place);
  // A path of a socket has 107 bytes at most.
  const base::Fd near(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const local::stream_protocol::endpoint socket("/proc/self/fd/" + std::to_string(near.get()) + "/view.sock");
  door_.open();
  door_.bind(socket);
  door_.listen();
  give_to_hooks(directory_.sandbox(), directory_.path());
  if (!why_.empty()) throw base::Error(base::ErrorClass::unavailable, why_);
  child_ = context_.launcher.start(command);
}

// Where servers find this worker. The database sees another address if a pooler stands between.
store::SignInPlace SignIn::listen() {
  const auto& address = context_.options.address.empty() ? asked_.seen_at : context_.options.address;
  boost::system::error_code error;
  const tcp::endpoint end(asio::ip::make_address(address, error), 0);
  if (!error) views_.open(end.protocol(), error);
  if (!error) views_.bind(end, error);
  if (!error) views_.listen(tcp::acceptor::max_listen_connections, error);
  if (error)
    throw base::Error(base::ErrorClass::configuration, "its worker cannot listen at " + address + " (" +
                                                           error.message() +
                                                           "): worker.address there must be an address of its machine");
  return {address, certify(tls_), views_.local_endpoint().port(), ""};
}

awaitable<void> SignIn::watch() {
  const auto self = shared_from_this();
  exit_ = co_await child_->wait();
  over_ = true;
  boost::system::error_code ignored;
  door_.close(ignored);
  views_.close(ignored);
  browser_.close(ignored);
  wake();
}

awaitable<void> SignIn::wait_for_end() {
  while (!over_) {
    const auto limit = view_ ? deadline_ : std::min(deadline_, alone_since_ + kAlone);
    if (why_.empty() && Clock::now() >= limit) end(limit == deadline_ ? "its time was over" : "its view was closed");
    changed_.expires_at(why_.empty() ? limit : Clock::time_point::max());
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

awaitable<void> SignIn::take_views() {
  const auto self = shared_from_this();
  while (views_.is_open()) {
    auto [error, socket] = co_await views_.async_accept(asio::as_tuple(asio::use_awaitable));
    if (error) {
      asio::steady_timer pause(context_.executor, kPause);
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    } else if (strangers_ < kMostStrangers) {
      ++strangers_;
      spawn_(serve(std::make_shared<View>(std::move(socket), tls_)));
    }
  }
}

// Encrypts the connection, and reads the text up to the first NUL; empty: there is none in time.
awaitable<std::string> SignIn::key_of(View& view, std::string& rest) {
  asio::steady_timer limit(context_.executor, kGoodBye);
  limit.async_wait([&view](const boost::system::error_code& error) {
    boost::system::error_code ignored;
    if (!error) view.lowest_layer().close(ignored);
  });
  auto [error] = co_await view.async_handshake(View::server, asio::as_tuple(asio::use_awaitable));
  std::size_t length = 0;
  if (!error)
    std::tie(error, length) = co_await asio::async_read_until(view, asio::dynamic_buffer(rest, kLongestKey), '\0',
                                                              asio::as_tuple(asio::use_awaitable));
  limit.cancel();
  if (error) co_return "";
  const auto key = rest.substr(0, length - 1);
  rest.erase(0, length);
  co_return key;
}

// The newest view takes the place of the one before.
awaitable<void> SignIn::serve(std::shared_ptr<View> view) {
  const auto self = shared_from_this();
  std::string rest;
  const auto key = base::sha256_hex(co_await key_of(*view, rest));
  --strangers_;
  const bool valid = co_await context_.retry.repeat(
      [&](pg::Connection& connection) { return store::sign_in_check(connection, context_.worker_id, asked_.id, key); });
  if (!valid) co_return;
  boost::system::error_code error;
  view->lowest_layer().set_option(tcp::no_delay(true), error);
  while (view_ && !over_) {
    view_->lowest_layer().close(error);
    changed_.cancel();
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (over_) co_return;
  view_ = view;
  wake();
  // Ends what the view before has left half sent.
  bool passed = co_await to_browser(std::string_view("\0", 1)) && co_await to_browser(rest), there = true;
  std::array<char, kPassed> piece;
  while (passed) {
    const auto [gone, count] = co_await view->async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
    there = !gone;
    passed = there && co_await to_browser(std::string_view(piece.data(), count));
  }
  if (over_ || there) co_return; // the browser ends: the view gets the last message
  view_.reset();
  alone_since_ = Clock::now();
  wake();
}

awaitable<bool> SignIn::to_browser(std::string_view bytes) {
  const auto [error, count] = co_await asio::async_write(browser_, asio::buffer(bytes.data(), bytes.size()),
                                                         asio::as_tuple(asio::use_awaitable));
  co_return !error;
}

// What the browser shows. Without a view it is lost: a new one has all shown again.
awaitable<void> SignIn::pass_on() {
  const auto self = shared_from_this();
  std::array<char, kPassed> piece;
  for (;;) {
    const auto [error, count] =
        co_await browser_.async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
    if (error) break;
    const auto view = view_;
    if (view) co_await asio::async_write(*view, asio::buffer(piece.data(), count), asio::as_tuple(asio::use_awaitable));
  }
  passes_ = false;
  wake();
}

// Puts what the browser had into the persona, whatever happens to that meanwhile.
awaitable<void> SignIn::keep() {
  const auto file = directory_.path() / "browser/state.json";
  const auto text = co_await base::on_thread(context_.files, [&] { return base::tail_of(file, kLargestState + 1); });
  if (text.empty() || text.size() > kLargestState)
    throw base::Error(base::ErrorClass::refused,
                      text.empty() ? "the browser has left no state" : "the browser's state is larger than 64 MiB");
  std::vector<std::string> left_out;
  const auto fresh = persona::State::parse(text, "the browser's state", left_out);
  for (const auto& one : left_out)
    spdlog::warn("sign-in to persona {}: left out: {}", asked_.persona, one);
  const auto& vault = context_.options.vault;
  for (std::optional<std::int64_t> saved; !saved;)
    saved = co_await context_.retry.repeat([&](pg::Connection& connection) {
      auto persona = store::persona_load(connection, vault, asked_.persona);
      if (!persona)
        throw base::Error(base::ErrorClass::refused, "the persona \"" + asked_.persona + "\" was removed meanwhile");
      renew(persona->state, fresh);
      return store::persona_keep(connection, vault, {context_.worker_id, asked_.id}, *persona);
    });
  kept_ = true;
}

// Says how it ended, if there is a view.
awaitable<void> SignIn::say_good_bye() {
  const auto view = std::exchange(view_, nullptr);
  if (!view) co_return;
  asio::steady_timer limit(context_.executor, kGoodBye);
  boost::system::error_code ignored;
  limit.async_wait([view](const boost::system::error_code& error) {
    boost::system::error_code closed;
    if (!error) view->lowest_layer().close(closed);
  });
  while (passes_ && Clock::now() < limit.expiry()) {
    changed_.expires_at(limit.expiry());
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  const auto text = with_nul({{"type", "over"}, {"kept", kept_}, {"text", why_}});
  co_await asio::async_write(*view, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
  limit.cancel();
  view->lowest_layer().close(ignored);
}

} // namespace holdfast::worker
