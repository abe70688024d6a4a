// Random input from a fixed seed, made of the pieces that URL parsers stumble over.

#include "lib/base/text/host.hpp"
#include "lib/base/text/url.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

using namespace holdfast::base;

namespace {

constexpr std::string_view kPieces[] = {
    "http://", "https://", "http:",       "//",        "/",    "\\",   "?",  "#",   "@",   ":",
    ".",       "..",       "%",           "%2e",       "%2F",  "%25",  "%4", "%00", "%41", "a",
    "Z",       "0",        "9",           "xn--",      "-",    "_",    "~",  " ",   "\t",  "\n",
    "ä",       "ß",        "。",          "１",        "\xff", "\xc3", "[",  "]",   "::1", "::ffff:1.2.3.4",
    "127.1",   "0x7f",     "example.com", "localhost", "+",    "&",    "=",  "'",   "|",   "^",
    "<",       "\u200d",   "\u00ad",      "😀",
};

class Generator {
public:
  explicit Generator(unsigned seed) : engine_(seed) {}

  std::string text() {
    std::string result = pick(3) == 0 ? "" : "http://";
    if (pick(2) == 0) result += "example.com/";
    for (auto count = pick(12); count > 0; --count)
      result += kPieces[pick(std::size(kPieces))];
    return result;
  }

private:
  std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(engine_); }
  std::mt19937 engine_;
};

void check_canonical(const Url& url) {
  CAPTURE(url.text);
  const auto again = try_parse_url(url.text);
  REQUIRE(again);
  CHECK(again->text == url.text);
  CHECK(std::all_of(url.text.begin(), url.text.end(), [](char c) { return c > 0x20 && c < 0x7F; }));
  CHECK(url.path.starts_with("/"));
  CHECK((url.path + "/").find("/../") == std::string::npos);
  CHECK((url.path + "/").find("/./") == std::string::npos);
  if (const auto hash = url.text.find('#'); hash != std::string::npos) CHECK(is_route(url.text.substr(hash + 1)));
  CHECK((url.scheme == "http" || url.scheme == "https"));

  const auto parsed = boost::urls::parse_uri(url.text);
  REQUIRE(parsed);
  CHECK(std::string((*parsed).host_address()) == url.host);
  CHECK_FALSE((*parsed).has_userinfo());

  const std::string directory = host_directory(url);
  CHECK(directory.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") == std::string::npos);
  CHECK(directory != ".");
  CHECK(directory != "..");
}

} // namespace

TEST_SUITE("url properties") {
  TEST_CASE("whatever is accepted is canonical and read alike by another parser") {
    Generator generator(20260101);
    int accepted = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::string text = generator.text();
      CAPTURE(text);
      if (const auto url = try_parse_url(text)) {
        ++accepted;
        check_canonical(*url);
      }
    }
    CHECK(accepted > 2'000); // or the generator makes nothing but rubbish
  }

  TEST_CASE("a host in a url is as private as it is alone") {
    Generator generator(20260103);
    int compared = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::string text = generator.text();
      const auto url = try_parse_url(text);
      if (!url) continue;
      CAPTURE(text);
      const auto start = text.find("//");
      const std::string written = text.substr(start + 2, text.find_first_of("/\\?#: \t\n", start + 2) - start - 2);
      if (written.empty() || written[0] == '[') continue;
      ++compared;
      CHECK(is_private_host(written) == is_private_host(url->host));
    }
    CHECK(compared > 1'000);
  }
}
