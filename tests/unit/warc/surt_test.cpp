#include "lib/warc/surt.hpp"

#include <doctest/doctest.h>

using namespace holdfast::warc;

TEST_SUITE("url keys") {
  // The right side is what the Python package "surt" makes of the left.
  TEST_CASE("are those of other tools") {
    const std::pair<const char*, const char*> cases[] = {
        {"http://example.com", "com,example)/"},
        {"https://www.Example.com:443/A/B/?B=1&a=2", "com,example)/a/b?a=2&b=1"},
        {"http://www2.example.com:8080/x/", "com,example:8080)/x"},
        {"http://example.com/a/../b/./c//d/", "com,example)/b/c/d"},
        {"http://example.com/?", "com,example)/"},
        {"http://example.com/%7Euser/%2525", "com,example)/~user/%25"},
        {"http://user:pw@example.com/a#frag", "com,example)/a"},
        {"http://example.com/a?b=%20c&a=%C3%A9", "com,example)/a?a=%c3%a9&b=%20c"},
        {"http://example.com/p?jsessionid=0123456789abcdef0123456789ABCDEF&x=1", "com,example)/p?x=1"},
        {"http://example.com/p?x=1&phpsessid=0123456789abcdef0123456789abcdef", "com,example)/p?&x=1"},
        {"http://example.com/p?a=2&cfid=12&cftoken=34&b=1", "com,example)/p?a=2&b=1"},
        {"http://example.com/p?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&y=2", "com,example)/p?y=2"},
        {"http://example.com/p?sid=0123456789abcdef=123456789ABCDEF",
         "com,example)/p?sid=0123456789abcdef=123456789abcdef"},
        {"http://example.com/p?ASPSESSIONIDABCDEFG1=ABCDEFGHIJKLMNOPQRSTUVWX",
         "com,example)/p?aspsessionidabcdefg1=abcdefghijklmnopqrstuvwx"},
        {"http://example.com/?b&a=&a", "com,example)/?a&a=&b"},
        {"http://example.com./", "com,example)/"},
        {"http://sub.www.example.com/", "com,example,www,sub)/"},
        {"http://127.0.0.1:8000/x", "1,0,0,127:8000)/x"},
        {"http://[::1]:80/x", "::1)/x"},
        {"http://example.com/..", "com,example)/.."},
        {"http://example.com/a b?c d", "com,example)/a%20b?c%20d"},
        {"http://example.com/?a=b&a-b=1", "com,example)/?a=b&a-b=1"},
        {"http://example.com/%E2%82%AC", "com,example)/%e2%82%ac"},
        {"http://www.com/", "com)/"},
        {"http://example.com?q=1", "com,example)/?q=1"},
    };
    for (const auto& [url, key] : cases)
      CHECK(url_key(url) == key);
    CHECK(url_key("http://Bücher.example/ü") == "example,xn--bcher-kva)/%c3%bc"); // as surt
    CHECK(url_key("http://www.例え.jp/x") == "jp,xn--r8jz45g)/x");
    CHECK(url_key("urn:pageinfo:http://example.com/") == "urn:pageinfo:http://example.com/");
  }
  TEST_CASE("are bounded, and differ where the URLs do") {
    const std::string url = "http://example.com/" + std::string(5000, 'a');
    CHECK(url_key(url).size() == 2000);
    CHECK(whole_url_key(url).starts_with(url_key(url).substr(0, 2000 - 64)));
    CHECK(url_key("http://example.com/?q=tide ") == "com,example)/?q=tide");
    CHECK(whole_url_key(url).size() > 2000);
    CHECK(url_key(url) != url_key(url + "b"));
    CHECK(url_key(url) == url_key(url + "/"));
    CHECK(url_key("http://example.com/" + std::string(20000, '&')).size() == 2000);
    CHECK(url_key("http://example.com/%") == "com,example)/%25");
    std::string often = "%";
    for (int i = 0; i < 1000; ++i)
      often += "25";
    CHECK(url_key("http://example.com/" + often + "4a%%32%35%34%%3125") == "com,example)/j%254%125");
    CHECK(url_key("http:///") == ")/");
    CHECK(url_key("") == "");
  }
  TEST_CASE("ranges") {
    const auto in = [](const char* url, const char* of, Match match) {
      const auto [first, end] = key_range(of, match);
      const auto key = url_key(url);
      return first <= key && key < end;
    };
    CHECK(in("http://example.com/a", "http://example.com/a", Match::exact));
    CHECK_FALSE(in("http://example.com/ab", "http://example.com/a", Match::exact));
    CHECK(in("http://example.com/ab", "http://example.com/a", Match::prefix));
    CHECK_FALSE(in("http://example.com/ab", "http://example.com/a/", Match::prefix));
    CHECK(in("http://example.com/a/b", "http://example.com/a/", Match::prefix));
    CHECK(in("http://example.com/b", "http://example.com/a", Match::host));
    CHECK_FALSE(in("http://sub.example.com/", "http://example.com/", Match::host));
    CHECK(in("http://sub.example.com/", "http://example.com/", Match::domain));
    CHECK(in("http://example.com/", "http://example.com/x", Match::domain));
    CHECK_FALSE(in("http://example-two.com/", "http://example.com/", Match::domain));
    CHECK_FALSE(in("http://example2.com/", "http://example.com/", Match::domain));
  }
}
