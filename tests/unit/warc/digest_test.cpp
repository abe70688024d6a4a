#include "lib/warc/digest.hpp"

#include <doctest/doctest.h>

using namespace holdfast::warc;

TEST_SUITE("encodings of bytes") {
  TEST_CASE("there and back") {
    std::string bytes;
    for (int i = 0; i < 300; ++i) {
      CHECK(base64_decode(base64_encode(bytes)) == bytes);
      bytes += static_cast<char>(i * 7);
    }
    Digest digest(Digest::Kind::sha1);
    digest.add("abc");
    CHECK(base32(digest.finish()) == "VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
  }
}
