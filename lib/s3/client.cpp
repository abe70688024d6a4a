#include "lib/s3/client.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <pugixml.hpp>
#include <thread>
#include <utility>

namespace holdfast::s3 {

using base::Error;
using base::ErrorClass;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstWait{250}, kLongestWait{4000}; // between two tries
constexpr std::chrono::seconds kConnect{4};
constexpr std::chrono::seconds kSilentAway{4};  // without an answer, of a store that counts as unreachable
constexpr std::chrono::minutes kRenewBefore{5}; // credentials, before they expire
constexpr std::size_t kSlowest = 64 * 1024;     // bytes a second: what takes longer than that is given up

// "<Code>: <Message>" of an error's body, or nothing.
std::string explanation(const std::string& body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return "";
  const auto error = document.child("Error");
  const std::string code = error.child_value("Code");
  const std::string message = error.child_value("Message");
  return code.empty() ? message : message.empty() ? code : code + ": " + message;
}

// "AccessDenied" also if the keys were replaced: the store may no longer know them.
bool refuses_keys(int status, const std::string& problem) {
  if (status == 401 || status == 403) return true;
  for (const char* code : {"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"})
    if (status >= 400 && status < 500 && problem.starts_with(code)) return true;
  return false;
}

// Returns true for the answer about a missing object; some stores send no code.
bool is_missing(const std::string& problem) { return problem.empty() || problem.starts_with("NoSuchKey"); }

bool passes(int status) { return status >= 500 || status == 408 || status == 429; }

} // namespace

Client::Client(Location location, Find find, std::chrono::milliseconds timeout)
    : location_(std::move(location)), find_(std::move(find)), timeout_(timeout), credentials_(find_(location_)) {}

Client::~Client() = default;

// Returns the address with names of the query in order and everything encoded as the signature requires: libcurl before
// 8 signs its input unchanged.
std::string Client::address(const Call& call) const {
  std::string url = location_.endpoint;
  if (!location_.bucket_in_host) url += "/" + location_.bucket;
  url += "/" + base::percent_encode(call.key);
  char separator = '?';
  for (const auto& [name, value] : call.query) {
    url += separator + base::percent_encode(name, "") + "=" + base::percent_encode(value, "");
    separator = '&';
  }
  return url;
}

std::string Client::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

Credentials Client::credentials() {
  const std::lock_guard lock(credentials_mutex_);
  const auto now = std::chrono::system_clock::now();
  if (credentials_.expires && now + kRenewBefore > *credentials_.expires) {
    try {
      credentials_ = find_(location_);
    } catch (const Error&) {
      if (now > *credentials_.expires) throw;
    }
  }
  return credentials_;
}

bool Client::renew(const Credentials& refused) {
  const std::lock_guard lock(credentials_mutex_);
  const auto same = [](const Credentials& one, const Credentials& other) {
    return one.key_id == other.key_id && one.secret == other.secret && one.session_token == other.session_token;
  };
  if (!same(credentials_, refused)) return true; // another request was faster
  try {
    credentials_ = find_(location_);
  } catch (const Error& error) {
    spdlog::debug("the object store: {}", error.what());
    return false;
  }
  return !same(credentials_, refused);
}

http::Response Client::attempt(const Call& call, const Credentials& credentials, std::chrono::seconds silence) {
  http::Request request;
  request.method = call.method;
  request.url = address(call);
  request.body = call.body;
  request.sink = call.sink;
  request.signature = {location_.region, credentials.key_id, credentials.secret};
  request.connect_timeout = kConnect;
  request.silence = silence;
  // The size that a sink gets is unknown.
  if (!call.sink)
    request.timeout =
        std::max<std::chrono::milliseconds>(timeout_, silence) + std::chrono::seconds(call.body.size() / kSlowest);
  // No header is removed ("Expect:"): libcurl before 8 would sign the removal.
  request.headers.push_back("x-amz-content-sha256: " + base::sha256_hex(call.body));
  if (!credentials.session_token.empty())
    request.headers.push_back("x-amz-security-token: " + credentials.session_token);
  for (const auto& [name, value] : call.headers)
    request.headers.push_back(name + ": " + value);
  return http_.send(request);
}

void Client::set_trouble(const std::string& trouble) {
  const std::lock_guard lock(mutex_);
  trouble_ = trouble;
}

void Client::fail(const Call& call, int status, const std::string& trouble) const {
  const bool full = status == 507 || trouble.starts_with("QuotaExceeded") || trouble.starts_with("XMinioStorageFull");
  throw Error(
      full ? ErrorClass::cannot_create : ErrorClass::unavailable, "the object store: " + named(call) + ": " + trouble,
      refuses_keys(status, trouble) ? "are the keys right, and may they read, write, list and delete in this bucket?"
      : status == 404               ? "is there such a bucket?"
                                    : "");
}

std::string Client::named(const Call& call) const {
  return std::string(call.method) + " " + location_.endpoint + "/" + location_.bucket + "/" + call.key;
}

http::Response Client::request(const Call& below, std::initializer_list<int> good) {
  Call call = below;
  if (!call.query.contains("list-type")) call.key = location_.prefix + call.key;
  std::size_t handed = 0; // to the sink: that cannot be taken back
  if (below.sink)
    call.sink = [&](std::string_view bytes) {
      handed += bytes.size();
      below.sink(bytes);
    };
  const auto began = Clock::now();
  base::Backoff backoff(kFirstWait, kLongestWait);
  for (bool renewed = false;;) {
    const bool away = !trouble().empty();
    const auto keys = credentials();
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(timeout_ - (Clock::now() - began));
    auto answer = attempt(call, keys, away ? kSilentAway : std::max(left, kSilentAway));
    const bool passing = answer.status == 0 || passes(answer.status);
    if (away && !passing) set_trouble("");
    if (answer.good()) return answer;
    auto problem = answer.status == 0 ? answer.error : explanation(answer.body);
    if (std::find(good.begin(), good.end(), answer.status) != good.end() &&
        (answer.status != 404 || is_missing(problem)))
      return answer;
    if (problem.empty()) problem = "status " + std::to_string(answer.status);
    if (refuses_keys(answer.status, problem) && handed == 0 && !std::exchange(renewed, true) && renew(keys)) continue;
    const auto wait = backoff.next();
    const bool given_up = passing && (away || Clock::now() + wait - began >= timeout_);
    if (given_up && answer.status != 507) set_trouble(problem);
    if (!passing || handed > 0 || given_up) fail(call, answer.status, problem);
    spdlog::debug("the object store: {}: {}; again", named(call), problem);
    std::this_thread::sleep_for(wait);
  }
}

bool Client::get(const std::string& key, const std::function<void(std::string_view)>& sink) {
  return request({"GET", key, {}, {}, {}, sink}, {404}).status != 404;
}

bool Client::get(const std::string& key, std::string& body) {
  body.clear();
  auto answer = request({"GET", key, {}, {}, {}, {}}, {404});
  if (answer.status == 404) return false;
  body = std::move(answer.body);
  return true;
}

void Client::put(const std::string& key, std::string_view body, const std::string& type) {
  request({"PUT", key, {}, body, {{"content-type", type}}, {}});
}

bool Client::put_new(const std::string& key, std::string_view body, const std::string& type) {
  std::string present;
  if (get(key, present)) return false;
  const auto answer = request({"PUT", key, {}, body, {{"content-type", type}, {"if-none-match", "*"}}, {}}, {409, 412});
  return answer.status != 412 && answer.status != 409;
}

Listing Client::list(const std::string& prefix, bool one_level) {
  Listing listing;
  std::string token;
  do {
    Call call{"GET", "", {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", location_.prefix + prefix}},
              {},    {}, {}};
    if (one_level) call.query["delimiter"] = "/";
    if (!token.empty()) call.query["continuation-token"] = token;
    const auto answer = request(call);
    pugi::xml_document document;
    document.load_buffer(answer.body.data(), answer.body.size());
    const auto result = document.child("ListBucketResult");
    if (!result)
      throw Error(ErrorClass::input_output, "the object store does not list " + location_.bucket + "/" + prefix +
                                                " as S3 does: is the endpoint right?");
    const bool encoded = std::string_view(result.child_value("EncodingType")) == "url";
    const auto key_of = [&](const char* text) {
      const std::string key = encoded ? base::form_decode(text) : text;
      if (!key.starts_with(location_.prefix))
        throw Error(ErrorClass::input_output, "the object store lists " + key + ", which was not asked for");
      return key.substr(location_.prefix.size());
    };
    for (const auto entry : result.children("Contents"))
      listing.objects.push_back({key_of(entry.child_value("Key")), entry.child("Size").text().as_ullong()});
    for (const auto entry : result.children("CommonPrefixes"))
      listing.directories.push_back(key_of(entry.child_value("Prefix")));
    token = result.child("IsTruncated").text().as_bool() ? result.child_value("NextContinuationToken") : "";
  } while (!token.empty());
  return listing;
}

void Client::remove(const std::string& key) { request({"DELETE", key, {}, {}, {}, {}}, {404}); }

} // namespace holdfast::s3
