// Only names that need no name server: literals and /etc/hosts.

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/url.hpp"

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

  TEST_CASE("private hosts are named") {
    for (const std::string host : {"127.0.0.1", "localhost", "10.1.2.3", "::1", "0x7f.1", "intranet", "printer.local"})
      CHECK(private_address_of(host) == "\"" + host + "\" is not a public host");
  }

  TEST_CASE("a public address is accepted without asking anyone") {
    CHECK(private_address_of("93.184.216.34").empty());
    CHECK(private_address_of("2606:4700::1111").empty());
  }

  TEST_CASE("a host that cannot exist is an error and not an empty answer") {
    CHECK_THROWS_AS(resolve_host(std::string(300, 'a')), Error);
  }
}
