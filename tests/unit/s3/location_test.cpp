// Where an object store is, and the keys for it. The client itself is tested against a real store: tests/deploy.
#include "lib/base/error.hpp"
#include "lib/s3/location.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

TEST_CASE("keys come from the environment, or from the section of a file") {
  const auto directory = std::filesystem::temp_directory_path() / ("holdfast-s3-" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const auto file = directory / "credentials";
  std::ofstream(file) << "# ours\n[default]\naws_access_key_id = one\naws_secret_access_key=two=\n[other]\n"
                         "aws_access_key_id=three\naws_secret_access_key=four\naws_session_token=five\n";
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"})
    unsetenv(name);
  setenv("AWS_SHARED_CREDENTIALS_FILE", file.c_str(), 1);
  CHECK(s3::find_credentials().key_id == "one");
  CHECK(s3::find_credentials().secret == "two=");
  setenv("AWS_PROFILE", "other", 1);
  CHECK(s3::find_credentials().key_id == "three");
  CHECK(s3::find_credentials().session_token == "five");
  setenv("AWS_PROFILE", "none", 1);
  CHECK_THROWS_AS(s3::find_credentials(), base::Error);
  setenv("AWS_ACCESS_KEY_ID", "six", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "seven", 1);
  CHECK(s3::find_credentials().key_id == "six");
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"})
    unsetenv(name);
  std::filesystem::remove_all(directory);
}
