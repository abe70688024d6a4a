#include "services/serve/http_server.hpp"

#include "lib/base/error.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <optional>
#include <string_view>

namespace holdfast::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

namespace {

constexpr std::chrono::seconds kDeadline{30};
constexpr std::uint32_t kHeaderLimit = 16 * 1024;
constexpr int kMaximumConnections = 256;

int hex(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

// False: a request that nobody sends in good faith.
bool parse_target(std::string_view target, Request& request) {
  const auto question = target.find('?');
  if (!percent_decode(target.substr(0, question), false, request.path) || !request.path.starts_with('/')) return false;
  if (question == std::string_view::npos) return true;
  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const auto ampersand = std::min(rest.find('&'), rest.size());
    const auto pair = rest.substr(0, ampersand);
    const auto equals = std::min(pair.find('='), pair.size());
    std::string key, value;
    if (!percent_decode(pair.substr(0, equals), true, key)) return false;
    if (equals < pair.size() && !percent_decode(pair.substr(equals + 1), true, value)) return false;
    request.query[key] = value;
    rest.remove_prefix(std::min(ampersand + 1, rest.size()));
  }
  return true;
}

std::string without_port(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(0, host.find(']') + 1));
  return std::string(host.substr(0, host.find(':')));
}

class FileCloser {
public:
  explicit FileCloser(int file) : file_(file) {}
  ~FileCloser() {
    if (file_ >= 0) ::close(file_);
  }
  FileCloser(const FileCloser&) = delete;
  FileCloser& operator=(const FileCloser&) = delete;
  int release() { return std::exchange(file_, -1); }

private:
  int file_;
};

template <class Message>
void fill_head(Message& message, const Response& response, bool keep_alive) {
  message.set(http::field::server, "holdfast");
  message.set(http::field::content_type, response.type);
  message.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers)
    message.set(name, value);
  message.keep_alive(keep_alive);
}

} // namespace

bool percent_decode(std::string_view text, bool plus_is_space, std::string& out) {
  out.clear();
  for (std::size_t at = 0; at < text.size(); ++at) {
    char character = text[at];
    if (character == '%') {
      if (at + 2 >= text.size()) return false;
      const int high = hex(text[at + 1]), low = hex(text[at + 2]);
      if (high < 0 || low < 0) return false;
      character = static_cast<char>(high * 16 + low);
      at += 2;
    } else if (character == '+' && plus_is_space) {
      character = ' ';
    }
    if (character == '\0') return false;
    out += character;
  }
  return true;
}

Endpoint parse_endpoint(const std::string& text, const std::string& setting) {
  const auto wrong = [&] {
    return base::Error(base::ErrorClass::configuration, setting + ": \"" + text + "\" is no address to listen on",
                       "ADDRESS:PORT, [IPv6]:PORT, or PORT for this machine alone");
  };
  Endpoint endpoint;
  const auto colon = text.rfind(':');
  std::string address = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  if (address.empty() || address == "*") address = "0.0.0.0";
  if (address == "localhost") address = "127.0.0.1";
  unsigned number = 0;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (problem != std::errc{} || end != port.data() + port.size() || number > 65535) throw wrong();
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(address, error);
  if (error) throw wrong();
  endpoint.address = parsed.to_string();
  endpoint.port = static_cast<std::uint16_t>(number);
  endpoint.loopback = parsed.is_loopback();
  return endpoint;
}

struct HttpServer::Impl {
  Impl(const Endpoint& endpoint, int threads, Handler handle)
      : handler(std::move(handle)), pool(static_cast<std::size_t>(threads)), acceptor(asio::make_strand(pool)) {
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
                        "another address or port");
    }
    port = acceptor.local_endpoint().port();
    asio::co_spawn(acceptor.get_executor(), accept(), asio::detached);
  }
  ~Impl() {
    pool.stop(); // coroutines are destroyed with their sockets
    pool.join();
  }

  asio::awaitable<void> accept() {
    for (;;) {
      auto [error, socket] =
          co_await acceptor.async_accept(asio::make_strand(pool), asio::as_tuple(asio::use_awaitable));
      if (error == asio::error::operation_aborted) co_return;
      if (error) {
        asio::steady_timer pause(acceptor.get_executor(), std::chrono::milliseconds(100)); // no more descriptors
        co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
        continue;
      }
      if (connections >= kMaximumConnections) continue; // the socket closes
      ++connections;
      const auto executor = socket.get_executor();
      asio::co_spawn(executor, converse(std::move(socket)), [this](std::exception_ptr) { --connections; });
    }
  }

  Response answer(const http::request<http::empty_body>& message) {
    Request request;
    if (message.method() != http::verb::get && message.method() != http::verb::head)
      return {405, "text/plain; charset=utf-8", "only GET and HEAD\n", {{"Allow", "GET, HEAD"}}, -1};
    const auto field = [&](http::field name) { return std::string(message[name]); };
    request.host = without_port(field(http::field::host));
    request.authorization = field(http::field::authorization);
    request.cookie = field(http::field::cookie);
    request.if_none_match = field(http::field::if_none_match);
    if (!parse_target(std::string_view(message.target().data(), message.target().size()), request))
      return {400, "text/plain; charset=utf-8", "this request makes no sense\n", {}, -1};
    try {
      return handler(request);
    } catch (const base::Error& error) {
      spdlog::warn("{}: {}", request.path, error.what());
      const bool away =
          error.error_class() == base::ErrorClass::temporary || error.error_class() == base::ErrorClass::unavailable;
      return {away ? 503u : 500u,
              "text/plain; charset=utf-8",
              away ? "the database is away; try again\n" : "something is wrong; the log says what\n",
              {},
              -1};
    } catch (const std::exception& error) {
      spdlog::error("{}: {}", request.path, error.what());
      return {500, "text/plain; charset=utf-8", "something is wrong; the log says what\n", {}, -1};
    }
  }

  asio::awaitable<void> converse(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    for (;;) {
      http::request_parser<http::empty_body> parser;
      parser.header_limit(kHeaderLimit);
      parser.body_limit(0);
      stream.expires_after(kDeadline);
      const auto [read_error, read] =
          co_await http::async_read(stream, buffer, parser, asio::as_tuple(asio::use_awaitable));
      if (read_error) {
        if (read_error == http::error::end_of_stream) stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
        co_return;
      }
      const auto& message = parser.get();
      const bool keep_alive = message.keep_alive();
      const bool head = message.method() == http::verb::head;
      Response response = answer(message);
      FileCloser file(response.file);
      stream.expires_after(kDeadline);
      boost::system::error_code error;
      if (response.file >= 0) {
        beast::file_posix opened;
        opened.native_handle(file.release());
        http::response<http::basic_file_body<beast::file_posix>> reply;
        reply.version(message.version());
        reply.result(response.status);
        reply.body().reset(std::move(opened), error);
        if (error) co_return;
        fill_head(reply, response, keep_alive);
        reply.content_length(reply.body().size());
        http::response_serializer<http::basic_file_body<beast::file_posix>> serializer(reply);
        const auto [head_error, sent] =
            co_await http::async_write_header(stream, serializer, asio::as_tuple(asio::use_awaitable));
        if (head_error) co_return;
        // A large file may take its time, as long as it moves.
        while (!head && !serializer.is_done()) {
          stream.expires_after(kDeadline);
          const auto [body_error, more] =
              co_await http::async_write_some(stream, serializer, asio::as_tuple(asio::use_awaitable));
          if (body_error) co_return;
        }
      } else {
        http::response<http::string_body> reply;
        reply.version(message.version());
        reply.result(response.status);
        fill_head(reply, response, keep_alive);
        const auto size = response.body.size();
        if (!head) reply.body() = std::move(response.body);
        reply.content_length(size);
        if (response.status == 304) reply.erase(http::field::content_length);
        http::response_serializer<http::string_body> serializer(reply);
        if (head) {
          const auto [head_error, sent] =
              co_await http::async_write_header(stream, serializer, asio::as_tuple(asio::use_awaitable));
          error = head_error;
        } else {
          const auto [body_error, sent] =
              co_await http::async_write(stream, serializer, asio::as_tuple(asio::use_awaitable));
          error = body_error;
        }
        if (error) co_return;
      }
      if (!keep_alive) {
        stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
        co_return;
      }
    }
  }

  Handler handler;
  asio::thread_pool pool;
  tcp::acceptor acceptor;
  std::atomic<int> connections{0};
  std::uint16_t port{0};
  boost::system::error_code ignored;
};

HttpServer::HttpServer(const Endpoint& endpoint, int threads, Handler handler)
    : impl_(std::make_unique<Impl>(endpoint, threads, std::move(handler))) {}
HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const noexcept { return impl_->port; }

} // namespace holdfast::serve
