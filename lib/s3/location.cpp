#include "lib/s3/location.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"

#include <algorithm>

namespace holdfast::s3 {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::string_view kScheme = "s3://";

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorClass::configuration, "archive.root \"" + std::string(text) + "\": " + why,
              "s3://BUCKET/PREFIX, or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=NAME");
}

} // namespace

std::string Location::text() const {
  std::string text = std::string(kScheme) + bucket + "/" + prefix;
  while (text.ends_with('/'))
    text.pop_back();
  return text;
}

bool is_location(std::string_view text) { return text.starts_with(kScheme); }

Location parse_location(std::string_view text) {
  if (!is_location(text)) refuse(text, "it does not begin with s3://");
  Location location;
  std::string_view rest = text.substr(kScheme.size());
  std::string_view query;
  if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
    query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  location.bucket = rest.substr(0, slash);
  location.prefix = slash < rest.size() ? rest.substr(slash + 1) : "";
  if (location.bucket.empty()) refuse(text, "it names no bucket");
  if (!std::all_of(location.bucket.begin(), location.bucket.end(), base::is_unreserved))
    refuse(text, "\"" + location.bucket + "\" is not a bucket name");
  while (location.prefix.ends_with('/'))
    location.prefix.pop_back();
  if (location.prefix.starts_with('/') || location.prefix.find("//") != std::string::npos)
    refuse(text, "its prefix has an empty part");
  if (!location.prefix.empty()) location.prefix += '/';

  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = std::min(pair.find('='), pair.size());
    const auto name = pair.substr(0, equals);
    const std::string value = equals < pair.size() ? base::form_decode(std::string(pair.substr(equals + 1))) : "";
    if (name == "endpoint") {
      location.endpoint = value;
    } else if (name == "region") {
      location.region = value;
    } else if (name == "credentials" && value == "instance") {
      location.instance_keys = true;
    } else {
      refuse(text, "\"" + std::string(pair) + "\" is none of endpoint=URL, region=NAME and credentials=instance");
    }
  }
  if (location.region.empty()) location.region = "us-east-1";
  while (location.endpoint.ends_with('/'))
    location.endpoint.pop_back();
  if (location.endpoint.empty()) {
    // A dot in the bucket's name would not match the certificate.
    location.bucket_in_host = location.bucket.find('.') == std::string::npos;
    location.endpoint = "https://" + (location.bucket_in_host ? location.bucket + "." : "") + "s3." + location.region +
                        ".amazonaws.com";
  } else if (!location.endpoint.starts_with("http://") && !location.endpoint.starts_with("https://")) {
    refuse(text, "the endpoint is not an http or https URL");
  }
  return location;
}

} // namespace holdfast::s3
