#include "services/serve/view_relay.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/store/persona.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <memory>

namespace holdfast::serve {

namespace {

namespace websocket = boost::beast::websocket;
using boost::asio::ip::tcp;
using boost::beast::get_lowest_layer;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable); // an error is a value

constexpr std::size_t kLargestInput = 40 << 20; // a message of the page: files come in them
constexpr std::chrono::milliseconds kAskAgain{500};
constexpr std::chrono::seconds kConnect{10};

struct Ends {
  explicit Ends(boost::beast::tcp_stream stream) : page(std::move(stream)), browser(page.get_executor(), tls) {
    page.binary(true);
  }
  void close() {
    get_lowest_layer(browser).cancel();
    get_lowest_layer(page).cancel();
  }
  websocket::stream<boost::beast::tcp_stream> page;
  asio::ssl::context tls{asio::ssl::context::tlsv13_client};
  boost::beast::ssl_stream<boost::beast::tcp_stream> browser;
};
using Both = std::shared_ptr<Ends>;

awaitable<bool> say(Ends& ends, const nlohmann::json& message) {
  const auto text = base::json_text(message) + '\0';
  const auto [error, sent] = co_await ends.page.async_write(asio::buffer(text), kAsTuple);
  co_return !error;
}

// Waits until the browser is ready. Port 0: it will not be.
awaitable<store::SignInAddress> wait_for_browser(Ends& ends, const FindFarEnd& find, asio::thread_pool& blocking) {
  asio::steady_timer timer(ends.page.get_executor());
  for (;;) {
    const auto ask = [&find] { return find(); };
    auto found = co_await base::on_thread(blocking, ask);
    if (found.port != 0) co_return found;
    auto message = nlohmann::json{{"type", "waiting"}, {"text", found.waits}};
    if (!found.problem.empty()) message = {{"type", "over"}, {"kept", false}, {"text", found.problem}};
    if (!co_await say(ends, message) || !found.problem.empty()) co_return store::SignInAddress{};
    timer.expires_after(kAskAgain);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

// Returns true if the other side is the worker of this sign-in: it has the key of the certificate of this SHA-256.
bool is_worker(Ends& ends, const std::string& hash) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> found{};
  unsigned int size = 0;
  const auto* const shown = SSL_get0_peer_certificate(ends.browser.native_handle());
  return shown != nullptr && X509_digest(shown, EVP_sha256(), found.data(), &size) == 1 &&
         base::hex({reinterpret_cast<const char*>(found.data()), size}) == hash;
}

awaitable<bool> connect(Ends& ends, const store::SignInAddress& to) {
  auto& connection = get_lowest_layer(ends.browser);
  connection.expires_after(kConnect);
  boost::system::error_code error;
  const tcp::endpoint place(asio::ip::make_address(to.address, error), static_cast<std::uint16_t>(to.port));
  std::tie(error) = co_await connection.async_connect(place, kAsTuple);
  if (!error) connection.socket().set_option(tcp::no_delay(true), error);
  if (!error) std::tie(error) = co_await ends.browser.async_handshake(asio::ssl::stream_base::client, kAsTuple);
  if (!error && !is_worker(ends, to.certificate_hash)) error = asio::error::access_denied;
  std::size_t sent = 0;
  if (!error) std::tie(error, sent) = co_await asio::async_write(ends.browser, asio::buffer(to.key), kAsTuple);
  connection.expires_never();
  co_return !error;
}

// Copies until one of them ends. Messages are not assembled: each message of a view ends with a NUL, however it is
// split.
template <class From, class Send>
awaitable<void> pass_on(From& from, Send send) {
  std::array<char, 1 << 16> piece;
  for (;;) {
    const auto [error, count] = co_await from.async_read_some(asio::buffer(piece), kAsTuple);
    if (error) co_return;
    const auto [gone, sent] = co_await send(asio::buffer(piece.data(), count));
    if (gone) co_return;
  }
}

awaitable<void> from_page(Both ends) {
  co_await pass_on(ends->page, [&](auto bytes) { return asio::async_write(ends->browser, bytes, kAsTuple); });
  ends->close();
}

awaitable<void> from_browser(Both ends) {
  co_await pass_on(ends->browser, [&](auto bytes) { return ends->page.async_write(bytes, kAsTuple); });
  co_await ends->page.async_close(websocket::close_code::normal, kAsTuple);
  ends->close();
}

} // namespace

awaitable<void> relay_view(boost::beast::tcp_stream stream,
                           boost::beast::http::request<boost::beast::http::string_body> request,
                           const Response& response, asio::thread_pool& blocking) {
  stream.expires_never(); // the WebSocket has limits of its own, and pings the page
  boost::system::error_code error;
  stream.socket().set_option(tcp::no_delay(true), error);
  const auto ends = std::make_shared<Ends>(std::move(stream));
  ends->page.set_option(websocket::stream_base::timeout::suggested(boost::beast::role_type::server));
  ends->page.read_message_max(kLargestInput);
  std::tie(error) = co_await ends->page.async_accept(request, kAsTuple);
  if (error) co_return;
  const auto silence = [](Watch* watch) { watch->on_news({}); };
  const std::unique_ptr<Watch, decltype(silence)> permitted(response.watch.get(), silence);
  bool revoked = false;
  response.watch->on_news([ends] { asio::post(ends->page.get_executor(), [ends] { ends->close(); }); });
  response.watch->take(revoked);
  if (revoked) co_return;
  const auto far = co_await wait_for_browser(*ends, response.far_end, blocking);
  if (far.port == 0 || !co_await connect(*ends, far)) {
    co_await ends->page.async_close(websocket::close_code::normal, kAsTuple);
    co_return;
  }
  asio::co_spawn(ends->page.get_executor(), from_page(ends), asio::detached);
  co_await from_browser(ends);
}

} // namespace holdfast::serve
