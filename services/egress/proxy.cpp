#include "services/egress/proxy.hpp"

#include "lib/base/async.hpp"
#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "services/egress/message.hpp"
#include "services/egress/traffic.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <spdlog/spdlog.h>

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

namespace holdfast::egress {

namespace {

using asio::ip::tcp;
using base::Error;
using base::ErrorClass;

constexpr auto kResult = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kLargestHead = 64u << 10;
constexpr std::size_t kPiece = 64u << 10;
constexpr std::size_t kMostConnections = 256; // of one endpoint at once
constexpr std::chrono::seconds kHeadTimeout{60}, kConnectTimeout{20};

} // namespace

struct Proxy::Service {
  explicit Service(Rules given) : rules(std::move(given)), work(io.get_executor()), thread([this] { io.run(); }) {}
  ~Service() { // no endpoint is left: the rest has been stopped
    work.reset();
    thread.join();
    resolver.join();
  }
  const Rules rules;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work;
  asio::thread_pool resolver{4};
  std::thread thread;
};

struct Connection;

// Shared by the endpoint and its connections. The sockets are the egress thread's.
struct Endpoint::State {
  State(asio::io_context& io, const Rules& given) : rules(given), acceptor(io) {}
  const Rules& rules;
  Asker page;
  std::string url;
  const std::string key{base::random_hex32()};
  tcp::acceptor acceptor;
  asio::thread_pool* resolver{nullptr};
  std::set<Connection*> connections;
  TrafficMeter traffic;

  void close();
};

struct Connection : std::enable_shared_from_this<Connection> {
  Connection(std::shared_ptr<Endpoint::State> of, tcp::socket socket)
      : endpoint(std::move(of)), client(std::move(socket)), server(client.get_executor()),
        timer(client.get_executor()) {
    endpoint->connections.insert(this);
  }
  ~Connection() { endpoint->connections.erase(this); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void close() {
    boost::system::error_code ignored;
    timer.cancel();
    client.close(ignored);
    server.close(ignored);
  }
  // Closes `socket` unless it is called again, or released, before.
  void allow(tcp::socket& socket, std::chrono::seconds time) {
    timer.expires_after(time);
    timer.async_wait([self = shared_from_this(), &socket](const boost::system::error_code& error) {
      boost::system::error_code ignored;
      if (!error) socket.close(ignored);
    });
  }

  awaitable<void> run();
  awaitable<bool> read_head(tcp::socket& socket, std::string& buffer, std::size_t& length);
  awaitable<void> read_response_head(std::string& buffer, std::size_t& length);
  awaitable<bool> serve(const RequestHead& request, std::string rest);
  awaitable<bool> reach(const RequestHead& request);
  awaitable<std::string> connect(const std::vector<std::string>& addresses, std::uint16_t port);
  awaitable<void> answer(int status, std::string reason);
  awaitable<std::size_t> await_response(std::string& buffer);
  awaitable<bool> pass_response(const RequestHead& request, std::string buffer, std::size_t length);
  awaitable<void> pass(tcp::socket& from, tcp::socket& to, bool counted);
  awaitable<bool> send(tcp::socket& to, std::string bytes);

  std::shared_ptr<Endpoint::State> endpoint;
  tcp::socket client, server;
  std::pair<std::string, std::uint16_t> reached; // host and port of the server
  bool ended{false};                             // it has sent all that it will
  asio::steady_timer timer;
};

awaitable<bool> Connection::send(tcp::socket& to, std::string bytes) {
  const auto [error, count] = co_await asio::async_write(to, asio::buffer(bytes), kResult);
  co_return !error;
}

// Reads until the empty line; what came after it stays in the buffer behind `length`.
awaitable<bool> Connection::read_head(tcp::socket& socket, std::string& buffer, std::size_t& length) {
  allow(socket, kHeadTimeout);
  const auto [error, count] =
      co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer, kLargestHead), "\r\n\r\n", kResult);
  timer.cancel();
  length = count;
  co_return !error;
}

awaitable<void> Connection::answer(int status, std::string reason) {
  std::replace_if(
      reason.begin(), reason.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  reason.resize(std::min<std::size_t>(reason.size(), 300));
  co_await send(client, "HTTP/1.1 " + std::to_string(status) + " " + reason + "\r\n" + kReasonHeader + ": " +
                            endpoint->key + " " + reason + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

// Why no address answers; empty: one does.
awaitable<std::string> Connection::connect(const std::vector<std::string>& addresses, std::uint16_t port) {
  std::string why = "the host name has no address";
  for (const auto& text : addresses) {
    if (!client.is_open()) co_return "the client has gone";
    boost::system::error_code error;
    const auto address = asio::ip::make_address(text, error);
    if (error) continue;
    server = tcp::socket(client.get_executor());
    ended = false;
    allow(server, kConnectTimeout);
    const tcp::endpoint there(address, port);
    const auto [failure] = co_await server.async_connect(there, kResult);
    const bool timed_out = failure && !server.is_open();
    timer.cancel();
    if (!failure) {
      server.set_option(tcp::no_delay(true), error);
      co_return "";
    }
    why = timed_out ? "Connection timed out" : base::errno_text(failure.value());
  }
  co_return why;
}

awaitable<void> Connection::pass(tcp::socket& from, tcp::socket& to, bool counted) {
  std::string piece(kPiece, '\0');
  for (;;) {
    const auto [error, count] = co_await from.async_read_some(asio::buffer(piece), kResult);
    if (error == asio::error::eof) {
      boost::system::error_code ignored;
      to.shutdown(tcp::socket::shutdown_send, ignored);
      co_return;
    }
    if (error || (counted && !endpoint->traffic.count_bytes(reached.first, count))) break;
    const auto [failure, written] = co_await asio::async_write(to, asio::buffer(piece.data(), count), kResult);
    if (failure) break;
  }
  close();
}

// Reads until the empty line of a response, or as much as there is; length 0: it has none. Lines may end without CR.
awaitable<void> Connection::read_response_head(std::string& buffer, std::size_t& length) {
  allow(server, kHeadTimeout);
  std::string piece(kPiece, '\0');
  for (length = head_length(buffer); length == 0 && buffer.size() < kLargestHead; length = head_length(buffer)) {
    const auto [error, count] = co_await server.async_read_some(asio::buffer(piece), kResult);
    if (error) {
      ended = true; // Asio waits for ever at a second read of the end
      break;
    }
    buffer.append(piece, 0, count);
  }
  timer.cancel();
}

// Waits for the head of the response, which stays in the buffer; passes on interim ones before it. Returns its length;
// 0: the data is no head, and it may be no HTTP/1.
awaitable<std::size_t> Connection::await_response(std::string& buffer) {
  for (;;) {
    std::size_t length = 0;
    co_await read_response_head(buffer, length);
    if (length == 0) co_return 0;
    const std::string head = buffer.substr(0, length);
    if (!is_interim(head)) co_return length;
    if (!endpoint->traffic.count_bytes(reached.first, length) || !co_await send(client, head)) {
      close();
      co_return 0;
    }
    buffer.erase(0, length);
  }
}

// Passes on a response whose head, of `length` bytes, is in the buffer. Returns true if the client may send another
// request on its connection, and the server receive it.
awaitable<bool> Connection::pass_response(const RequestHead& request, std::string buffer, std::size_t length) {
  ResponseEnd end(request.method);
  end.take(buffer);
  if (!endpoint->traffic.count_bytes(reached.first, buffer.size())) {
    close();
    co_return false;
  }
  if (!request.lasts || !end.leaves_open() || end.behind() > 0) {
    const auto head = closing_response(std::string_view(buffer).substr(0, length));
    if (co_await send(client, head + buffer.substr(length)) && !ended) co_await pass(server, client, true);
    close(); // a server that has answered sends nothing more
    co_return false;
  }
  bool passed = co_await send(client, std::move(buffer));
  std::string piece(end.found() ? 0 : kPiece, '\0');
  while (passed && !end.found()) {
    // A server that sends head and body apart may wait for this, and the system would keep it back for 40 ms.
    const int at_once = 1;
    ::setsockopt(server.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof at_once);
    const auto [error, count] = co_await server.async_read_some(asio::buffer(piece), kResult);
    if (error || !endpoint->traffic.count_bytes(reached.first, count)) break;
    end.take(std::string_view(piece).substr(0, count));
    const auto [failure, written] = co_await asio::async_write(client, asio::buffer(piece.data(), count), kResult);
    passed = !failure;
  }
  if (passed && end.found() && end.behind() == 0) co_return true;
  close();
  co_return false;
}

// Connects to the server, if it is allowed; else sends the client the reason.
awaitable<bool> Connection::reach(const RequestHead& request) {
  const auto judging = [this, &request]() -> awaitable<Destination> {
    co_return judge(request.host, request.port, endpoint->page, endpoint->rules);
  };
  const Destination found = co_await asio::co_spawn(*endpoint->resolver, judging(), asio::use_awaitable);
  if (!found.refused.empty()) {
    endpoint->traffic.count_refusal(found.refused);
    co_await answer(403, "refused: " + found.refused);
    co_return false;
  }
  if (found.machine) endpoint->traffic.note_trouble(found.unreachable);
  std::string trouble = found.unreachable;
  if (trouble.empty()) trouble = co_await connect(found.addresses, request.port);
  if (!trouble.empty()) co_await answer(502, request.host + ": " + trouble);
  reached = {request.host, request.port};
  co_return trouble.empty();
}

// Serves a request. Returns true if the client may send another.
awaitable<bool> Connection::serve(const RequestHead& request, std::string rest) {
  if (!endpoint->traffic.count_request(request.host, request.tunnel)) {
    co_await answer(403, "the page has received as many bytes as it may");
    co_return false;
  }
  // An allowed and connected server is not checked again while its connection lasts.
  bool used = request.lasts && server.is_open() && reached == std::pair(request.host, request.port);
  if (!used && !co_await reach(request)) co_return false;
  const auto self = shared_from_this();
  if (request.tunnel) {
    if (!co_await send(client, "HTTP/1.1 200 Connection established\r\n\r\n")) co_return false;
    if (!rest.empty() && !co_await send(server, std::move(rest))) co_return false;
    asio::co_spawn(client.get_executor(), pass(client, server, false), [self](std::exception_ptr) {});
    co_await pass(server, client, true);
    co_return false;
  }
  for (;;) {
    std::string buffer;
    std::size_t length = 0;
    if (co_await send(server, request.forwarded + rest)) {
      if (!request.lasts)
        asio::co_spawn(client.get_executor(), pass(client, server, false), [self](std::exception_ptr) {});
      length = co_await await_response(buffer);
    }
    if (!used || !buffer.empty() || !client.is_open())
      co_return co_await pass_response(request, std::move(buffer), length);
    used = false; // it had ended the connection while that was idle
    if (!co_await reach(request)) co_return false;
  }
}

awaitable<void> Connection::run() {
  boost::system::error_code ignored;
  client.set_option(tcp::no_delay(true), ignored);
  for (bool more = true; more;) {
    std::string buffer;
    std::size_t length = 0;
    if (!co_await read_head(client, buffer, length)) co_return;
    RequestHead request;
    std::string wrong;
    try {
      request = parse_request(std::string_view(buffer).substr(0, length), length == buffer.size());
    } catch (const Error& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) co_return co_await answer(400, wrong);
    more = co_await serve(request, buffer.substr(length));
  }
}

namespace {

awaitable<void> accept_all(std::shared_ptr<Endpoint::State> endpoint) {
  while (endpoint->acceptor.is_open()) {
    auto [error, socket] = co_await endpoint->acceptor.async_accept(kResult);
    if (error == asio::error::operation_aborted || !endpoint->acceptor.is_open()) co_return;
    if (error) { // no more descriptors, or the client has disconnected
      asio::steady_timer pause(endpoint->acceptor.get_executor(), std::chrono::milliseconds(20));
      co_await pause.async_wait(kResult);
      continue;
    }
    if (endpoint->connections.size() >= kMostConnections) continue;
    const auto connection = std::make_shared<Connection>(endpoint, std::move(socket));
    asio::co_spawn(endpoint->acceptor.get_executor(), connection->run(), [connection](std::exception_ptr failure) {
      if (failure) connection->close();
    });
  }
}

} // namespace

void Endpoint::State::close() {
  boost::system::error_code ignored;
  acceptor.close(ignored);
  for (Connection* const connection : connections)
    connection->close();
}

Endpoint::Endpoint(std::shared_ptr<State> state) : state_(std::move(state)) {}

Endpoint::~Endpoint() {
  asio::post(state_->acceptor.get_executor(), [state = state_] { state->close(); });
}

std::string Endpoint::url() const { return state_->url; }
std::string Endpoint::key() const { return state_->key; }

Traffic Endpoint::traffic() const { return state_->traffic.read(); }

Proxy::Proxy(Rules rules) : service_(std::make_unique<Service>(std::move(rules))) {}
Proxy::~Proxy() = default;

std::unique_ptr<Endpoint> Proxy::open(EndpointRules rules) {
  auto state = std::make_shared<Endpoint::State>(service_->io, service_->rules);
  state->page = std::move(rules.page);
  state->traffic.limit(rules.most_bytes);
  state->resolver = &service_->resolver;
  try {
    if (rules.listener) {
      state->acceptor.assign(tcp::v4(), rules.listener.get());
      rules.listener.release();
    } else {
      state->acceptor.open(tcp::v4());
      state->acceptor.bind({asio::ip::address_v4::loopback(), 0});
      state->acceptor.listen();
    }
    state->url = "http://127.0.0.1:" + std::to_string(state->acceptor.local_endpoint().port());
  } catch (const boost::system::system_error& error) {
    throw Error(ErrorClass::system, "no socket for the egress proxy: " + error.code().message());
  }
  asio::co_spawn(service_->io, accept_all(state), asio::detached);
  return std::make_unique<Endpoint>(std::move(state));
}

} // namespace holdfast::egress
