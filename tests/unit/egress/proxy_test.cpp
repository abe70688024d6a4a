// The proxy with real sockets; names are resolved by a function of the test.

#include "lib/base/error.hpp"
#include "services/egress/proxy.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>

using namespace holdfast;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// Answers requests with a body, and keeps what it was sent. `each`: requests that a connection has answered before it
// is closed, without a word.
class Site {
public:
  explicit Site(std::string body = "private things", int each = 1) : body_(std::move(body)) {
    thread_ = std::thread([this, each] {
      for (;;) {
        boost::system::error_code error;
        tcp::socket socket(io_);
        acceptor_.accept(socket, error);
        if (error || over_) return;
        ++connections_;
        for (int i = 0; i < each && answer(socket); ++i) {
        }
      }
    });
  }
  ~Site() {
    over_ = true;
    boost::system::error_code ignored;
    tcp::socket(io_).connect(acceptor_.local_endpoint(), ignored); // wakes it
    thread_.join();
  }
  std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  int connections() const { return connections_; }

private:
  bool answer(tcp::socket& socket) {
    boost::system::error_code error;
    asio::streambuf head;
    asio::read_until(socket, head, "\r\n\r\n", error);
    if (error) return false;
    {
      const std::lock_guard lock(mutex_);
      requests_.emplace_back(asio::buffers_begin(head.data()), asio::buffers_end(head.data()));
    }
    asio::write(socket,
                asio::buffer("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body_.size()) + "\r\n\r\n" + body_),
                error);
    return !error;
  }

  asio::io_context io_;
  tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::string body_;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::atomic<bool> over_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

tcp::socket connected(asio::io_context& io, const egress::Endpoint& endpoint) {
  tcp::socket socket(io);
  const auto url = endpoint.url();
  socket.connect(
      {asio::ip::address_v4::loopback(), static_cast<unsigned short>(std::stoi(url.substr(url.rfind(':') + 1)))});
  return socket;
}

// Sends `request` through the endpoint and returns all that comes back.
std::string ask(const egress::Endpoint& endpoint, const std::string& request) {
  asio::io_context io;
  auto socket = connected(io, endpoint);
  asio::write(socket, asio::buffer(request));
  std::string answer;
  boost::system::error_code end;
  asio::read(socket, asio::dynamic_buffer(answer), end);
  return answer;
}

std::string get(const egress::Endpoint& endpoint, const std::string& url) {
  return ask(endpoint, "GET " + url + " HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Answers one request with these bytes, and ends the connection when the client has.
class Once {
public:
  explicit Once(std::string bytes)
      : thread_([this, sent = std::move(bytes)] {
          tcp::socket socket(io_);
          acceptor_.accept(socket);
          asio::streambuf head;
          boost::system::error_code ignored;
          asio::read_until(socket, head, "\r\n\r\n", ignored);
          asio::write(socket, asio::buffer(sent), ignored);
          socket.shutdown(tcp::socket::shutdown_send, ignored);
          asio::read(socket, head, ignored);
        }) {}
  ~Once() { thread_.join(); }
  std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }

private:
  asio::io_context io_;
  tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

std::vector<std::string> here(const std::string&) { return {"127.0.0.1"}; }

} // namespace

TEST_SUITE("proxy") {
  TEST_CASE("a private address is refused by every name and in every notation, before anything is sent") {
    Site site;
    egress::Proxy proxy({false, [](const std::string& host) -> std::vector<std::string> {
                           if (host == "mixed.example") return {"93.184.216.34", "10.0.0.1"};
                           if (host == "mapped.example") return {"::ffff:127.0.0.1"};
                           if (host == "metadata.example") return {"169.254.169.254"};
                           return {"127.0.0.1"};
                         }});
    const auto endpoint = proxy.open({});
    for (const std::string host :
         {"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433", "0", "169.254.169.254",
          "inside.local", "public.example", "mixed.example", "mapped.example", "metadata.example"}) {
      CAPTURE(host);
      const auto answer = get(*endpoint, "http://" + host + ":" + site.port() + "/");
      CHECK(has(answer, "HTTP/1.1 403 "));
      CHECK(has(answer, "\r\nX-Holdfast-Egress: " + endpoint->key() + " refused: "));
      CHECK(has(ask(*endpoint, "CONNECT " + host + ":" + site.port() + " HTTP/1.1\r\n\r\n"), "HTTP/1.1 403 "));
    }
    CHECK(site.requests().empty());
    CHECK(endpoint->traffic().refused == 26);
    CHECK(endpoint->traffic().bytes == 0);
    CHECK(has(endpoint->traffic().first_refusal, "127.0.0.1"));
  }

  TEST_CASE("a name is resolved for each connection, and once") {
    Site site;
    std::atomic<int> asked{0};
    egress::Proxy proxy({false, [&asked](const std::string&) -> std::vector<std::string> {
                           // The first answer is of a network without a machine; a second look would find the site.
                           return {asked++ == 0 ? "192.0.2.1" : "127.0.0.1"};
                         }});
    const auto endpoint = proxy.open({});
    CHECK(has(get(*endpoint, "http://rebind.example:" + site.port() + "/"), "HTTP/1.1 403 "));
    CHECK(asked == 1);
    CHECK(has(get(*endpoint, "http://rebind.example:" + site.port() + "/"), "resolves to 127.0.0.1"));
    CHECK(asked == 2);
    CHECK(site.requests().empty());
  }

  TEST_CASE("where private addresses are allowed, pages that are private themselves may ask for them") {
    Site site;
    egress::Proxy proxy({true, [](const std::string& host) -> std::vector<std::string> {
                           return {host == "public.example" ? "93.184.216.34" : "127.0.0.1"};
                         }});
    const auto url = "http://inside.example:" + site.port() + "/a";
    CHECK(has(get(*proxy.open({}), url), "private things"));
    egress::EndpointRules of_private, of_public;
    of_private.page.host = "other.example";
    of_public.page.host = "public.example";
    CHECK(has(get(*proxy.open(std::move(of_private)), url), "private things"));
    CHECK(has(get(*proxy.open(std::move(of_public)), url), "HTTP/1.1 403 "));
    CHECK(site.requests().size() == 2);
    CHECK(has(site.requests().front(), "GET /a HTTP/1.1\r\nHost: inside.example:"));
  }

  TEST_CASE("only ports of the web, and the page's own on its host, are connected to") {
    Site site;
    egress::Proxy proxy({true, here, egress::parse_ports("80, 8000-8001", "hook.ports")});
    egress::EndpointRules of_page;
    of_page.page = {"page.example", static_cast<std::uint16_t>(std::stoi(site.port()))};
    const auto endpoint = proxy.open(std::move(of_page));
    CHECK(has(get(*endpoint, "http://page.example:" + site.port() + "/"), "private things"));
    const auto refused = "port " + site.port() + " is not in hook.ports";
    CHECK(has(get(*endpoint, "http://other.example:" + site.port() + "/"), refused));
    CHECK(has(ask(*endpoint, "CONNECT other.example:" + site.port() + " HTTP/1.1\r\n\r\n"), refused));
    CHECK(has(ask(*endpoint, "CONNECT page.example:25 HTTP/1.1\r\n\r\n"), "port 25"));
    CHECK(site.connections() == 1);
    CHECK(endpoint->traffic().refused == 3);

    const auto open = [](int port) {
      return egress::judge("a.example", static_cast<std::uint16_t>(port), {},
                           {true, here, egress::parse_ports("80, 8000-8001", "x")})
          .refused.empty();
    };
    for (const int port : {80, 8000, 8001})
      CHECK(open(port));
    for (const int port : {1, 79, 81, 7999, 8002, 65535})
      CHECK_FALSE(open(port));
    for (const char* wrong : {"0", "80-", "-80", "90-80", "65536", "http", "80 443x", "+80"})
      CHECK_THROWS_WITH_AS(egress::parse_ports(wrong, "hook.ports"), doctest::Contains("hook.ports"), base::Error);
    CHECK(egress::parse_ports("", "hook.ports").empty());
  }

  TEST_CASE("what cannot be had says why") {
    egress::Proxy proxy({true, [](const std::string& host) -> std::vector<std::string> {
                           if (host == "nowhere.example")
                             throw base::Error(base::ErrorClass::refused, "cannot resolve it");
                           return {"127.0.0.1"};
                         }});
    std::string closed;
    {
      Site site;
      closed = site.port();
    }
    const auto endpoint = proxy.open({});
    CHECK(has(get(*endpoint, "http://nowhere.example/"),
              "HTTP/1.1 502 nowhere.example: the host name does not resolve\r\n"));
    CHECK(has(ask(*endpoint, "CONNECT a.example:" + closed + " HTTP/1.1\r\n\r\n"),
              "X-Holdfast-Egress: " + endpoint->key() + " a.example: Connection refused\r\n"));
    CHECK(has(get(*endpoint, "/"), "HTTP/1.1 400 "));
  }

  TEST_CASE("a response reaches the client however its lines end") {
    egress::Proxy proxy({true, here});
    for (const std::string answer :
         {"HTTP/1.0 200 OK\nContent-Type: text/html\n\n<p>Old", "HTTP/1.1 200 OK\nContent-Length: 4\n\nOlde",
          "HTTP/1.0 200 OK\r\n\r\nOld", "HTTP/1.1 999 \n\r\nOdd", "HTTP/1.1 302\nLocation: /\n\n",
          "ICY 200 OK\n\nnot HTTP", "no head at all"}) {
      const Once server(answer);
      const auto endpoint = proxy.open({});
      const auto got =
          ask(*endpoint, "GET http://old.example:" + server.port() + "/ HTTP/1.1\r\nHost: old.example\r\n\r\n");
      CHECK(got.substr(got.find_last_of("\n") + 1) == answer.substr(answer.find_last_of("\n") + 1));
      CHECK(has(got, answer.substr(0, answer.find_first_of("\r\n"))));
    }
  }

  TEST_CASE("requests of one connection go to their servers, each on one connection") {
    Site first("one", 9), second("two", 9);
    egress::Proxy proxy({true, here});
    const auto endpoint = proxy.open({});
    asio::io_context io;
    auto socket = connected(io, *endpoint);
    const auto next = [&socket](const std::string& port, const std::string& ending) {
      asio::write(socket, asio::buffer("GET http://a.example:" + port + "/ HTTP/1.1\r\nHost: a.example\r\n\r\n"));
      asio::streambuf answer;
      asio::read_until(socket, answer, ending);
      return std::string(asio::buffers_begin(answer.data()), asio::buffers_end(answer.data()));
    };
    for (int i = 0; i < 3; ++i)
      CHECK(next(first.port(), "one") == "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
    CHECK(first.requests().size() == 3);
    CHECK(first.connections() == 1);
    CHECK_FALSE(has(first.requests().back(), "Connection:"));
    CHECK(has(next(second.port(), "two"), "two"));
    CHECK(has(next(first.port(), "one"), "one"));
    CHECK(first.connections() == 2);
    CHECK(second.connections() == 1);
    CHECK(endpoint->traffic().requests == 5);
  }

  TEST_CASE("a server that ends an idle connection is asked on another one") {
    Site site("again");
    egress::Proxy proxy({true, here});
    const auto endpoint = proxy.open({});
    asio::io_context io;
    auto socket = connected(io, *endpoint);
    for (int i = 0; i < 3; ++i) {
      asio::write(socket, asio::buffer("GET http://a.example:" + site.port() + "/ HTTP/1.1\r\n\r\n"));
      asio::streambuf answer;
      asio::read_until(socket, answer, "again");
    }
    CHECK(site.requests().size() == 3);
    CHECK(site.connections() == 3);
  }

  TEST_CASE("another host of the same port is judged by itself, also on a connection that was allowed the first") {
    Site site("first", 9);
    egress::Proxy proxy({true, [](const std::string& host) -> std::vector<std::string> {
                           if (host == "other.example") throw base::Error(base::ErrorClass::refused, "no such name");
                           return {"127.0.0.1"};
                         }});
    const auto endpoint = proxy.open({});
    asio::io_context io;
    auto socket = connected(io, *endpoint);
    asio::write(socket, asio::buffer("GET http://a.example:" + site.port() + "/ HTTP/1.1\r\n\r\n"));
    asio::streambuf answer;
    asio::read_until(socket, answer, "first");
    asio::write(socket, asio::buffer("GET http://other.example:" + site.port() + "/ HTTP/1.1\r\n\r\n"));
    std::string refusal;
    boost::system::error_code end;
    asio::read(socket, asio::dynamic_buffer(refusal), end);
    CHECK(has(refusal, "HTTP/1.1 502 other.example: "));
    CHECK(site.requests().size() == 1);
  }

  TEST_CASE("a tunnel passes bytes both ways, also those sent ahead") {
    Site site("through the tunnel");
    egress::Proxy proxy({true, here});
    const auto endpoint = proxy.open({});
    const auto answer = ask(*endpoint, "CONNECT a.example:" + site.port() + " HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    CHECK(has(answer, "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK"));
    CHECK(has(answer, "through the tunnel"));
    CHECK(endpoint->traffic().hosts.at("a.example").requests == 1);
    CHECK(endpoint->traffic().bytes > 18);
  }

  TEST_CASE("a page that has had its bytes gets no more") {
    Site site(std::string(1u << 20, 'x'));
    egress::Proxy proxy({true, here});
    egress::EndpointRules rules;
    rules.most_bytes = 100'000;
    const auto endpoint = proxy.open(std::move(rules));
    CHECK(get(*endpoint, "http://a.example:" + site.port() + "/").size() < 400'000);
    CHECK(endpoint->traffic().over_limit);
    CHECK(has(get(*endpoint, "http://a.example:" + site.port() + "/"), "as many bytes as it may"));
    CHECK(site.requests().size() == 1);
  }
}
