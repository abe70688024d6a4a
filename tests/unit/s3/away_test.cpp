// A store that goes away and comes back, as the client sees it.
#include "lib/base/error.hpp"
#include "lib/s3/client.hpp"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace holdfast;

namespace {

// Takes connections one by one and hangs up, or says nothing at all, or does not end, or says that there is nothing.
// The destructor ends the thread.
class Store {
public:
  Store() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    REQUIRE(::listen(listener_, 16) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Store() {
    ::shutdown(listener_, SHUT_RDWR); // accept() returns
    thread_.join();
    ::close(listener_);
    for (const int connection : held_)
      ::close(connection);
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  s3::Location location() const {
    return s3::parse_location("s3://bucket/prefix?endpoint=http://127.0.0.1:" + std::to_string(port_) +
                              "&region=test-1");
  }
  std::atomic<bool> answers{false}, silent{false}, endless{false};
  std::atomic<int> asked{0};

private:
  void serve() {
    for (;;) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      ++asked;
      if (silent) {
        held_.push_back(connection);
        continue;
      }
      if (answers || endless) {
        std::string request;
        char buffer[1024];
        for (ssize_t got = 1; got > 0 && request.find("\r\n\r\n") == std::string::npos;) {
          got = ::recv(connection, buffer, sizeof buffer, 0);
          if (got > 0) request.append(buffer, static_cast<std::size_t>(got));
        }
        const std::string answer = endless ? "HTTP/1.1 200 OK\r\n\r\n"
                                           : "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        (void)!::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
        const std::string piece(1u << 20, 'x');
        while (endless && ::send(connection, piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
        }
      }
      ::close(connection);
    }
  }
  int listener_;
  int port_{0};
  std::vector<int> held_; // the thread's, until it has ended
  std::thread thread_;
};

s3::Credentials known_keys(const s3::Location&) { return {"key", "secret", "", {}}; }

} // namespace

TEST_CASE("a store that has failed for long is taken for away, tried once a request, and trusted again by its answer") {
  Store store;
  s3::Client client(store.location(), known_keys, std::chrono::milliseconds(100));
  CHECK(client.trouble().empty());
  std::string body;
  CHECK_THROWS_AS(client.get("a", body), base::Error);
  CHECK(!client.trouble().empty());
  for (int i = 0; i < 3; ++i) {
    const int before = store.asked;
    CHECK_THROWS_AS(client.put("b", "text", "text/plain"), base::Error);
    CHECK(store.asked == before + 1);
  }
  store.answers = true;
  CHECK(!client.get("a", body));
  CHECK(client.trouble().empty());
}

TEST_CASE("a store that takes connections and says nothing is given up, and asked again") {
  Store store;
  store.silent = true;
  s3::Client client(store.location(), known_keys, std::chrono::milliseconds(100));
  std::string body;
  CHECK_THROWS_AS(client.get("a", body), base::Error);
  CHECK(store.asked == 1); // its silence took longer than our patience
  CHECK(!client.trouble().empty());
  store.silent = false;
  store.answers = true;
  CHECK(!client.get("a", body));
  CHECK(client.trouble().empty());
}

TEST_CASE("an answer without end is cut off, and said to be too long") {
  Store store;
  store.endless = true;
  s3::Client client(store.location(), known_keys, std::chrono::milliseconds(100));
  std::string body;
  CHECK_THROWS_WITH_AS(client.get("a", body), doctest::Contains("more than 256 MiB in one answer"), base::Error);
  CHECK(body.empty());
}
