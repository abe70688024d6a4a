#pragma once
// Where objects are. Values; pure functions.

#include <string>
#include <string_view>

namespace holdfast::s3 {

struct Location {
  std::string bucket;
  std::string prefix;   // "" or "a/b/": what every key of ours begins with
  std::string endpoint; // "https://s3.eu-west-1.amazonaws.com", without a slash at the end
  std::string region;
  bool instance_keys{false};  // of the machine's instance metadata
  bool bucket_in_host{false}; // https://BUCKET.s3... as Amazon requires it; else https://host/BUCKET

  std::string text() const; // "s3://bucket/prefix", for users
};

bool is_location(std::string_view text);

// s3://BUCKET[/PREFIX][?endpoint=https://host:port&region=name&credentials=instance]; without an endpoint, Amazon's for
// the region (default us-east-1). Throws Error(configuration).
Location parse_location(std::string_view text);

} // namespace holdfast::s3
