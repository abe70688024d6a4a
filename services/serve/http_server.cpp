#include "services/serve/http_server.hpp"

#include "lib/base/error.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/text/text.hpp"
#include "services/serve/access.hpp"
#include "services/serve/send_response.hpp"
#include "services/serve/view_relay.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <spdlog/spdlog.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>

namespace holdfast::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

namespace {

constexpr std::uint32_t kHeaderLimit = 32 * 1024;
constexpr std::size_t kPiece = 128 * 1024;
constexpr std::size_t kMostHeld = 128 << 20; // bytes of bodies that are read or answered, in all
// Limit for unparsed data. A chunk's extensions and a trailer have no limit in the parser.
constexpr std::size_t kMostBuffered = 2 * kPiece;
constexpr std::size_t kMostDiscarded = 256 << 20; // of a body that is too large: else a browser sees no answer

// Proxies that do not extend a header of that name add another one.
std::string forwarded_for(const Message& message) {
  std::string all;
  const auto [begin, end] = message.equal_range("X-Forwarded-For");
  for (auto one = begin; one != end; ++one)
    (all += all.empty() ? "" : ",") += std::string(one->value());
  return all;
}

// Takes the user from a trusted proxy. Returns false if it cannot be told which user is meant.
bool read_user(const Message& message, const HttpOptions& options, Request& request) {
  if (options.user_header.empty()) return true;
  if (message.count(options.user_header) > 1) return false;
  request.user = base::trimmed(std::string(message[options.user_header]));
  if (options.groups_header.empty()) return is_user_name(request.user);
  const auto [begin, end] = message.equal_range(options.groups_header);
  for (auto one = begin; one != end; ++one)
    request.groups += std::string(one->value()) + ",";
  return is_user_name(request.user);
}

// The other end of a connection, as far as the work on its request goes.
struct Client {
  std::atomic<bool> gone{false};
  bool answered{false}; // used on the strand of the connection
};

} // namespace

RequestClass class_of(const Request& request) {
  if (request.path == "/healthz") return RequestClass::health;
  return request.path == "/metrics" ? RequestClass::metrics : RequestClass::pages;
}

struct HttpServer::Impl {
  Impl(const Endpoint& endpoint, HttpOptions given, Handler handle)
      : options(std::move(given)), handler(std::move(handle)), pages(static_cast<std::size_t>(options.threads)),
        acceptor(asio::make_strand(wire)) {
    const tcp::endpoint where(asio::ip::make_address(endpoint.address), endpoint.port);
    try {
      acceptor.open(where.protocol());
      acceptor.set_option(tcp::acceptor::reuse_address(true));
      acceptor.bind(where);
      acceptor.listen();
    } catch (const boost::system::system_error& error) {
      throw base::Error(base::ErrorClass::unavailable,
                        "cannot listen on " + endpoint.address + ":" + std::to_string(endpoint.port) + ": " +
                            error.code().message(),
                        "is another holdfast running? Else set " + endpoint.setting + " to another address or port");
    }
    port = acceptor.local_endpoint().port();
    asio::co_spawn(acceptor.get_executor(), accept(), asio::detached);
  }
  ~Impl() {
    for (auto* pool : {&wire, &numbers, &pages})
      pool->stop(); // coroutines are destroyed with their sockets
    for (auto* pool : {&wire, &numbers, &pages})
      pool->join();
  }

  asio::awaitable<void> accept() {
    for (;;) {
      auto [error, socket] =
          co_await acceptor.async_accept(asio::make_strand(wire), asio::as_tuple(asio::use_awaitable));
      if (error == asio::error::operation_aborted) co_return;
      if (error) {
        asio::steady_timer pause(acceptor.get_executor(), std::chrono::milliseconds(100)); // no more descriptors
        co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
        continue;
      }
      boost::system::error_code gone;
      const auto address = socket.remote_endpoint(gone).address();
      if (gone) continue;
      if (options.refuses && address.is_loopback() && options.refuses(socket.native_handle())) {
        base::count("holdfast_serve_refused_hooks_total");
        continue;
      }
      auto peer = peer_of(address);
      // The clients of a proxy share its connections.
      if (!peers.enter(peer, options.proxies.contains(address) ? Peers::Bound::of_all : Peers::Bound::of_peer))
        continue; // the socket closes
      const auto executor = socket.get_executor();
      asio::co_spawn(executor,
                     converse(std::move(socket), address, std::make_unique<ConnectionSlot>(peers, std::move(peer))),
                     asio::detached);
    }
  }

  // Returns the error of a request itself; empty: none, and `request` is complete.
  std::optional<Response> read_request(Message& message, const asio::ip::address& address, Request& request) const {
    request.peer = peer_of(options.proxies.client(address, forwarded_for(message)));
    const bool reads = message.method() == http::verb::get || message.method() == http::verb::head;
    if (!reads && !options.body_limit) return plain(405, "only GET and HEAD\n").with("Allow", "GET, HEAD");
    const auto field = [&](auto name) { return std::string(message[name]); };
    if (!reads) request.method = std::string(message.method_string());
    request.body = std::move(message.body());
    request.content_type = field(http::field::content_type);
    request.origin = field(http::field::origin);
    request.fetch_site = field("Sec-Fetch-Site");
    request.idempotency_key = field("Idempotency-Key");
    request.last_event_id = field("Last-Event-ID");
    std::string authority = field(http::field::host);
    const auto target = path_of_target({message.target().data(), message.target().size()}, authority);
    request.authority = base::lower_case(authority);
    request.authorization = with_usual_scheme(field(http::field::authorization));
    if (const auto key = field("X-ArchiveBox-API-Key"); request.authorization.empty() && !key.empty())
      request.authorization = "Bearer " + key; // as programs made for ArchiveBox send it
    request.cookie = field(http::field::cookie);
    request.if_match = field(http::field::if_match);
    request.if_none_match = field(http::field::if_none_match);
    request.accept_encoding = field(http::field::accept_encoding);
    request.accept_datetime = field(http::field::accept_datetime);
    if (options.proxies.contains(address) && !read_user(message, options, request))
      return refusal(target, 400, "usage", options.user_header + ": not one name of a user");
    // A proxy in front may read these in another way than we do.
    if (message.count(http::field::host) > 1 || (authority.empty() && message.version() > 10) ||
        message.count(http::field::content_length) > 1 ||
        (message.count(http::field::transfer_encoding) > 0 && !message.chunked()) ||
        (message.count(http::field::transfer_encoding) > 0 && message.count(http::field::content_length) > 0)) {
      message.keep_alive(false);
      return refusal(target, 400, "usage", "bad request");
    }
    if (!read_host(authority, request.host) || !read_target(target, request))
      return refusal(target, 400, "usage", "bad request");
    return std::nullopt;
  }

  Response answer(const Request& request) {
    constexpr const char* kWrong = "internal error; see the log of holdfast serve";
    try {
      return handler(request);
    } catch (const base::Error& error) {
      const auto error_class = error.error_class();
      if (error_class == base::ErrorClass::usage || error_class == base::ErrorClass::refused)
        return refusal(request.path, 400, "usage", error.what()); // a parameter that no reader of it has checked
      spdlog::warn("{}: {}", request.path, error.what());
      const bool unreachable =
          error_class == base::ErrorClass::temporary || error_class == base::ErrorClass::unavailable;
      return unreachable ? refusal(request.path, 503, "temporary", outage(error))
                         : refusal(request.path, 500, "bug", kWrong);
    } catch (const std::exception& error) {
      spdlog::error("{}: {}", request.path, error.what());
      return refusal(request.path, 500, "bug", kWrong);
    }
  }

  asio::awaitable<Response> answer_in_lane(const Request& request, std::shared_ptr<const Client> client) {
    if (client->gone) co_return Response{};
    auto response = answer(request);
    compress(request, response);
    co_return response;
  }

  asio::awaitable<Response> respond(Message& message, const asio::ip::address& address,
                                    std::shared_ptr<const Client> client) {
    Request request;
    if (auto wrong = read_request(message, address, request)) co_return std::move(*wrong);
    const auto request_class = class_of(request);
    if (request_class == RequestClass::health) co_return answer(request);
    auto& pool = request_class == RequestClass::metrics ? numbers : pages;
    co_return co_await asio::co_spawn(pool, answer_in_lane(request, std::move(client)), asio::use_awaitable);
  }

  // Decides by the head of a request. A head that is wrong gets no body: respond() says what is wrong.
  asio::awaitable<BodyLimit> limit_of(Message& message, const asio::ip::address& address) {
    Request request;
    if (!options.body_limit || read_request(message, address, request)) co_return BodyLimit{};
    if (request.authorization.empty() && request.cookie.empty()) co_return options.body_limit(request);
    const auto decide = [](const Impl& self, const Request& head) -> asio::awaitable<BodyLimit> {
      try {
        co_return self.options.body_limit(head);
      } catch (const base::Error& error) {
        spdlog::debug("{}: {}", head.path, error.what());
        co_return BodyLimit{};
      }
    };
    co_return co_await asio::co_spawn(pages, decide(*this, request), asio::use_awaitable);
  }

  // Notices that the client closes the connection while its request waits or is answered. Used on the strand of the
  // connection, before anything else is read from it; `client` outlives the connection.
  static void watch(tcp::socket& socket, const std::shared_ptr<Client>& client) {
    socket.async_wait(tcp::socket::wait_read, [&socket, client](const boost::system::error_code& error) {
      if (error || client->answered) return;
      char byte = 0;
      client->gone = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    });
  }

  asio::awaitable<void> converse(tcp::socket socket, asio::ip::address address, std::unique_ptr<ConnectionSlot> place) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer(kMostBuffered);
    for (;;) {
      http::request_parser<http::string_body> parser;
      parser.header_limit(kHeaderLimit);
      parser.body_limit(boost::none); // until the head is known
      Held body(held);
      stream.expires_after(options.timeout);
      place->set_asking(false);
      auto [read_error, read] =
          co_await http::async_read_header(stream, buffer, parser, asio::as_tuple(asio::use_awaitable));
      bool unread = false;
      std::optional<Response> refused;
      if (!read_error && !parser.is_done()) {
        const auto limit = co_await limit_of(parser.get(), address);
        const auto length = parser.content_length().value_or(limit.bytes);
        stream.expires_after(options.timeout);
        parser.body_limit(limit.bytes); // of a body in chunks; the length of another is known
        unread = !limit.known && (length > limit.bytes || limit.bytes == 0);
        if (length > limit.bytes && limit.known) {
          refused = too_large(parser.get(), limit.bytes);
        } else if (!unread && !body.take(length)) {
          refused = refusal(target_of(parser.get()), 503, "temporary", "too many requests are read; try again")
                        .with("Retry-After", "5");
        } else if (!unread) {
          std::tie(read_error, read) =
              co_await http::async_read(stream, buffer, parser, asio::as_tuple(asio::use_awaitable));
          if (read_error == http::error::body_limit) refused = too_large(parser.get(), limit.bytes);
        }
      }
      auto& message = parser.get();
      if (read_error && !refused) {
        boost::system::error_code ignored;
        if (read_error == http::error::end_of_stream) stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
        refused = refusal_of(read_error, message);
        if (!refused) co_return;
      }
      if (refused) co_return co_await send_last(stream, buffer, message, *refused);
      place->set_asking(true);
      const auto client = std::make_shared<Client>();
      const bool changes = message.method() != http::verb::get && message.method() != http::verb::head;
      // A client that closes its sending side to end its last request still waits for the answer.
      if (changes && !unread && message.keep_alive() && buffer.size() == 0) watch(stream.socket(), client);
      Response response = co_await respond(message, address, client);
      client->answered = true;
      if (client->gone) co_return;
      boost::system::error_code ignored;
      stream.socket().cancel(ignored);
      if (unread) co_return co_await send_last(stream, buffer, message, response);
      if (response.far_end && beast::websocket::is_upgrade(message))
        co_return co_await relay_view(std::move(stream), std::move(message), response, pages);
      if (response.far_end) response.watch.reset();
      if (!co_await send_response(stream, message, response, options.timeout)) co_return;
      if (!message.keep_alive()) {
        stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
        co_return;
      }
    }
  }

  // To a client that still sends, and may not see the answer if the connection is closed at once.
  asio::awaitable<void> send_last(beast::tcp_stream& stream, beast::flat_buffer& buffer, Message& message,
                                  Response& response) {
    boost::system::error_code ignored;
    message.keep_alive(false);
    co_await send_response(stream, message, response, options.timeout);
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    co_await discard(stream, buffer, response.status == 413 ? kMostDiscarded : kMostBuffered);
  }

  static std::string_view target_of(const Message& message) {
    return {message.target().data(), message.target().size()};
  }
  static Response too_large(const Message& message, std::size_t most) {
    return refusal(target_of(message), 413, "usage", "the body is larger than " + std::to_string(most) + " bytes");
  }

  // Returns the answer to unreadable data; nullopt: the client is disconnected.
  std::optional<Response> refusal_of(const boost::system::error_code& error, const Message& message) const {
    const auto target = target_of(message);
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refusal(target, 431, "usage", "the header is larger than " + std::to_string(kHeaderLimit) + " bytes");
    const bool is_http = error.category() == make_error_code(http::error::bad_version).category();
    if (!is_http || error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
    return refusal(target, 400, "usage", "not an HTTP request: " + error.message());
  }

  // A client that still sends would not see the answer if the connection were closed at once.
  asio::awaitable<void> discard(beast::tcp_stream& stream, beast::flat_buffer& buffer, std::size_t most) {
    stream.expires_after(options.timeout);
    for (std::size_t all = 0; all < most;) {
      buffer.clear();
      const auto [error, got] =
          co_await stream.async_read_some(buffer.prepare(kPiece), asio::as_tuple(asio::use_awaitable));
      if (error) co_return;
      all += got;
    }
  }

  // Bytes of one body among those of all; used on the thread of the wire.
  class Held {
  public:
    explicit Held(std::size_t& all) : all_(all) {}
    ~Held() { all_ -= bytes_; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    bool take(std::size_t bytes) {
      if (bytes > kMostHeld - all_) return false;
      all_ += bytes_ = bytes;
      return true;
    }

  private:
    std::size_t& all_;
    std::size_t bytes_{0};
  };

  const HttpOptions options;
  const Handler handler;
  std::size_t held{0}; // of bodies
  Peers peers;
  asio::thread_pool wire{1}; // before the lanes: their coroutines hold sockets
  asio::thread_pool numbers{1}, pages;
  tcp::acceptor acceptor;
  std::uint16_t port{0};
};

HttpServer::HttpServer(const Endpoint& endpoint, HttpOptions options, Handler handler)
    : impl_(std::make_unique<Impl>(endpoint, std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const noexcept { return impl_->port; }

} // namespace holdfast::serve
