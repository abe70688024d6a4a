#include "lib/http/exchange.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

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
  // Once, thread-safe by being static.
  static const bool started = libcurl().global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  Handle handle(started ? libcurl().easy_init() : nullptr);
  if (!handle) throw base::Error(base::ErrorClass::system, "libcurl cannot be started");
  return handle;
}

Exchange::Exchange(Handle handle, Request request)
    : handle_(std::move(handle)), request_(std::move(request)), unsent_(request_.body) {
  for (const auto& header : request_.headers)
    headers_.reset(libcurl().slist_append(headers_.release(), header.c_str()));
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, request_.redirects > 0 ? 1L : 0L);
  set(CURLOPT_MAXREDIRS, static_cast<long>(request_.redirects));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTP09_ALLOWED, 0L);
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_USERAGENT, request_.user_agent.c_str());
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_SSL_VERIFYPEER, request_.check_certificates ? 1L : 0L);
  set(CURLOPT_SSL_VERIFYHOST, request_.check_certificates ? 2L : 0L);
  if (request_.compressed) set(CURLOPT_ACCEPT_ENCODING, "");
  if (request_.cookies) set(CURLOPT_COOKIEFILE, request_.cookies->c_str());
  if (request_.signature) {
    set(CURLOPT_AWS_SIGV4, ("aws:amz:" + request_.signature->region + ":s3").c_str());
    set(CURLOPT_USERNAME, request_.signature->key_id.c_str());
    set(CURLOPT_PASSWORD, request_.signature->secret.c_str());
  }
  set(CURLOPT_WRITEFUNCTION, &Exchange::on_write);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  set(CURLOPT_HEADERDATA, this);
  set_limits();
  if (request_.mail)
    set_mail();
  else
    set_body();
  set_guard();
}

void Exchange::set_limits() {
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.connect_timeout.count()));
  if (request_.silence.count() > 0) {
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.silence.count()));
  }
  if (request_.abandon == nullptr) return;
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &Exchange::on_progress);
  set(CURLOPT_XFERINFODATA, this);
}

void Exchange::set_body() {
  if (request_.method == "PUT" || request_.method == "POST" || request_.method == "PATCH") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_READFUNCTION, &Exchange::on_read);
    set(CURLOPT_READDATA, this);
    set(CURLOPT_SEEKFUNCTION, &Exchange::on_seek);
    set(CURLOPT_SEEKDATA, this);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  }
  if (request_.method == "HEAD")
    set(CURLOPT_NOBODY, 1L);
  else if (request_.method != "GET")
    set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
}

void Exchange::set_mail() {
  const auto& mail = *request_.mail;
  set(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  set(CURLOPT_USE_SSL, mail.without_tls ? static_cast<long>(CURLUSESSL_TRY) : static_cast<long>(CURLUSESSL_ALL));
  if (!mail.ca_file.empty()) set(CURLOPT_CAINFO, mail.ca_file.c_str());
  set(CURLOPT_MAIL_FROM, mail.from.c_str());
  recipients_.reset(libcurl().slist_append(nullptr, mail.to.c_str()));
  set(CURLOPT_MAIL_RCPT, recipients_.get());
  if (!mail.user.empty()) {
    set(CURLOPT_USERNAME, mail.user.c_str());
    set(CURLOPT_PASSWORD, mail.password.c_str());
  }
  mime_.reset(mime_of(mail.parts));
  set(CURLOPT_MIMEPOST, mime_.get());
}

// libcurl copies the bytes.
curl_mime* Exchange::mime_of(const std::vector<MailPart>& parts) {
  curl_mime* const mime = libcurl().mime_init(handle_.get());
  for (const auto& part : parts) {
    curl_mimepart* const added = libcurl().mime_addpart(mime);
    libcurl().mime_type(added, part.type.c_str());
    if (!part.parts.empty()) {
      libcurl().mime_subparts(added, mime_of(part.parts));
      continue;
    }
    libcurl().mime_data(added, part.bytes.data(), part.bytes.size());
    libcurl().mime_encoder(added, "base64");
    if (part.id.empty()) continue;
    curl_slist* headers = libcurl().slist_append(nullptr, ("Content-ID: <" + part.id + ">").c_str());
    headers = libcurl().slist_append(headers, "Content-Disposition: inline");
    libcurl().mime_headers(added, headers, 1);
  }
  return mime;
}

void Exchange::set_guard() {
  if (!request_.use_proxy || !request_.proxy.empty()) set(CURLOPT_PROXY, request_.proxy.c_str());
  if (!request_.proxy.empty()) {
    set(CURLOPT_NOPROXY, "");
    set(CURLOPT_HTTPPROXYTUNNEL, 1L);
  }
  if (request_.allow_private || (request_.use_proxy && proxy_in_environment())) return;
  set(CURLOPT_OPENSOCKETFUNCTION, &Exchange::open_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
}

Handle Exchange::release() {
  libcurl().easy_reset(handle_.get());
  return std::move(handle_);
}

std::string Exchange::explain(CURLcode code) const {
  const auto os_error = info<long>(CURLINFO_OS_ERRNO);
  if (code == CURLE_COULDNT_RESOLVE_HOST) return "the host name does not resolve";
  if (code == CURLE_OPERATION_TIMEDOUT) return "no answer within the time limit";
  if (code == CURLE_COULDNT_CONNECT && os_error != 0) return std::strerror(static_cast<int>(os_error));
  const std::string said = error_.front() != '\0' ? error_.data() : libcurl().easy_strerror(code);
  return code == CURLE_PEER_FAILED_VERIFICATION ? "certificate: " + said : said;
}

// A server that closes the connection or stays silent may answer others.
bool Exchange::is_final(CURLcode code) const {
  // Certificates that no client accepts: expired, not valid yet, self-signed, of another name or address. Others (an
  // unknown issuer) may be known to a browser. 0: the name, which libcurl checks itself.
  constexpr std::array kBad{0L, 9L, 10L, 18L, 62L, 64L};
  if (code == CURLE_PEER_FAILED_VERIFICATION)
    return std::find(kBad.begin(), kBad.end(), info<long>(CURLINFO_SSL_VERIFYRESULT)) != kBad.end();
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
         (code == CURLE_OPERATION_TIMEDOUT && info<double>(CURLINFO_CONNECT_TIME) == 0);
}

Response Exchange::response(CURLcode code) {
  if (failure_) std::rethrow_exception(failure_);
  const auto status = static_cast<int>(info<long>(CURLINFO_RESPONSE_CODE));
  response_.too_many_redirects = code == CURLE_TOO_MANY_REDIRECTS;
  const bool too_long = full_ && !request_.most_bytes;
  const bool broken_off = code != CURLE_OK && !full_ && request_.broken_off && status != 0 &&
                          (!response_.body.empty() || code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR);
  response_.truncated = broken_off || (full_ && request_.most_bytes > 0);
  if (too_long || (code != CURLE_OK && !full_ && !broken_off)) {
    response_.error = too_long ? "more than " + std::to_string(kMostBody >> 20) + " MiB in one answer" : explain(code);
    response_.is_final = !too_long && is_final(code);
    response_.body.clear();
    return std::move(response_);
  }
  response_.status = status;
  if (const auto wait = info<curl_off_t>(CURLINFO_RETRY_AFTER); wait > 0)
    response_.retry_after = std::chrono::seconds(std::min(wait, kLongestRetryAfter));
  return std::move(response_);
}

std::string Response::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (base::lower_case(key) == name) return value;
  return {};
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
  const auto status = exchange.info<long>(CURLINFO_RESPONSE_CODE);
  try {
    if (exchange.request_.sink && status >= 200 && status < 300) {
      exchange.request_.sink(bytes);
      return bytes.size();
    }
    const auto room = exchange.request_.most_bytes.value_or(kMostBody) - exchange.response_.body.size();
    exchange.response_.body += bytes.substr(0, room);
    exchange.full_ = bytes.size() > room;
    return exchange.full_ ? 0 : bytes.size();
  } catch (...) {
    exchange.failure_ = std::current_exception(); // must not pass through C
    return 0;
  }
}

std::size_t Exchange::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& response = static_cast<Exchange*>(self)->response_;
  const auto line = base::trimmed({data, size * count});
  if (line.starts_with("HTTP/")) { // the head of another answer: the one before was interim, or led here
    response.headers.clear();
    const auto status = std::min(line.find(' '), line.size());
    response.reason = line.substr(std::min(line.find(' ', status + 1), line.size() - 1) + 1);
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    response.headers.emplace_back(line.substr(0, colon), base::trimmed(line.substr(colon + 1)));
  }
  return size * count;
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

namespace {

void* library() {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (void* const loaded = ::dlopen(name, RTLD_LAZY)) return loaded;
  throw base::Error(base::ErrorClass::unavailable, "libcurl is not installed (apt install libcurl4)");
}

} // namespace

Symbol::Symbol(const char* name) {
  static void* const from = library();
  address = ::dlsym(from, name);
  if (address == nullptr) throw base::Error(base::ErrorClass::unavailable, std::string("libcurl lacks ") + name);
}

const Libcurl& libcurl() {
  static const Libcurl functions;
  return functions;
}

} // namespace holdfast::http
