#include "services/egress/message.hpp"

#include <doctest/doctest.h>

#include <string>

using holdfast::egress::ResponseEnd;

namespace {

const std::string kHead = "HTTP/1.1 200 OK\r\n";

// How many bytes are behind the end, whichever way they come; -1: it has no end, or ends with its connection.
int behind(const std::string& response, const std::string& method = "GET") {
  ResponseEnd whole(method), in_bytes(method);
  whole.take(response);
  for (const char byte : response)
    in_bytes.take({&byte, 1});
  CHECK(whole.found() == in_bytes.found());
  CHECK(whole.leaves_open() == in_bytes.leaves_open());
  if (!whole.found() || !whole.leaves_open()) return -1;
  CHECK(whole.behind() == in_bytes.behind());
  return static_cast<int>(whole.behind());
}

} // namespace

TEST_SUITE("response_end") {
  TEST_CASE("a response ends where its length says") {
    CHECK(behind(kHead + "Content-Length: 5\r\n\r\nhello") == 0);
    CHECK(behind(kHead + "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK") == 15);
    CHECK(behind(kHead + "Content-Length: 6\r\n\r\nhello") == -1);
    CHECK(behind(kHead + "Content-Length: 0\r\n\r\n") == 0);
    CHECK(behind(kHead + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\nxy") == 2);
    CHECK(behind(kHead + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n") == -1);
  }

  TEST_CASE("some have no body, whatever they say") {
    CHECK(behind(kHead + "Content-Length: 5\r\n\r\n", "HEAD") == 0);
    CHECK(behind("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n") == 0);
    CHECK(behind("HTTP/1.1 204 No Content\r\n\r\n") == 0);
  }

  TEST_CASE("without a length, or against its will, a response ends with its connection") {
    CHECK(behind(kHead + "\r\nhello") == -1);
    CHECK(behind(kHead + "Connection: close\r\nContent-Length: 0\r\n\r\n") == -1);
    CHECK(behind("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n") == -1);
  }

  TEST_CASE("what can be read in two ways leaves no connection open") {
    for (const char* lines :
         {"Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5\r\nTransfer-Encoding: chunked",
          "Content-Length: +5", "Content-Length: 5x", "Content-Length : 5", "A: b\nContent-Length: 5"}) {
      CAPTURE(lines);
      CHECK(behind(kHead + lines + "\r\n\r\nhello") == -1);
    }
    CHECK(behind("no head at all\r\n\r\n") == -1);
  }
}
