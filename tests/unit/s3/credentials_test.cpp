// Credentials come from where other programs find them, and are read again from there when the store refuses them.
#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "lib/s3/client.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace holdfast;

namespace {

struct Reply {
  int status{200};
  std::string body;
};

// Answers one request after the other with what `answer` makes of its head and body. The destructor ends the thread.
class KeyServer {
public:
  explicit KeyServer(std::function<Reply(const std::string& request)> answer)
      : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    REQUIRE(::listen(listener_, 16) == 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~KeyServer() {
    ::shutdown(listener_, SHUT_RDWR); // accept() returns
    thread_.join();
    ::close(listener_);
  }
  KeyServer(const KeyServer&) = delete;
  KeyServer& operator=(const KeyServer&) = delete;

  std::string url;

private:
  void serve() {
    for (;;) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      std::string request;
      char buffer[4096];
      const auto whole = [&] {
        const auto end = request.find("\r\n\r\n");
        if (end == std::string::npos) return false;
        const auto length = request.find("ontent-Length: ");
        const auto body = length > end ? 0 : std::stoul(request.substr(length + 15));
        return request.size() >= end + 4 + body;
      };
      for (ssize_t got = 1; got > 0 && !whole();) {
        got = ::recv(connection, buffer, sizeof buffer, 0);
        if (got > 0) request.append(buffer, static_cast<std::size_t>(got));
      }
      const auto reply = answer_(request);
      const auto text = "HTTP/1.1 " + std::to_string(reply.status) +
                        " X\r\nConnection: close\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n" +
                        reply.body;
      (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      ::close(connection);
    }
  }
  std::function<Reply(const std::string&)> answer_;
  int listener_;
  std::thread thread_;
};

// A store that takes one key, and refuses others in its way.
struct KeyedStore {
  std::mutex mutex;
  std::string key, token;
  Reply refusal;
  int asked{0};
  KeyServer server{[this](const std::string& request) {
    const std::lock_guard lock(mutex);
    ++asked;
    const bool known = request.find("Credential=" + key + "/") != std::string::npos &&
                       (token.empty() || request.find("x-amz-security-token: " + token) != std::string::npos);
    return known ? Reply{200, "text"} : refusal;
  }};

  void take(const std::string& now, const std::string& with_token = "") {
    const std::lock_guard lock(mutex);
    key = now;
    token = with_token;
  }
  s3::Location location(const std::string& more = "") const {
    return s3::parse_location("s3://bucket?endpoint=" + server.url + "&region=test-1" + more);
  }
};

std::string error_body(const std::string& code) { return "<Error><Code>" + code + "</Code></Error>"; }

class CredentialsPlace {
public:
  CredentialsPlace() {
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
                             "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"})
      set(name, "");
    set("AWS_SHARED_CREDENTIALS_FILE", (directory / "keys").string());
  }
  ~CredentialsPlace() {
    for (const auto& name : names_)
      ::unsetenv(name.c_str());
  }
  CredentialsPlace(const CredentialsPlace&) = delete;
  CredentialsPlace& operator=(const CredentialsPlace&) = delete;

  void set(const std::string& name, const std::string& value) {
    names_.push_back(name);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  void keys(const std::string& id) {
    directory.write("keys", "[default]\naws_access_key_id = " + id + "\naws_secret_access_key = s\n");
  }
  test::TempDir directory;

private:
  std::vector<std::string> names_;
};

} // namespace

TEST_CASE("keys come from the environment, or from the section of a file") {
  CredentialsPlace place;
  place.directory.write("keys", "# ours\n[default]\naws_access_key_id = one\naws_secret_access_key=two=\n[other]\n"
                                "aws_access_key_id=three\naws_secret_access_key=four\naws_session_token=five\n");
  const auto found = [] { return s3::find_credentials({}); };
  CHECK(found().key_id == "one");
  CHECK(found().secret == "two=");
  place.set("AWS_PROFILE", "other");
  CHECK(found().key_id == "three");
  CHECK(found().session_token == "five");
  place.set("AWS_PROFILE", "none");
  CHECK_THROWS_AS(found(), base::Error);
  place.set("AWS_ACCESS_KEY_ID", "six");
  place.set("AWS_SECRET_ACCESS_KEY", "seven");
  CHECK(found().key_id == "six");
}

TEST_CASE("keys that the store refuses in any way are read again from their file") {
  CredentialsPlace place;
  for (const auto& refusal :
       {Reply{403, error_body("InvalidAccessKeyId")}, Reply{403, error_body("SignatureDoesNotMatch")},
        Reply{403, error_body("AccessDenied")}, Reply{400, error_body("ExpiredToken")},
        Reply{400, error_body("InvalidToken")}, Reply{401, ""}, Reply{403, "no XML"}}) {
    CAPTURE(refusal.status);
    CAPTURE(refusal.body);
    KeyedStore store;
    store.refusal = refusal;
    store.take("old");
    place.keys("old");
    s3::Client client(store.location());
    std::string body;
    CHECK(client.get("a", body));
    // The same keys: refused after one request, and not taken for a store that is unreachable.
    store.take("new");
    const int before = store.asked;
    CHECK_THROWS_AS(client.put("a", "text", "text/plain"), base::Error);
    CHECK(store.asked == before + 1);
    CHECK(client.trouble().empty());
    // Others.
    place.keys("new");
    CHECK_NOTHROW(client.put("a", "text", "text/plain"));
    CHECK(client.get("a", body));
    // A file that is being replaced is no reason to end.
    store.take("third");
    std::filesystem::remove(place.directory / "keys");
    CHECK_THROWS_AS(client.get("a", body), base::Error);
    place.keys("third");
    CHECK(client.get("a", body));
  }
}

TEST_CASE("a status of a missing object with another code is a failure") {
  CredentialsPlace place;
  place.keys("none");
  for (const auto& [code, missing] : {std::pair{"", true}, std::pair{"NoSuchKey", true},
                                      std::pair{"NoSuchBucket", false}, std::pair{"XAdminUserNotFound", false}}) {
    CAPTURE(code);
    KeyedStore store;
    store.take("other");
    store.refusal = {404, *code == '\0' ? "" : error_body(code)};
    s3::Client client(store.location());
    std::string body;
    if (missing)
      CHECK(!client.get("a", body));
    else
      CHECK_THROWS_AS(client.get("a", body), base::Error);
  }
}

TEST_CASE("keys of a role are asked for with the token of a file, and again before they expire") {
  CredentialsPlace place;
  KeyedStore store;
  store.refusal = {403, error_body("ExpiredToken")};
  int given = 0;
  std::string last;
  auto expires = std::chrono::system_clock::now() + std::chrono::minutes(1);
  KeyServer security([&](const std::string& request) {
    last = request;
    const auto id = "role" + std::to_string(++given);
    return Reply{200, "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>" +
                          id + "</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>" +
                          "<Expiration>" + base::written_timestamp(expires) + "</Expiration></Credentials>" +
                          "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"};
  });
  place.directory.write("token", "a.b+c\n");
  place.set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  place.set("AWS_WEB_IDENTITY_TOKEN_FILE", (place.directory / "token").string());
  place.set("AWS_ENDPOINT_URL_STS", security.url);
  store.take("role2", "t");
  s3::Client client(store.location());
  std::string body;
  expires += std::chrono::hours(1);
  CHECK(client.get("a", body)); // the first ones would expire too soon
  CHECK(client.get("a", body));
  CHECK(given == 2);
  CHECK(last.find("&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&WebIdentityToken=a.b%2Bc") != std::string::npos);
  CHECK(last.starts_with("POST / "));
  store.take("role3", "t");
  CHECK(client.get("a", body)); // the store took them back early
}

TEST_CASE("instance metadata is asked only if the location says so") {
  CredentialsPlace place;
  KeyedStore store;
  store.refusal = {403, error_body("InvalidAccessKeyId")};
  std::vector<std::string> lines;
  std::string id = "machine1";
  KeyServer machine([&](const std::string& request) {
    lines.push_back(request.substr(0, request.find(" HTTP")));
    if (lines.back() == "PUT /latest/api/token") return Reply{200, "metadata-token"};
    if (request.find("x-aws-ec2-metadata-token: metadata-token") == std::string::npos) return Reply{401, ""};
    if (lines.back().ends_with("security-credentials/")) return Reply{200, "the-role"};
    if (!lines.back().ends_with("/the-role")) return Reply{404, ""};
    return Reply{200, R"({"AccessKeyId": ")" + id +
                          R"(", "SecretAccessKey": "s", "Token": "t", "Expiration": "2999-01-01T00:00:00Z"})"};
  });
  place.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", machine.url);
  CHECK_THROWS_AS(s3::Client(store.location()), base::Error);
  CHECK(lines.empty());
  store.take("machine1", "t");
  s3::Client client(store.location("&credentials=instance"));
  std::string body;
  CHECK(client.get("a", body));
  CHECK(lines.size() == 3);
  id = "machine2";
  store.take("machine2", "t");
  CHECK(client.get("a", body));
  CHECK_THROWS_AS(s3::parse_location("s3://b?credentials=other"), base::Error);
}
