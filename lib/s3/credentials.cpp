#include "lib/s3/credentials.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/http/client.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <pugixml.hpp>

namespace holdfast::s3 {

using base::Error;
using base::ErrorClass;

namespace {

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// Returns the body of a good answer. Errors name the server and what it was asked for, not what it answered.
std::string ask(http::Request request, const std::string& what) {
  request.timeout = std::chrono::seconds(5);
  request.use_proxy = false;
  request.most_bytes = 1u << 20;
  auto answer = http::Client().send(request);
  if (!answer.good())
    throw Error(ErrorClass::unavailable,
                "cannot get keys for the object store from " + what + ": " +
                    (answer.status == 0 ? answer.error : "status " + std::to_string(answer.status)));
  return std::move(answer.body);
}

Credentials checked(Credentials found, const std::string& expires, const std::string& what) {
  found.expires = base::read_timestamp(expires);
  if (found.key_id.empty() || found.secret.empty() || !found.expires)
    throw Error(ErrorClass::unavailable, "cannot get keys for the object store from " + what + ": the answer has none");
  return found;
}

Credentials from_instance() {
  const std::string server = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254");
  const std::string what = "the instance metadata at " + server;
  http::Request request;
  request.method = "PUT";
  request.url = server + "/latest/api/token";
  request.headers = {"x-aws-ec2-metadata-token-ttl-seconds: 60"};
  const auto token = ask(request, what);
  request.method = "GET";
  request.headers = {"x-aws-ec2-metadata-token: " + token};
  const std::string roles = server + "/latest/meta-data/iam/security-credentials/";
  request.url = roles;
  const auto role = ask(request, what);
  request.url = roles + base::percent_encode(base::trimmed(role.substr(0, role.find('\n'))), "");
  const auto keys = base::strange_json(ask(request, what));
  const auto text = [&](const char* name) { return keys.is_object() ? base::text_at(keys, name) : std::string(); };
  return checked({text("AccessKeyId"), text("SecretAccessKey"), text("Token"), {}}, text("Expiration"), what);
}

Credentials from_web_identity(const std::string& file, const std::string& role, const std::string& region) {
  std::ifstream stream(file);
  const std::string token{std::istreambuf_iterator<char>(stream), {}};
  if (token.empty()) throw Error(ErrorClass::configuration, "AWS_WEB_IDENTITY_TOKEN_FILE: cannot read " + file);
  const auto encoded = [](std::string_view text) { return base::percent_encode(base::trimmed(text), ""); };
  const std::string body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=" +
                           encoded(variable("AWS_ROLE_SESSION_NAME", "holdfast")) + "&RoleArn=" + encoded(role) +
                           "&WebIdentityToken=" + encoded(token);
  const std::string what = variable("AWS_ENDPOINT_URL_STS", ("https://sts." + region + ".amazonaws.com").c_str());
  http::Request request;
  request.method = "POST";
  request.url = what + "/";
  request.headers = {"content-type: application/x-www-form-urlencoded"};
  request.body = body;
  const auto answer = ask(request, what);
  pugi::xml_document document;
  document.load_buffer(answer.data(), answer.size());
  const auto keys = document.first_child().child("AssumeRoleWithWebIdentityResult").child("Credentials");
  return checked(
      {keys.child_value("AccessKeyId"), keys.child_value("SecretAccessKey"), keys.child_value("SessionToken"), {}},
      keys.child_value("Expiration"), what);
}

Credentials from_file() {
  Credentials found;
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

} // namespace

Credentials find_credentials(const Location& location) {
  if (location.instance_keys) return from_instance();
  Credentials found{
      variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"), {}};
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  const auto token = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), role = variable("AWS_ROLE_ARN");
  return token.empty() || role.empty() ? from_file() : from_web_identity(token, role, location.region);
}

} // namespace holdfast::s3
