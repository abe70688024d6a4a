#include "lib/base/text/host.hpp"
#include "lib/base/text/url.hpp"

#include <doctest/doctest.h>

using namespace holdfast::base;

TEST_SUITE("private hosts") {
  TEST_CASE("every spelling of a private IPv4 address is private") {
    for (const char* host : {
             "127.0.0.1",
             "127.1",
             "127.0.1",
             "2130706433",
             "0x7f000001",
             "0x7f.1",
             "0X7F.0.0.1",
             "0177.0.0.1",
             "017700000001",
             "127.0.0.1.",
             "0",
             "0.0.0.0",
             "0x0",
             "0.1.2.3",
             "10.0.0.1",
             "10.1",
             "167772161",
             "012.1.1.1",
             "100.64.0.1",
             "100.127.255.255",
             "168.63.129.16",
             "169.254.169.254",
             "0xa9fea9fe",
             "2852039166",
             "169.254.43518",
             "172.16.0.1",
             "172.31.255.255",
             "192.168.0.1",
             "192.168.257",
             "192.0.0.1",
             "192.0.2.1",
             "192.88.99.1",
             "198.18.0.1",
             "198.19.255.255",
             "198.51.100.1",
             "203.0.113.1",
             "224.0.0.1",
             "239.255.255.255",
             "240.0.0.1",
             "255.255.255.255",
             "4294967295",
             "%31%32%37.0.0.1",
             "１２７.0.0.1",
             "127。0。0。1",
             "①27.0.0.1",
         }) {
      CAPTURE(host);
      CHECK(is_private_host(host));
    }
  }

  TEST_CASE("the neighbours of private IPv4 ranges are public") {
    for (const char* host : {"1.0.0.0",         "9.255.255.255", "11.0.0.0",        "100.63.255.255",  "100.128.0.0",
                             "126.255.255.255", "128.0.0.0",     "169.253.255.255", "169.255.0.0",     "172.15.255.255",
                             "172.32.0.0",      "192.0.1.0",     "192.0.3.0",       "192.167.255.255", "192.169.0.0",
                             "198.17.255.255",  "198.20.0.0",    "198.51.101.0",    "203.0.112.255",   "203.0.114.0",
                             "223.255.255.255", "8.8.8.8",       "134744072",       "0x08080808",      "8.8.2056"}) {
      CAPTURE(host);
      CHECK_FALSE(is_private_host(host));
    }
  }

  TEST_CASE("private IPv6 addresses are private with and without brackets") {
    for (const char* address : {
             "::",
             "::1",
             "0:0:0:0:0:0:0:1",
             "fc00::1",
             "fdff::1",
             "fe80::1",
             "febf::1",
             "fec0::1",
             "ff02::1",
             "2001:db8::1",
             "3fff::1",
             "100::1",
             "2001::1",
             "2001:2::1",
             "2001:20::1",
             "5f00::1",
             "4000::1",
             // an IPv4 address inside
             "::ffff:127.0.0.1",
             "::ffff:7f00:1",
             "::ffff:a9fe:a9fe",
             "::127.0.0.1",
             "::ffff:0:10.0.0.1",
             "64:ff9b::10.0.0.1",
             "64:ff9b::7f00:1",
             "64:ff9b:1::1",
             "2002:7f00:1::",
             "2002:c0a8:1::1",
             "2002:a9fe:a9fe::",
             "2606:4700::5efe:10.0.0.1",
             "2606:4700::200:5efe:10.0.0.1",
         }) {
      CAPTURE(address);
      CHECK(is_private_address(address));
      CHECK(is_private_host(address));
      CHECK(is_private_host("[" + std::string(address) + "]"));
    }
  }

  TEST_CASE("public IPv6 addresses are public") {
    for (const char* address : {"2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "2003::1", "::ffff:8.8.8.8",
                                "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:db7::1", "2001:db9::1", "3fff:1000::1"}) {
      CAPTURE(address);
      CHECK_FALSE(is_private_address(address));
      CHECK_FALSE(is_private_host(address));
      CHECK_FALSE(is_private_host("[" + std::string(address) + "]"));
    }
  }

  TEST_CASE("names that stay on the machine or the site are private") {
    for (const char* host : {"localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local", "Printer.LOCAL.",
                             "db.internal", "metadata.google.internal", "intranet", "router.home.arpa",
                             "localhost.localdomain", "com", "ｌｏｃａｌｈｏｓｔ", "loc%61lhost"}) {
      CAPTURE(host);
      CHECK(is_private_host(host));
    }
    for (const char* host : {"example.com", "local.example.com", "localhost.example.com", "internal.org",
                             "example.com.", "mylocal.net", "notlocalhost.org", "1.2.3.4.example", "bücher.example"}) {
      CAPTURE(host);
      CHECK_FALSE(is_private_host(host));
    }
  }

  TEST_CASE("what is no host at all counts as private") {
    for (const char* host : {"", ".", "..", "a..b", "[", "[]", "[::1", "::1]", "1.2.3.4.5", "256.1.1.1", "1.2.3.999",
                             "08.8.8.8", "fe80::1%eth0", "a b.com", "a/b.com", "a@b.com", "exam\xffple.com", "a:b:c"}) {
      CAPTURE(host);
      CHECK(is_private_host(host));
      CHECK(is_private_address(host));
    }
    CHECK(is_private_host(std::string_view("a\0b.com", 7)));
    CHECK(is_private_host(std::string(100'000, 'a') + ".com"));
  }
}
