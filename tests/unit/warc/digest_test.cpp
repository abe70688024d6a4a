#include "lib/warc/spool.hpp"

#include <doctest/doctest.h>

using namespace holdfast::warc;

TEST_CASE("a digest as text") {
  Digest digest;
  digest.add("abc");
  CHECK(digest.finish() == "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
}
