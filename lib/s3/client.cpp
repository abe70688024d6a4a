#include "lib/s3/client.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"

#include <spdlog/spdlog.h>

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <pugixml.hpp>
#include <random>
#include <sstream>
#include <thread>

namespace holdfast::s3 {

using base::Error;
using base::ErrorClass;

namespace {

using Clock = std::chrono::steady_clock;

// Waits between two tries are 0.25, 0.5, ... 4 s, each shortened by chance.
constexpr std::chrono::milliseconds kFirstWait{250};
constexpr int kLongestWait = 4; // times doubled
constexpr long kConnectSeconds = 4;
constexpr long kSilentSecondsAway = 4;      // without an answer, of a store that is taken for away
constexpr std::size_t kSlowest = 64 * 1024; // bytes a second: what takes longer than that is given up

std::chrono::milliseconds wait_before(int attempt) {
  thread_local std::mt19937 generator{std::random_device{}()};
  const auto longest = kFirstWait.count() << std::min(attempt, kLongestWait);
  return std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(longest / 2, longest)(generator));
}

struct Headers {
  curl_slist* list{nullptr};
  ~Headers() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

// What one transfer reads and writes; lives as long as it runs.
struct Transfer {
  CURL* handle;
  std::string_view left; // of the body
  std::string_view all;
  const std::function<void(std::string_view)>* sink;
  std::string body, etag;
  std::exception_ptr failure;
};

std::size_t on_read(char* buffer, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const auto length = std::min(size * count, transfer.left.size());
  std::copy_n(transfer.left.data(), length, buffer);
  transfer.left.remove_prefix(length);
  return length;
}

int on_seek(void* user, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (origin != SEEK_SET || offset < 0 || static_cast<std::size_t>(offset) > transfer.all.size())
    return CURL_SEEKFUNC_FAIL;
  transfer.left = transfer.all.substr(static_cast<std::size_t>(offset));
  return CURL_SEEKFUNC_OK;
}

std::size_t on_write(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view bytes{data, size * count};
  long status = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  try {
    if (*transfer.sink && status >= 200 && status < 300) {
      (*transfer.sink)(bytes);
    } else {
      transfer.body += bytes;
    }
  } catch (...) {
    transfer.failure = std::current_exception(); // must not pass through C
    return 0;
  }
  return bytes.size();
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  const std::string_view line{data, size * count};
  const auto colon = line.find(':');
  if (colon == 4 && curl_strnequal(data, "etag", 4) != 0) {
    auto value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ')
      value.remove_prefix(1);
    while (!value.empty() && (value.back() == '\r' || value.back() == '\n' || value.back() == ' '))
      value.remove_suffix(1);
    static_cast<Transfer*>(user)->etag = value;
  }
  return line.size();
}

// "<Code>: <Message>" of an error's body, or nothing.
std::string explanation(const std::string& body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return "";
  const auto error = document.child("Error");
  const std::string code = error.child_value("Code");
  const std::string message = error.child_value("Message");
  return code.empty() ? message : message.empty() ? code : code + ": " + message;
}

bool passes(long status) { return status >= 500 || status == 408 || status == 429; }

} // namespace

struct Client::Connections {
  std::mutex mutex;
  std::vector<CURL*> idle;
  ~Connections() {
    for (CURL* handle : idle)
      curl_easy_cleanup(handle);
  }
  CURL* take() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        CURL* handle = idle.back();
        idle.pop_back();
        return handle;
      }
    }
    CURL* handle = curl_easy_init();
    if (handle == nullptr) throw Error(ErrorClass::system, "libcurl cannot be started");
    return handle;
  }
  void give_back(CURL* handle) {
    const std::lock_guard lock(mutex);
    idle.push_back(handle);
  }
};

Client::Client(Location location, Credentials credentials, std::chrono::milliseconds patience)
    : location_(std::move(location)), credentials_(std::move(credentials)), patience_(patience) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT); // once, and thread-safe by being static
  if (started != CURLE_OK) throw Error(ErrorClass::system, "libcurl cannot be started");
  connections_ = std::make_unique<Connections>();
}

Client::~Client() = default;

// Names of the query in order and everything encoded as the signature wants it: libcurl before 8 signs what it is
// given.
std::string Client::address(const Call& call) const {
  std::string url = location_.endpoint;
  if (!location_.bucket_in_host) url += "/" + location_.bucket;
  url += "/" + percent_encode(call.key, true);
  char separator = '?';
  for (const auto& [name, value] : call.query) {
    url += separator + percent_encode(name, false) + "=" + percent_encode(value, false);
    separator = '&';
  }
  return url;
}

std::string Client::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

Client::Answer Client::attempt(const Call& call, std::chrono::seconds silence, std::string& trouble) {
  struct Taken {
    Connections& pool;
    CURL* handle;
    ~Taken() { pool.give_back(handle); }
  } taken{*connections_, connections_->take()};
  CURL* curl = taken.handle;
  curl_easy_reset(curl); // its connections stay open

  Transfer transfer{curl, call.body, call.body, &call.sink, {}, {}, {}};
  Headers headers;
  // Nothing that takes a header away ("Expect:"): libcurl before 8 would sign it.
  headers.add("x-amz-content-sha256: " + base::sha256_hex(call.body));
  if (!credentials_.session_token.empty()) headers.add("x-amz-security-token: " + credentials_.session_token);
  for (const auto& [name, value] : call.headers)
    headers.add(name + ": " + value);

  const std::string url = address(call);
  const std::string method = call.method;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "holdfast");
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, ("aws:amz:" + location_.region + ":s3").c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, credentials_.key_id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, credentials_.secret.c_str());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(silence.count()));
  if (!call.sink) { // how much a sink will get is not known
    const std::chrono::seconds at_slowest(call.body.size() / kSlowest);
    const auto whole = std::chrono::milliseconds(std::max<std::chrono::milliseconds>(patience_, silence) + at_slowest);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(whole.count()));
  }
  if (method == "PUT" || method == "POST") {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
  }
  if (method != "GET") curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);

  const CURLcode code = curl_easy_perform(curl);
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  Answer answer;
  if (code != CURLE_OK) {
    trouble = curl_easy_strerror(code);
    return answer;
  }
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  answer.body = std::move(transfer.body);
  answer.etag = std::move(transfer.etag);
  return answer;
}

Client::Answer Client::request(const Call& below, std::initializer_list<long> good) {
  Call call = below;
  if (!call.query.contains("list-type")) call.key = location_.prefix + call.key;
  const auto began = Clock::now();
  for (int number = 0;; ++number) {
    const bool away = !trouble().empty();
    std::string trouble;
    std::size_t handed = 0; // to the sink: that cannot be taken back
    if (below.sink)
      call.sink = [&](std::string_view bytes) {
        handed += bytes.size();
        below.sink(bytes);
      };
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(patience_ - (Clock::now() - began));
    const std::chrono::seconds least(kSilentSecondsAway);
    Answer answer = attempt(call, away ? least : std::max(left, least), trouble);
    const bool passing = answer.status == 0 || passes(answer.status);
    if (away && !passing) {
      const std::lock_guard lock(mutex_);
      trouble_.clear();
    }
    if (answer.status >= 200 && answer.status < 300) return answer;
    if (std::find(good.begin(), good.end(), answer.status) != good.end()) return answer;
    if (trouble.empty()) {
      trouble = explanation(answer.body);
      if (trouble.empty()) trouble = "status " + std::to_string(answer.status);
    }
    const std::string what =
        std::string(call.method) + " " + location_.endpoint + "/" + location_.bucket + "/" + call.key;
    const auto wait = wait_before(number);
    const bool given_up = passing && (away || Clock::now() + wait - began >= patience_);
    if (given_up && answer.status != 507) {
      const std::lock_guard lock(mutex_);
      trouble_ = trouble;
    }
    if (!passing || handed > 0 || given_up) {
      const bool full =
          answer.status == 507 || trouble.starts_with("QuotaExceeded") || trouble.starts_with("XMinioStorageFull");
      throw Error(full ? ErrorClass::cannot_create : ErrorClass::unavailable,
                  "the object store: " + what + ": " + trouble,
                  answer.status == 403 ? "are the keys right, and may they read, write, list and delete in this bucket?"
                  : answer.status == 404 ? "is there such a bucket?"
                                         : "");
    }
    spdlog::debug("the object store: {}: {}; again", what, trouble);
    std::this_thread::sleep_for(wait);
  }
}

bool Client::get(const std::string& key, const std::function<void(std::string_view)>& sink) {
  return request({"GET", key, {}, {}, {}, sink}, {404}).status != 404;
}

bool Client::get(const std::string& key, std::string& body) {
  body.clear();
  auto answer = request({"GET", key, {}, {}, {}, {}}, {404});
  if (answer.status == 404) {
    // No such bucket is another thing than no such object.
    if (explanation(answer.body).starts_with("NoSuchBucket"))
      throw Error(ErrorClass::unavailable, "the object store has no bucket " + location_.bucket, "make it first");
    return false;
  }
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
      const std::string key = encoded ? percent_decode(text) : text;
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
