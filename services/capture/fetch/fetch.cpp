#include "services/capture/fetch/fetch.hpp"

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/url.hpp"
#include "lib/formats/link.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/fetch/egress.hpp"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace holdfast::capture {

namespace {

constexpr int kMostRedirects = 10;
constexpr double kLongestSilence = 30; // seconds

// The functions of libcurl that are used here.
struct Curl {
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_setopt) set;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) info;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_strerror) error;
  decltype(&::curl_slist_append) append;
  decltype(&::curl_slist_free_all) free_all;
};

const Curl& curl() {
  static const Curl functions = [] {
    void* library = nullptr;
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
      if (library == nullptr) library = ::dlopen(name, RTLD_LAZY | RTLD_GLOBAL);
    if (library == nullptr) throw skipped("libcurl is not installed (apt install libcurl4)");
    Curl loaded{};
    const auto load = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) throw failed(std::string("libcurl lacks ") + name);
    };
    load(loaded.init, "curl_easy_init");
    load(loaded.set, "curl_easy_setopt");
    load(loaded.perform, "curl_easy_perform");
    load(loaded.info, "curl_easy_getinfo");
    load(loaded.cleanup, "curl_easy_cleanup");
    load(loaded.error, "curl_easy_strerror");
    load(loaded.append, "curl_slist_append");
    load(loaded.free_all, "curl_slist_free_all");
    return loaded;
  }();
  return functions;
}

struct Transfer {
  const FetchOptions* options{nullptr};
  Response* response{nullptr};
  bool enough{false}; // ended here, not by the network
};

std::size_t take_header(char* bytes, std::size_t size, std::size_t count, void* pointer) {
  auto& response = *static_cast<Transfer*>(pointer)->response;
  std::string_view line(bytes, size * count);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n'))
    line.remove_suffix(1);
  if (line.starts_with("HTTP/")) { // the head of another response: the one before was interim
    response.headers.clear();
    const auto status = line.find(' ');
    const auto reason = status == std::string_view::npos ? status : line.find(' ', status + 1);
    response.reason = reason == std::string_view::npos ? "" : std::string(line.substr(reason + 1));
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    auto value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    response.headers.emplace_back(line.substr(0, colon), value);
  }
  return size * count;
}

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* pointer) {
  auto& transfer = *static_cast<Transfer*>(pointer);
  const std::size_t total = size * count;
  auto& body = transfer.response->body;
  const auto room = transfer.options->most_bytes - std::min(body.size(), transfer.options->most_bytes);
  body.append(bytes, std::min(room, total));
  if (room >= total) return total;
  transfer.enough = true;
  transfer.response->truncated = transfer.options->most_bytes > 0;
  return 0;
}

bool is_bad_certificate(CURLcode code, long verification) {
  // Certificates that no client accepts: expired, not valid yet, self-signed, of another name or address. Others (an
  // issuer that is unknown here) may be known to a browser. 0: the name, which libcurl checks itself.
  constexpr long kBad[] = {0, 9, 10, 18, 62, 64};
  return code == CURLE_PEER_FAILED_VERIFICATION &&
         std::find(std::begin(kBad), std::end(kBad), verification) != std::end(kBad);
}

class Client {
public:
  explicit Client(const FetchOptions& options) : handle_(curl().init()), options_(options) {
    if (handle_ == nullptr) throw failed("libcurl cannot be started");
  }
  ~Client() {
    curl().free_all(headers_);
    curl().cleanup(handle_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void prepare(const Job& job);
  // One request, no redirects.
  void perform(const Job& job, const std::string& url, Response& response);

private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    curl().set(handle_, option, value);
  }
  std::string explain(CURLcode code, long os_error) const;

  CURL* handle_;
  curl_slist* headers_{nullptr};
  const FetchOptions& options_;
  char error_[CURL_ERROR_SIZE]{};
};

void Client::prepare(const Job& job) {
  headers_ = curl().append(headers_, ("Accept: " + options_.accept).c_str());
  headers_ = curl().append(headers_, "Accept-Encoding: identity");
  set(CURLOPT_HTTPHEADER, headers_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_HEADERFUNCTION, take_header);
  set(CURLOPT_WRITEFUNCTION, take_body);
  set(CURLOPT_COOKIEFILE, Job::setting("COOKIES_FILE").c_str()); // "" too: cookies are kept across redirects
  set(CURLOPT_HTTP09_ALLOWED, 0L);
  if (options_.head) set(CURLOPT_NOBODY, 1L);
  set(CURLOPT_USERAGENT, user_agent(job).c_str());
  if (!Job::flag("CHECK_SSL_VALIDITY", true)) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (const auto proxy = egress_proxy(); !proxy.empty()) {
    set(CURLOPT_PROXY, proxy.c_str());
    set(CURLOPT_NOPROXY, "");
    set(CURLOPT_HTTPPROXYTUNNEL, 1L); // so that the server sees the request as it is
  }
  const double silence = std::min(options_.share * job.remaining(), kLongestSilence);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(silence * 1000));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(std::ceil(silence))));
}

std::string Client::explain(CURLcode code, long os_error) const {
  switch (code) {
  case CURLE_COULDNT_RESOLVE_HOST:
    return "the host name does not resolve";
  case CURLE_OPERATION_TIMEDOUT:
    return "no answer within the time limit";
  case CURLE_COULDNT_CONNECT:
    if (os_error != 0) return std::strerror(static_cast<int>(os_error));
    break;
  case CURLE_PEER_FAILED_VERIFICATION:
    return std::string("certificate: ") + error_;
  default:
    break;
  }
  return error_[0] != '\0' ? error_ : curl().error(code);
}

void Client::perform(const Job& job, const std::string& url, Response& response) {
  Transfer transfer{&options_, &response, false};
  response.headers.clear();
  response.body.clear();
  response.truncated = false;
  error_[0] = '\0';
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEDATA, &transfer);
  const auto code = curl().perform(handle_);
  long status = 0, os_error = 0, verification = 0;
  curl().info(handle_, CURLINFO_RESPONSE_CODE, &status);
  curl().info(handle_, CURLINFO_OS_ERRNO, &os_error);
  curl().info(handle_, CURLINFO_SSL_VERIFYRESULT, &verification);
  response.status = static_cast<int>(status);
  if (code == CURLE_OK || (transfer.enough && status != 0)) return;
  const auto own = formats::request_url(job.url()) == url && response.redirects.empty();
  if (const auto reason = egress_reason(response.headers); status == 0 && !reason.empty()) {
    auto ending = egress_ending(reason, {{"redirects", response.redirects}});
    ending.unreachable = ending.unreachable && own;
    throw ending;
  }
  double connected = 0;
  curl().info(handle_, CURLINFO_CONNECT_TIME, &connected);
  if (status != 0 && (!response.body.empty() || code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR)) {
    response.truncated = true; // broken off: keep what came
    return;
  }
  const auto reason = host_in(url) + ": " + explain(code, os_error);
  // A server that closes the connection or stays silent may answer others.
  const bool final = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
                     is_bad_certificate(code, verification) || (code == CURLE_OPERATION_TIMEDOUT && connected == 0);
  const Json detail = {{"redirects", response.redirects}};
  throw final && own ? unreachable(reason, detail) : failed(reason, detail);
}

} // namespace

bool is_private(const std::string& host) {
  if (base::is_private_host(host)) return true;
  try {
    return !base::private_address_of(host).empty();
  } catch (const base::Error&) {
    return false; // the fetch itself says it better
  }
}

void refuse_private(const std::string& page_url, const std::string& url) {
  const auto page = host_in(page_url), host = host_in(url);
  if (host != page && is_private(host) && !is_private(page))
    throw failed("refused: " + page + " points to the private address " + host);
}

Response fetch(Job& job, const std::string& url, const FetchOptions& options) {
  Client client(options);
  client.prepare(job);
  Response response;
  response.url = formats::request_url(url);
  const bool of_the_page = url == job.url();
  for (;;) {
    client.perform(job, response.url, response);
    const auto location = header_of(response.headers, "location");
    const int status = response.status;
    const bool redirect = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
    if (!redirect || location.empty()) return response;
    const auto joined = formats::join_url(response.url, location);
    const auto target = joined && formats::is_web_url(*joined) ? formats::request_url(*joined) : location;
    response.redirects.push_back({{"url", response.url}, {"status", status}, {"location", target}});
    const Json detail = {{"redirects", response.redirects}};
    if (!formats::is_web_url(target))
      throw failed("redirected to " + target.substr(0, 200) + ", which is not http or https", detail);
    if (response.redirects.size() > kMostRedirects)
      throw failed("more than " + std::to_string(kMostRedirects) + " redirects", detail);
    if (of_the_page) job.report_redirect(response.url, target, status);
    refuse_private(job.url(), target);
    response.url = target;
  }
}

} // namespace holdfast::capture
