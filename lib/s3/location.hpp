#pragma once
// Location of objects and credentials. Values; pure functions but for find_credentials(), which reads environment and
// files.

#include <string>
#include <string_view>

namespace holdfast::s3 {

struct Location {
  std::string bucket;
  std::string prefix;   // "" or "a/b/": what every key of ours begins with
  std::string endpoint; // "https://s3.eu-west-1.amazonaws.com", without a slash at the end
  std::string region;
  bool bucket_in_host{false}; // https://BUCKET.s3... as Amazon requires it; else https://host/BUCKET

  std::string text() const; // "s3://bucket/prefix", for users
};

bool is_location(std::string_view text);

// s3://BUCKET[/PREFIX][?endpoint=https://host:port&region=name]; without an endpoint, Amazon's for the region (default
// us-east-1). Throws Error(configuration).
Location parse_location(std::string_view text);

struct Credentials {
  std::string key_id, secret, session_token;
};

// Finds credentials as other programs do: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), else the
// section AWS_PROFILE ("default") of the file AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Throws
// Error(configuration).
Credentials find_credentials();

} // namespace holdfast::s3
