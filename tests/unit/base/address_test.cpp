// Only names that need no name server: literals and /etc/hosts.

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/url.hpp"

#include <doctest/doctest.h>

using namespace holdfast::base;

TEST_SUITE("address") {
  TEST_CASE("address literals resolve to themselves") {
    CHECK(resolve_host("127.0.0.1") == std::vector<std::string>{"127.0.0.1"});
    CHECK(resolve_host("::1") == std::vector<std::string>{"::1"});
  }

  TEST_CASE("the name of this machine resolves to addresses that are not public") {
    const auto addresses = resolve_host("localhost");
    REQUIRE_FALSE(addresses.empty());
    for (const std::string& address : addresses)
      CHECK(is_private_address(address));
  }

  TEST_CASE("private hosts are refused with a way out") {
    for (const char* host : {"127.0.0.1", "localhost", "10.1.2.3", "::1", "0x7f.1", "intranet", "printer.local"}) {
      CAPTURE(host);
      try {
        require_public_host(host);
        FAIL("accepted");
      } catch (const Error& error) {
        CHECK(error.error_class() == ErrorClass::refused);
        CHECK(std::string(error.what()).find(host) != std::string::npos);
        CHECK(error.hint().find("urls.allow_private") != std::string::npos);
      }
    }
  }

  TEST_CASE("a public address is accepted without asking anyone") {
    CHECK_NOTHROW(require_public_host("93.184.216.34"));
    CHECK_NOTHROW(require_public_host("2606:4700::1111"));
  }

  TEST_CASE("a host that cannot exist is an error and not an empty answer") {
    CHECK_THROWS_AS(resolve_host(std::string(300, 'a')), Error);
  }
}
