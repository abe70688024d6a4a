#include "lib/base/text/encoding.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

using namespace holdfast::base;

TEST_CASE("base64: there and back") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
    bytes += static_cast<char>(i * 7);
  }
  CHECK(base64_decode("YW\nJj") == "abc");
}

TEST_CASE("base32 and base64 fill up to whole groups") {
  const char* const text = "foobar"; // the examples of RFC 4648
  const std::pair<const char*, const char*> expected[] = {{"", ""},
                                                          {"MY======", "Zg=="},
                                                          {"MZXQ====", "Zm8="},
                                                          {"MZXW6===", "Zm9v"},
                                                          {"MZXW6YQ=", "Zm9vYg=="},
                                                          {"MZXW6YTB", "Zm9vYmE="},
                                                          {"MZXW6YTBOI======", "Zm9vYmFy"}};
  for (std::size_t length = 0; length < std::size(expected); ++length) {
    CHECK(base32_encode({text, length}) == expected[length].first);
    CHECK(base64_encode({text, length}) == expected[length].second);
  }
}
