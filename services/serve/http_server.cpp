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

#include <algorithm>
#include <charconv>
#include <mutex>
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
constexpr int kMaximumOfPeer = 128; // connections of one address
constexpr int kMaximumUnasked = 32; // of those, connections without a complete request

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

bool is_alphanumeric(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9');
}

// It becomes part of headers and pages.
bool is_host(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char character) {
    return is_alphanumeric(character) || std::string_view(".-_:[]").find(character) != std::string_view::npos;
  });
}

bool is_header_value(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return (byte < 0x20 && byte != '\t') || byte == 0x7F;
  });
}

// An IPv6 network counts as one peer, because its hosts choose their addresses.
template <class Socket>
std::string peer_of(const Socket& socket) {
  boost::system::error_code error;
  const auto address = socket.remote_endpoint(error).address();
  if (error) return "";
  if (!address.is_v6() || address.to_v6().is_v4_mapped() || address.is_loopback()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::make_address_v6(bytes).to_string();
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
    if (is_header_value(value)) message.set(name, value);
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

Lane usual_lane(const Request& request) {
  if (request.path == "/healthz") return Lane::immediate;
  return request.path == "/metrics" ? Lane::numbers : Lane::pages;
}

bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && path.find("//") == std::string_view::npos &&
         std::all_of(path.begin(), path.end(), [](char character) {
           return is_alphanumeric(character) || std::string_view("/._~-").find(character) != std::string_view::npos;
         });
}

bool is_named(const std::vector<std::string>& names, const Request& request) {
  return names.empty() || std::find(names.begin(), names.end(), request.host) != names.end();
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
  // Connections by peer; some of them have not sent a request, or not all of it. Any thread.
  class Peers {
  public:
    bool enter(const std::string& peer) {
      const std::lock_guard lock(mutex_);
      if (all_ >= kMaximumConnections) return false;
      const auto known = peers_.find(peer);
      if (known != peers_.end() && (known->second.all >= kMaximumOfPeer || known->second.unasked >= kMaximumUnasked))
        return false;
      ++all_;
      auto& counts = peers_[peer];
      ++counts.all;
      ++counts.unasked;
      return true;
    }
    void asked(const std::string& peer, int change) { // -1: a request is complete; +1: the next is awaited
      const std::lock_guard lock(mutex_);
      peers_[peer].unasked += change;
    }
    void leave(const std::string& peer, bool asking) {
      const std::lock_guard lock(mutex_);
      --all_;
      const auto known = peers_.find(peer);
      if (!asking) --known->second.unasked;
      if (--known->second.all == 0) peers_.erase(known);
    }

  private:
    struct Counts {
      int all{0}, unasked{0};
    };
    std::mutex mutex_;
    std::map<std::string, Counts> peers_;
    int all_{0};
  };

  // One connection among the peer's.
  class Place {
  public:
    Place(Peers& peers, std::string peer) : peers_(peers), peer_(std::move(peer)) {}
    ~Place() { peers_.leave(peer_, asking_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    void set_asking(bool asking) {
      if (asking != asking_) peers_.asked(peer_, asking ? -1 : 1);
      asking_ = asking;
    }

  private:
    Peers& peers_;
    const std::string peer_;
    bool asking_{false};
  };

  Impl(const Endpoint& endpoint, int threads, Handler handle, LaneOf choose)
      : handler(std::move(handle)), lane_of(std::move(choose)), pages(static_cast<std::size_t>(threads)),
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
                        "another address or port");
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
      auto peer = peer_of(socket);
      if (!peers.enter(peer)) continue; // the socket closes
      const auto executor = socket.get_executor();
      asio::co_spawn(executor, converse(std::move(socket), std::make_unique<Place>(peers, std::move(peer))),
                     asio::detached);
    }
  }

  // What is wrong with a request itself; empty: nothing, and `request` is complete.
  static std::optional<Response> read_request(const http::request<http::empty_body>& message, Request& request) {
    const auto plain = [](unsigned status, std::string text) {
      return Response{status, "text/plain; charset=utf-8", std::move(text), {}, -1};
    };
    if (message.method() != http::verb::get && message.method() != http::verb::head) {
      auto response = plain(405, "only GET and HEAD\n");
      response.headers = {{"Allow", "GET, HEAD"}};
      return response;
    }
    const auto field = [&](http::field name) { return std::string(message[name]); };
    request.host = without_port(field(http::field::host));
    request.authorization = field(http::field::authorization);
    request.cookie = field(http::field::cookie);
    request.if_none_match = field(http::field::if_none_match);
    if (!is_host(request.host) ||
        !parse_target(std::string_view(message.target().data(), message.target().size()), request))
      return plain(400, "this request makes no sense\n");
    return std::nullopt;
  }

  Response answer(const Request& request) {
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

  asio::awaitable<Response> answer_in_lane(const Request& request) { co_return answer(request); }

  asio::awaitable<Response> respond(const http::request<http::empty_body>& message) {
    Request request;
    if (auto wrong = read_request(message, request)) co_return std::move(*wrong);
    const auto lane = lane_of(request);
    if (lane == Lane::immediate) co_return answer(request);
    auto& pool = lane == Lane::numbers ? numbers : pages;
    co_return co_await asio::co_spawn(pool, answer_in_lane(request), asio::use_awaitable);
  }

  asio::awaitable<void> converse(tcp::socket socket, std::unique_ptr<Place> place) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    for (;;) {
      http::request_parser<http::empty_body> parser;
      parser.header_limit(kHeaderLimit);
      parser.body_limit(0);
      stream.expires_after(kDeadline);
      place->set_asking(false);
      const auto [read_error, read] =
          co_await http::async_read(stream, buffer, parser, asio::as_tuple(asio::use_awaitable));
      if (read_error) {
        if (read_error == http::error::end_of_stream) stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
        co_return;
      }
      place->set_asking(true);
      const auto& message = parser.get();
      const bool keep_alive = message.keep_alive();
      const bool head = message.method() == http::verb::head;
      Response response = co_await respond(message);
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
  LaneOf lane_of;
  Peers peers;
  asio::thread_pool wire{1}; // before the lanes: their coroutines hold sockets
  asio::thread_pool numbers{1}, pages;
  tcp::acceptor acceptor;
  std::uint16_t port{0};
  boost::system::error_code ignored;
};

HttpServer::HttpServer(const Endpoint& endpoint, int threads, Handler handler, LaneOf lane_of)
    : impl_(std::make_unique<Impl>(endpoint, threads, std::move(handler), std::move(lane_of))) {}
HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const noexcept { return impl_->port; }

} // namespace holdfast::serve
