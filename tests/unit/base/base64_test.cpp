#include "lib/base/base64.hpp"

#include <doctest/doctest.h>

using namespace holdfast::base;

TEST_CASE("base64: there and back") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
    bytes += static_cast<char>(i * 7);
  }
  CHECK(base64_decode("YW\nJj") == "abc");
}
