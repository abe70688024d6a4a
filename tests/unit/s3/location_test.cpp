// Where an object store is. The client itself is tested against a real store: tests/deploy.
#include "lib/base/error.hpp"
#include "lib/s3/location.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using s3::parse_location;

TEST_CASE("a location names bucket, prefix, endpoint and region") {
  const auto full = parse_location("s3://b/a/b/?endpoint=http%3A%2F%2Fhost%3A9000/&region=eu");
  CHECK(full.bucket == "b");
  CHECK(full.prefix == "a/b/");
  CHECK(full.endpoint == "http://host:9000");
  CHECK(full.region == "eu");
  CHECK_FALSE(full.bucket_in_host);
  CHECK(full.text() == "s3://b/a/b");

  const auto amazon = parse_location("s3://archive");
  CHECK(amazon.prefix.empty());
  CHECK(amazon.endpoint == "https://archive.s3.us-east-1.amazonaws.com");
  CHECK(amazon.bucket_in_host);
  CHECK(amazon.text() == "s3://archive");
  // Amazon's certificate does not cover a further dot.
  CHECK(parse_location("s3://a.b?region=eu-west-1").endpoint == "https://s3.eu-west-1.amazonaws.com");
}

TEST_CASE("a location that cannot be meant is refused") {
  for (const char* text :
       {"/srv/archive", "s3://", "s3:///x", "s3://b?endpoint=ftp://x", "s3://b?key=x", "s3://b//x", "s3://b b/x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_location(text), base::Error);
  }
}
