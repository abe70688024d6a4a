#include "lib/base/error.hpp"
#include "services/egress/message.hpp"

#include <doctest/doctest.h>

using namespace holdfast::egress;

TEST_SUITE("request_head") {
  TEST_CASE("a tunnel has a host and a port") {
    struct Case {
      const char *target, *host;
      int port;
    };
    for (const auto& [target, host, port] :
         {Case{"Example.org:443", "example.org", 443}, Case{"[2001:db8::1]:8443", "2001:db8::1", 8443},
          Case{"127.0.0.1:1", "127.0.0.1", 1}}) {
      CAPTURE(target);
      const auto request = parse_request(std::string("CONNECT ") + target + " HTTP/1.1\r\nHost: other\r\n\r\n");
      CHECK(request.tunnel);
      CHECK(request.host == host);
      CHECK(request.port == port);
    }
  }

  TEST_CASE("a request is passed on in origin form, for the host that was judged") {
    const auto request =
        parse_request("GET http://Example.org:8080?a=b#c HTTP/1.1\r\nhost: inside.local\r\nHost: two\r\n"
                      "Accept: */*\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive\r\n\r\n");
    CHECK(request.host == "example.org");
    CHECK(request.port == 8080);
    CHECK(request.forwarded == "GET /?a=b HTTP/1.1\r\nhost: Example.org:8080\r\nAccept: */*\r\n\r\n");
    CHECK(parse_request("GET HTTP://a.example/x HTTP/1.0\r\n\r\n").forwarded ==
          "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
  }

  TEST_CASE("a connection lasts if the client means it to, and nothing can be taken for the next request") {
    const auto lasts = [](const std::string& method, const std::string& rest, bool alone = true) {
      const auto request = parse_request(method + " http://a.example/x " + rest + "\r\n\r\n", alone);
      const bool closes = request.forwarded.ends_with("\r\nConnection: close\r\n\r\n");
      CHECK(closes != request.lasts);
      return request.lasts;
    };
    CHECK(lasts("GET", "HTTP/1.1"));
    CHECK(lasts("HEAD", "HTTP/1.1\r\nConnection: Keep-Alive"));
    CHECK_FALSE(lasts("GET", "HTTP/1.1", false));
    CHECK_FALSE(lasts("GET", "HTTP/1.0"));
    CHECK_FALSE(lasts("POST", "HTTP/1.1"));
    for (const char* header : {"Connection: Close", "Proxy-Connection: close", "Connection: keep-alive, close",
                               "Content-Length: 0", "transfer-encoding: chunked"}) {
      CAPTURE(header);
      CHECK_FALSE(lasts("GET", std::string("HTTP/1.1\r\nA: b\r\n") + header));
    }
    CHECK_FALSE(parse_request("GET http://a.example/ HTTP/1.1\r\nUpgrade: h2c\r\n\r\n").lasts);
  }

  TEST_CASE("what no proxy takes is refused") {
    for (const char* first :
         {"GET / HTTP/1.1", "GET https://a.example/ HTTP/1.1", "CONNECT a.example HTTP/1.1", "CONNECT :443 HTTP/1.1",
          "CONNECT a.example:0 HTTP/1.1", "CONNECT a.example:65536 HTTP/1.1", "CONNECT a.example:4x HTTP/1.1",
          "CONNECT [::1 HTTP/1.1", "GET http:///x HTTP/1.1", "GET http://a\\b/ HTTP/1.1", "GET http://a.example/", "",
          "GET ftp://a.example/ HTTP/1.1", "GET http://a.example/ HTTP/2"}) {
      CAPTURE(first);
      CHECK_THROWS_AS(parse_request(std::string(first) + "\r\n\r\n"), holdfast::base::Error);
    }
  }

  TEST_CASE("user names do not hide the host") {
    CHECK(parse_request("GET http://a.example@127.0.0.1/ HTTP/1.1\r\n\r\n").host == "127.0.0.1");
    CHECK(parse_request("CONNECT a.example@10.0.0.1:80 HTTP/1.1\r\n\r\n").host == "10.0.0.1");
  }

  TEST_CASE("a response ends its connection") {
    CHECK(closing_response("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nA: b\r\n\r\n") ==
          "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n");
    CHECK(closing_response("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n\r\n") ==
          "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n\r\n");
    CHECK(closing_response("no head") == "no head");
    CHECK(is_interim("HTTP/1.1 103 Early Hints\r\n\r\n"));
    CHECK_FALSE(is_interim("HTTP/1.1 101 Switching\r\n\r\n"));
    CHECK_FALSE(is_interim("HTTP/1.1 200 OK\r\n\r\n"));
  }
}
