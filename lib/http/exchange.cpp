#include "lib/http/exchange.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"
#include "lib/base/url.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace holdfast::http {

namespace {

constexpr curl_off_t kLongestRetryAfter = 86400; // seconds

bool proxy_in_environment() {
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return true;
  return false;
}

} // namespace

Handle new_handle() {
  static const bool started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; // once, thread-safe by being static
  Handle handle(started ? curl_easy_init() : nullptr);
  if (!handle) throw base::Error(base::ErrorClass::system, "libcurl cannot be started");
  return handle;
}

Exchange::Exchange(Handle handle, Request request)
    : handle_(std::move(handle)), request_(std::move(request)), unsent_(request_.body) {
  CURL* const curl = handle_.get();
  curl_easy_reset(curl);
  for (const auto& header : request_.headers)
    headers_.reset(curl_slist_append(headers_.release(), header.c_str()));
  curl_easy_setopt(curl, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request_.redirects > 0 ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, static_cast<long>(request_.redirects));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, request_.user_agent.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, request_.check_certificates ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, request_.check_certificates ? 2L : 0L);
  if (request_.compressed) curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
  if (request_.signature) {
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, ("aws:amz:" + request_.signature->region + ":s3").c_str());
    curl_easy_setopt(curl, CURLOPT_USERNAME, request_.signature->key_id.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, request_.signature->secret.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::on_write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  set_limits();
  set_body();
  set_guard();
}

void Exchange::set_limits() {
  CURL* const curl = handle_.get();
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.connect_timeout.count()));
  if (request_.silence.count() > 0) {
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.silence.count()));
  }
  if (request_.abandon == nullptr) return;
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Exchange::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
}

void Exchange::set_body() {
  CURL* const curl = handle_.get();
  if (request_.method == "PUT" || request_.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, &Exchange::on_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, this);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, &Exchange::on_seek);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, this);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  }
  if (request_.method != "GET") curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
}

void Exchange::set_guard() {
  CURL* const curl = handle_.get();
  if (!request_.use_proxy) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  if (request_.allow_private || (request_.use_proxy && proxy_in_environment())) return;
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &Exchange::open_socket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, this);
}

Response Exchange::response(CURLcode code) {
  if (failure_) std::rethrow_exception(failure_);
  response_.too_many_redirects = code == CURLE_TOO_MANY_REDIRECTS;
  const bool too_long = full_ && request_.most_bytes == 0;
  if ((code != CURLE_OK && !full_) || too_long) {
    response_.error =
        too_long ? "more than " + std::to_string(kMostBody >> 20) + " MiB in one answer" : curl_easy_strerror(code);
    response_.body.clear();
    return std::move(response_);
  }
  long status = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  curl_off_t wait = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_RETRY_AFTER, &wait);
  if (wait > 0) response_.retry_after = std::chrono::seconds(std::min(wait, kLongestRetryAfter));
  return std::move(response_);
}

std::size_t Exchange::on_read(char* buffer, std::size_t size, std::size_t count, void* self) {
  auto& unsent = static_cast<Exchange*>(self)->unsent_;
  const auto length = std::min(size * count, unsent.size());
  std::copy_n(unsent.data(), length, buffer);
  unsent.remove_prefix(length);
  return length;
}

int Exchange::on_seek(void* self, curl_off_t offset, int origin) {
  auto& exchange = *static_cast<Exchange*>(self);
  const auto body = exchange.request_.body;
  if (origin != SEEK_SET || offset < 0 || static_cast<std::size_t>(offset) > body.size()) return CURL_SEEKFUNC_FAIL;
  exchange.unsent_ = body.substr(static_cast<std::size_t>(offset));
  return CURL_SEEKFUNC_OK;
}

// Taking less than there is ends the transfer.
std::size_t Exchange::on_write(char* data, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  const std::string_view bytes{data, size * count};
  long status = 0;
  curl_easy_getinfo(exchange.handle(), CURLINFO_RESPONSE_CODE, &status);
  try {
    if (exchange.request_.sink && status >= 200 && status < 300) {
      exchange.request_.sink(bytes);
      return bytes.size();
    }
    const auto most = exchange.request_.most_bytes;
    const auto room = (most == 0 ? kMostBody : most) - exchange.response_.body.size();
    exchange.response_.body += bytes.substr(0, room);
    exchange.full_ = bytes.size() > room;
    return exchange.full_ ? 0 : bytes.size();
  } catch (...) {
    exchange.failure_ = std::current_exception(); // must not pass through C
    return 0;
  }
}

std::size_t Exchange::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  const std::string_view line{data, size * count};
  const auto colon = line.find(':');
  if (colon == 4 && base::lower_case(line.substr(0, colon)) == "etag")
    static_cast<Exchange*>(self)->response_.etag = base::trimmed(line.substr(colon + 1));
  return line.size();
}

int Exchange::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(self)->request_.abandon->load() ? 1 : 0;
}

curl_socket_t Exchange::open_socket(void* self, curlsocktype, curl_sockaddr* to) {
  std::array<char, NI_MAXHOST> text{};
  const int code = getnameinfo(&to->addr, to->addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  if (code != 0 || base::is_private_address(text.data())) {
    static_cast<Exchange*>(self)->response_.refused = text.data();
    return CURL_SOCKET_BAD;
  }
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

} // namespace holdfast::http
