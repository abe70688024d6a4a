#include "lib/robots/fetch.hpp"

#include "lib/robots/rules.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace holdfast::robots {

namespace {

constexpr long kMostRedirects = 5; // RFC 9309, 2.3.1.2

struct Transfer {
  std::string body;
  bool full{false};
  bool private_address{false};
  const std::atomic<bool>* abandon{nullptr};
};

std::size_t take(char* data, std::size_t, std::size_t size, void* to) {
  auto& transfer = *static_cast<Transfer*>(to);
  const std::size_t room = kMostBytes - transfer.body.size();
  transfer.body.append(data, std::min(room, size));
  transfer.full = size > room;
  return transfer.full ? 0 : size; // 0 ends the transfer
}

int progress(void* of, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(of)->abandon->load() ? 1 : 0;
}

curl_socket_t open_public(void* of, curlsocktype, curl_sockaddr* address) {
  char text[NI_MAXHOST];
  if (getnameinfo(&address->addr, address->addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0 ||
      base::is_private_address(text)) {
    static_cast<Transfer*>(of)->private_address = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Through a proxy it is the proxy's address that is connected to, and the proxy that decides.
bool behind_proxy() {
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return true;
  return false;
}

} // namespace

std::string origin_of(const base::Url& url) {
  const bool usual = url.port == (url.scheme == "https" ? 443 : 80);
  const std::string host = url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  return url.scheme + "://" + host + (usual ? "" : ":" + std::to_string(url.port));
}

Fetched fetch(const std::string& origin, const FetchOptions& options, const std::atomic<bool>& abandon) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> owner(curl_easy_init(), &curl_easy_cleanup);
  CURL* curl = owner.get();
  Fetched fetched;
  if (ready != CURLE_OK || curl == nullptr) {
    fetched.error = "no HTTP client";
    return fetched;
  }
  Transfer transfer;
  transfer.abandon = &abandon;
  const std::string url = origin + "/robots.txt";
  const std::string agent = options.user_agent.empty() ? std::string(kAgent) : options.user_agent;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, agent.c_str());
  curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, options.check_certificates ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, options.check_certificates ? 2L : 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.timeout.count() / 2));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  if (!options.allow_private && !behind_proxy()) {
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &open_public);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &transfer);
  }
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (code != CURLE_OK && !transfer.full) {
    if (code == CURLE_TOO_MANY_REDIRECTS) return fetched; // as if there were none
    fetched.error = transfer.private_address ? "it leads to an address that is not public" : curl_easy_strerror(code);
    return fetched;
  }
  fetched.status = static_cast<int>(status);
  curl_off_t wait = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
  if (wait > 0) fetched.retry_after = std::chrono::seconds(std::min<curl_off_t>(wait, 86400));
  if (status >= 200 && status < 300)
    fetched.rules = std::move(transfer.body);
  else if (status == 429 || status < 400 || status >= 500)
    fetched.error = "status " + std::to_string(status);
  return fetched;
}

} // namespace holdfast::robots
