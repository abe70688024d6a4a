#include "lib/s3/location.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace holdfast::s3 {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::string_view kScheme = "s3://";

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorClass::configuration, "archive.root \"" + std::string(text) + "\": " + why,
              "s3://BUCKET/PREFIX, or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=NAME");
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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
    } else {
      refuse(text, "\"" + std::string(name) + "\" is neither endpoint nor region");
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

Credentials find_credentials() {
  Credentials found{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN")};
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  found = {};
  std::string file = variable("AWS_SHARED_CREDENTIALS_FILE");
  if (file.empty()) file = variable("HOME") + "/.aws/credentials";
  std::string profile = variable("AWS_PROFILE");
  if (profile.empty()) profile = "default";
  std::ifstream stream(file);
  std::string section = "default"; // of a file that has none
  for (std::string line; std::getline(stream, line);) {
    line = std::string(base::trimmed(line));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = base::trimmed(line.substr(1, line.size() - 2));
      continue;
    }
    const auto equals = line.find('=');
    if (section != profile || equals == std::string::npos) continue;
    const auto name = base::trimmed(std::string_view(line).substr(0, equals));
    const auto value = base::trimmed(std::string_view(line).substr(equals + 1));
    if (name == "aws_access_key_id") found.key_id = value;
    if (name == "aws_secret_access_key") found.secret = value;
    if (name == "aws_session_token") found.session_token = value;
  }
  if (found.key_id.empty() || found.secret.empty())
    throw Error(ErrorClass::configuration,
                "there are no keys for the object store in the environment, nor in " + file + " (section " + profile +
                    ")",
                "set AWS_SHARED_CREDENTIALS_FILE to a file with the lines aws_access_key_id = ... and "
                "aws_secret_access_key = ...");
  return found;
}

} // namespace holdfast::s3
