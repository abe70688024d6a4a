#include "lib/robots/robots.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace holdfast;
using robots::forbidding_rule;
using robots::parse;

namespace {

bool allowed(const std::string& text, const std::string& target) { return !forbidding_rule(parse(text), target); }

} // namespace

TEST_CASE("rules: the longest one that fits decides, and of two as long the one that allows") {
  const std::string text = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /e\nDisallow: /e\n";
  CHECK(allowed(text, "/"));
  CHECK_FALSE(allowed(text, "/a"));
  CHECK_FALSE(allowed(text, "/abc"));
  CHECK(allowed(text, "/a/b"));
  CHECK_FALSE(allowed(text, "/a/b/c/d"));
  CHECK(allowed(text, "/e"));
  CHECK(forbidding_rule(parse(text), "/a/x") == "/a");
}

TEST_CASE("rules: asterisk and dollar") {
  const std::string text = "user-agent:*\ndisallow: /*.pdf$\ndisallow: /x*y*z\ndisallow: *?session=\n";
  CHECK_FALSE(allowed(text, "/a/b.pdf"));
  CHECK(allowed(text, "/a/b.pdf?download"));
  CHECK(allowed(text, "/a/b.pdfx"));
  CHECK_FALSE(allowed(text, "/x1y2z3"));
  CHECK(allowed(text, "/x1z2y3"));
  CHECK_FALSE(allowed(text, "/page?session=1"));
  CHECK_FALSE(allowed("user-agent: *\ndisallow: /*a*a*a*a*a*a*a*a*a*b", "/" + std::string(2000, 'a') + "b"));
  CHECK(allowed("user-agent: *\ndisallow: /*a*a*a*a*a*a*a*a*a*c", "/" + std::string(2000, 'a') + "b"));
}

TEST_CASE("rules: our own group counts instead of everybody's, all groups with our name together") {
  const std::string text =
      "User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: HoldFast/2.0\nDisallow: /one\n"
      "Crawl-delay: 2.5\n\nUser-agent: holdfast\nDisallow: /two\n\nUser-agent: other\nDisallow: /three\n";
  CHECK_FALSE(allowed(text, "/one"));
  CHECK_FALSE(allowed(text, "/two"));
  CHECK(allowed(text, "/three"));
  CHECK(parse(text).delay == std::chrono::milliseconds(2500));
  CHECK_FALSE(forbidding_rule(parse(text, "nobody"), "/robots.txt"));
  CHECK(forbidding_rule(parse(text, "nobody"), "/any") == "/");
  CHECK_FALSE(parse(text, "nobody").delay);
  // "holdfastbot" is another robot.
  CHECK(allowed("user-agent: holdfastbot\ndisallow: /\n", "/"));
}

TEST_CASE("rules: an empty Disallow allows all, comments and other lines do not matter") {
  CHECK(allowed("User-agent: *\nDisallow:\n", "/a"));
  CHECK(allowed("", "/a"));
  CHECK(allowed("<html>404: not found</html>\ndisallow: /\n", "/a"));
  CHECK_FALSE(
      allowed("\xef\xbb\xbfUser-agent: * # all\r\nSitemap: https://e.org/s.xml\r\nDisallow: /a # here\r\n", "/ab"));
  CHECK_FALSE(allowed("user-agent: *\rdisallow: /a\r", "/a"));
  CHECK_FALSE(parse("user-agent: *\ncrawl-delay: -1\ncrawl-delay: soon\n").delay);
  CHECK(parse("user-agent: *\ncrawl-delay: 1e300\ncrawl-delay: 99999999999\n").delay == std::chrono::seconds(1000000));
}

TEST_CASE("rules: percent-encoding is compared as canonical URLs have it") {
  const std::string text = "user-agent: *\ndisallow: /%7ejoe/\ndisallow: /%c3%a4\ndisallow: /\xc3\xb6\n";
  CHECK_FALSE(allowed(text, "/~joe/x"));
  CHECK_FALSE(allowed(text, "/%C3%A4"));
  CHECK_FALSE(allowed(text, "/%C3%B6"));
}

TEST_CASE("rules: only the first 500 KiB are looked at") {
  const std::string comment = "#" + std::string(robots::kMostBytes, 'x') + "\n";
  CHECK(allowed(comment + "user-agent: *\ndisallow: /\n", "/"));
  CHECK_FALSE(allowed("user-agent: *\ndisallow: /\n" + comment, "/"));
}
