#include "lib/base/error.hpp"
#include "lib/base/text/url.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace holdfast::base;

namespace {

struct Case {
  const char* written;
  std::string_view canonical;
};

const Case kCanonical[] = {
    {"http://example.com", "http://example.com/"},
    {"https://example.com/", "https://example.com/"},
    {"  https://example.com/a \n", "https://example.com/a"},
    {"HTTPS://EXAMPLE.com/Path", "https://example.com/Path"},
    // port
    {"http://example.com:80/", "http://example.com/"},
    {"https://example.com:443/", "https://example.com/"},
    {"https://example.com:80/", "https://example.com:80/"},
    {"http://example.com:/", "http://example.com/"},
    {"http://example.com:0080/", "http://example.com/"},
    {"http://example.com:8080?x", "http://example.com:8080/?x"},
    // fragment
    {"http://example.com/#top", "http://example.com/"},
    {"http://example.com#a?b", "http://example.com/"},
    {"http://example.com/a#/b c", "http://example.com/a#/b%20c"},
    {"http://example.com/#!b", "http://example.com/#!b"},
    {"http://example.com/a?b#c#d", "http://example.com/a?b"},
    {"http://example.com/#user@host", "http://example.com/"},
    // query: kept as it is
    {"http://example.com?", "http://example.com/?"},
    {"http://example.com/?b=2&a=1", "http://example.com/?b=2&a=1"},
    {"http://example.com/?u=http://x/../y", "http://example.com/?u=http://x/../y"},
    {"http://example.com/?a=b@c", "http://example.com/?a=b@c"},
    // dots
    {"http://example.com/a/./b/../c", "http://example.com/a/c"},
    {"http://example.com/..", "http://example.com/"},
    {"http://example.com/../../a", "http://example.com/a"},
    {"http://example.com/a/..", "http://example.com/"},
    {"http://example.com/a/b/..", "http://example.com/a/"},
    {"http://example.com/a/.", "http://example.com/a/"},
    {"http://example.com/a/%2e%2E/b", "http://example.com/b"},
    {"http://example.com/a/.%2e/b", "http://example.com/b"},
    {"http://example.com/...", "http://example.com/..."},
    {"http://example.com/.a/..b", "http://example.com/.a/..b"},
    {"http://example.com//a//b", "http://example.com//a//b"},
    {"http://example.com/a//../b", "http://example.com/a/b"},
    {"http://example.com//..", "http://example.com/"},
    {"http://example.com/a/..//b", "http://example.com//b"},
    // escapes
    {"http://example.com/%7Eme/%41", "http://example.com/~me/A"},
    {"http://example.com/%c3%a4", "http://example.com/%C3%A4"},
    {"http://example.com/ä", "http://example.com/%C3%A4"},
    {"http://example.com/\xff", "http://example.com/%FF"},
    {"http://example.com/a b", "http://example.com/a%20b"},
    {"http://example.com/a%2Fb", "http://example.com/a%2Fb"},
    {"http://example.com/a%2fb", "http://example.com/a%2Fb"},
    {"http://example.com/100%", "http://example.com/100%25"},
    {"http://example.com/%zz", "http://example.com/%25zz"},
    {"http://example.com/%4", "http://example.com/%254"},
    {"http://example.com/%%34%31", "http://example.com/%2541"},
    {"http://example.com/%252e", "http://example.com/%252e"},
    {"http://example.com/a;b=c,d!$&'()*+", "http://example.com/a;b=c,d!$&'()*+"},
    {"http://example.com/\"<>^`{|}[]", "http://example.com/%22%3C%3E%5E%60%7B%7C%7D%5B%5D"},
    {"http://example.com/?q=ä b|c[]=1\\", "http://example.com/?q=%C3%A4%20b%7Cc%5B%5D=1%5C"},
    {"http://example.com/?a=%26&b=%7e?/", "http://example.com/?a=%26&b=~?/"},
    // "\" is "/" for browsers, up to the query
    {"http:\\\\example.com\\a\\..\\b?\\", "http://example.com/b?%5C"},
    {"http://public.example\\@127.0.0.1/", "http://public.example/@127.0.0.1/"},
    // hosts
    {"http://bücher.example/", "http://xn--bcher-kva.example/"},
    {"http://BÜCHER.example/", "http://xn--bcher-kva.example/"},
    {"http://b\u0075\u0308cher.example/", "http://xn--bcher-kva.example/"},
    {"http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"},
    {"http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"},
    {"http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"},
    {"http://straße.example/", "http://xn--strae-oqa.example/"},
    {"http://例え。テスト/", "http://xn--r8jz45g.xn--zckzah/"},
    {"http://ｅｘａｍｐｌｅ．com/", "http://example.com/"},
    {"http://ex%61mple.com/", "http://example.com/"},
    {"http://example.com./", "http://example.com./"},
    {"http://a_b.example.com/", "http://a_b.example.com/"},
    {"http://-a-.example.com/", "http://-a-.example.com/"},
    {"http://r3---sn.example.com/", "http://r3---sn.example.com/"},
    {"http://localhost:3000/", "http://localhost:3000/"},
    // addresses
    {"http://127.1/", "http://127.0.0.1/"},
    {"http://0x7f.1/", "http://127.0.0.1/"},
    {"http://2130706433/", "http://127.0.0.1/"},
    {"http://0177.0.0.1/", "http://127.0.0.1/"},
    {"http://8.8.8.8./", "http://8.8.8.8/"},
    {"http://[::1]", "http://[::1]/"},
    {"http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"},
    {"http://[2001:DB8::A]/", "http://[2001:db8::a]/"},
    {"http://[::ffff:7f00:1]/", "http://[::ffff:127.0.0.1]/"},
};

const char* const kRefused[] = {
    "",
    "   ",
    "example.com",
    "/a",
    "//example.com/",
    "?q",
    "#f",
    "://example.com",
    ":",
    "http",
    "http:",
    "http:/",
    "http://",
    "http:///",
    "http:///example.com",
    "http:example.com",
    "http:/example.com",
    "https://?q",
    "https://#f",
    "ftp://example.com/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,x",
    "mailto:a@b.example",
    "chrome://settings",
    "about:blank",
    "gopher://x/",
    "httpx://example.com/",
    "1http://example.com/",
    // credentials
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://@example.com/",
    "http://:@example.com/",
    "http://a@b@c.example/",
    // control characters
    "http://example.com/a\nb",
    "http://exa\tmple.com/",
    "http://example.com/\x01",
    "http://example.com/\x7f",
    "http://example.com\r\nHost: x/",
    "http://exam%00ple.com/",
    "http://exam%0aple.com/",
    // hosts
    "http://exa mple.com/",
    "http://exa%20mple.com/",
    "http://a..b/",
    "http://.a.com/",
    "http://./",
    "http://../",
    "http://a%2Fb.com/",
    "http://a%40b.com/",
    "http://a／b.com/",
    "http://a＠b.com/",
    "http://a$b.com/",
    "http://a*b.com/",
    "http://a|b.com/",
    "http://exam\xffple.com/",
    "http://xn--\u00fc.example/",
    "http://\u00ad/",
    "http://％31/",
    // addresses
    "http://1.2.3.4.5/",
    "http://256.1.1.1/",
    "http://08.1.1.1/",
    "http://1.2.3.999/",
    "http://0x100000000/",
    "http://foo.1/",
    "http://[/",
    "http://[]/",
    "http://[::1/",
    "http://::1/",
    "http://[::1]x/",
    "http://[::g]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[127.0.0.1]/",
    "http://[::1]]/",
    "http://[v1.a]/",
    // ports
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:-1/",
    "http://example.com:8o/",
    "http://example.com:80:80/",
    "http://example.com:99999999999999999999/",
    "http://[::1]:x/",
    "http://example.com: 80/",
};

} // namespace

TEST_SUITE("url") {
  TEST_CASE("urls get one canonical spelling") {
    for (const auto& [written, canonical] : kCanonical) {
      CAPTURE(written);
      const auto url = try_parse_url(written);
      REQUIRE(url);
      CHECK(url->text == canonical);
    }
  }

  TEST_CASE("a canonical url is its own canonical spelling") {
    for (const auto& [written, canonical] : kCanonical) {
      CAPTURE(canonical);
      const Url url = parse_url(canonical);
      CHECK(url.text == canonical);
      const Url first = parse_url(written);
      CHECK(url.scheme == first.scheme);
      CHECK(url.host == first.host);
      CHECK(url.port == first.port);
      CHECK(url.path == first.path);
    }
  }

  TEST_CASE("the parts of a url are at hand") {
    const Url url = parse_url("HTTPS://Bücher.Example:8443/a/../b?c#d");
    CHECK(url.scheme == "https");
    CHECK(url.host == "xn--bcher-kva.example");
    CHECK(url.port == 8443);
    CHECK(url.path == "/b");
    CHECK(parse_url("http://[::1]").host == "::1");
    CHECK(parse_url("http://[::1]").port == 80);
    CHECK(parse_url("https://x.example").port == 443);
    CHECK(parse_url("https://x.example?y").path == "/");
  }

  TEST_CASE("what cannot be archived is refused with a reason") {
    for (const char* written : kRefused) {
      CAPTURE(written);
      CHECK_FALSE(try_parse_url(written));
      try {
        parse_url(written);
        FAIL("accepted");
      } catch (const Error& error) {
        CHECK(error.error_class() == ErrorClass::refused);
        const std::string message = error.what();
        CHECK(message.starts_with("cannot use the URL \""));
        CHECK(message.find('\n') == std::string::npos);
        CHECK(message.find("secret") == std::string::npos);
      }
    }
  }

  TEST_CASE("a refusal names the url and what is wrong") {
    const std::pair<const char*, std::string_view> cases[] = {
        {"example.com", "\"example.com\": it has no scheme"},
        {"ftp://x/", "its scheme is \"ftp\""},
        {"http://", "it has no host"},
        {"http://u:pw@x/y", "\"http://***@x/y\": it holds a user name or a password"},
        {"http://a\nb/", "\"http://a\\x0ab/\": it holds a control character"},
        {"http://x:0/", "port"},
    };
    for (const auto& [written, part] : cases) {
      CAPTURE(written);
      CHECK_THROWS_WITH_AS(parse_url(written), doctest::Contains(part.data()), Error);
    }
  }

  TEST_CASE("urls of more than 8192 bytes are refused before and after encoding") {
    const std::string start = "http://example.com/";
    CHECK(try_parse_url(start + std::string(8192 - start.size(), 'a')));
    CHECK_FALSE(try_parse_url(start + std::string(8193 - start.size(), 'a')));
    CHECK_FALSE(try_parse_url(start + std::string(4000, ' ') + "x"));
    CHECK_THROWS_WITH_AS(parse_url(start + std::string(1'000'000, 'a')), doctest::Contains("8192"), Error);
    try {
      parse_url(start + std::string(1'000'000, 'a'));
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() < 400);
    }
  }

  TEST_CASE("host names longer than a name server can carry are refused") {
    const std::string label(63, 'a');
    CHECK(try_parse_url("http://" + label + ".com/"));
    CHECK_FALSE(try_parse_url("http://" + label + "a.com/"));
    const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
    CHECK(longest.size() == 253);
    CHECK(try_parse_url("http://" + longest + "/"));
    CHECK(try_parse_url("http://" + longest + "./"));
    CHECK_FALSE(try_parse_url("http://" + longest + "a/"));
  }

  TEST_CASE("what a URL is of, and what it asks for there") {
    CHECK(base::parse_url("https://E.org/x?y").origin() == "https://e.org");
    CHECK(base::parse_url("http://e.org:8080/").origin() == "http://e.org:8080");
    CHECK(base::parse_url("http://[2001:db8::1]:81/").origin() == "http://[2001:db8::1]:81");
    CHECK(base::parse_url("http://e.org/a?b#!c").target() == "/a?b");
    CHECK(base::parse_url("http://e.org").target() == "/");
  }

  TEST_CASE("the host that people name") {
    CHECK(base::host_named("E.org") == "e.org");
    CHECK(base::host_named("[::0:1]:80") == "::1");
    CHECK(base::host_named("e.org:8080") == "e.org");
    for (const char* none : {"", "e.org/", "me@e.org", "e.org?x", "[::1"})
      CHECK_FALSE(base::host_named(none));
  }

  TEST_CASE("hosts become safe names of directories") {
    const std::pair<const char*, std::string_view> cases[] = {
        {"http://example.com/", "example.com"},
        {"https://example.com:443/", "example.com"},
        {"https://example.com:80/", "example.com_80"},
        {"http://www.example.com:8080/", "www.example.com_8080"},
        {"http://[2001:db8::a]/", "2001_db8__a"},
        {"http://[::1]:81/", "__1_81"},
        {"http://bücher.example/", "xn--bcher-kva.example"},
    };
    for (const auto& [written, expected] : cases) {
      CAPTURE(written);
      CHECK(host_directory(parse_url(written)) == expected);
    }
    const std::string longest(253, 'a');
    CHECK(host_directory({"", "http", longest, 65535, "/"}).size() <= 255);
    CHECK(host_directory({"", "http", "..", 80, "/"}) == "_");
    CHECK(host_directory({"", "http", ".", 80, "/"}) == "_");
    CHECK(host_directory({"", "http", "", 80, "/"}) == "_");
    CHECK(host_directory({"", "http", "../A/ä", 80, "/"}) == ".._a___");
  }
}
