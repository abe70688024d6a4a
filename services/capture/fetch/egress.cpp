#include "services/capture/fetch/egress.hpp"

#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/url.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace holdfast::capture {

namespace {

// The whole answer to a request, or what came of it within half a minute.
std::string ask(const std::string& request) {
  const auto proxy = egress_proxy();
  const base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(proxy.c_str() + proxy.rfind(':') + 1)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval timeout{30, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    return {};
  std::string answer;
  char piece[1024];
  while (answer.find("\r\n\r\n") == std::string::npos) {
    const auto count = ::recv(socket.get(), piece, sizeof piece, 0);
    if (count <= 0) break;
    answer.append(piece, static_cast<std::size_t>(count));
  }
  return answer;
}

} // namespace

std::vector<OtherProxy> other_proxies() {
  std::vector<OtherProxy> proxies;
  for (const auto& [scheme, small, large] :
       {std::tuple{"http", "http_proxy", "HTTP_PROXY"}, std::tuple{"https", "https_proxy", "HTTPS_PROXY"}}) {
    OtherProxy proxy{scheme, Job::setting(small, Job::setting(large)), "", ""};
    if (proxy.url.empty()) continue;
    // By hand: a password may hold what ends the authority of a URL.
    const auto begin = proxy.url.find("://") == std::string::npos ? 0 : proxy.url.find("://") + 3;
    const auto login =
        proxy.url.substr(begin, proxy.url.rfind('@') == std::string::npos ? 0 : proxy.url.rfind('@') - begin);
    if (!login.empty()) proxy.url.erase(begin, login.size() + 1);
    const auto colon = std::min(login.find(':'), login.size());
    proxy.user = base::percent_decode(login.substr(0, colon));
    proxy.password = base::percent_decode(login.substr(std::min(colon + 1, login.size())));
    proxies.push_back(std::move(proxy));
  }
  return proxies;
}

Json proxy_login(const std::string& origin) {
  Json answer{{"response", "CancelAuth"}};
  const auto server = [](const std::string& url) {
    const auto scheme = url.find("://");
    const auto parsed = base::try_parse_url(scheme == std::string::npos ? "http://" + url : url);
    return parsed ? parsed->host + ":" + std::to_string(parsed->port) : "";
  };
  for (const auto& proxy : other_proxies())
    if (!proxy.user.empty() && server(proxy.url) == server(origin))
      answer = {{"response", "ProvideCredentials"}, {"username", proxy.user}, {"password", proxy.password}};
  return answer;
}

std::string egress_proxy() {
  const auto endpoint = Job::setting("HOLDFAST_EGRESS");
  return endpoint.substr(0, endpoint.find('#'));
}

std::string egress_reason(const Headers& headers) {
  const auto endpoint = Job::setting("HOLDFAST_EGRESS");
  const auto value = header_of(headers, kEgressHeader),
             key = endpoint.substr(std::min(endpoint.find('#'), endpoint.size()));
  return key.size() > 1 && value.starts_with(key.substr(1) + " ") ? value.substr(key.size()) : "";
}

std::string egress_reason(const std::string& url) {
  const auto parsed = base::try_parse_url(url);
  if (!parsed || egress_proxy().empty()) return {};
  const auto answer =
      ask("CONNECT " + base::host_in_url(parsed->host) + ":" + std::to_string(parsed->port) + " HTTP/1.1\r\n\r\n");
  const auto at = lower_case(answer).find(std::string("\r\n") + kEgressHeader + ": ");
  if (at == std::string::npos) return {};
  const auto value = answer.find(": ", at) + 2;
  return egress_reason(Headers{{kEgressHeader, answer.substr(value, answer.find("\r\n", value) - value)}});
}

Ending egress_ending(const std::string& reason, Json detail) {
  const bool refusal = reason.starts_with("refused:");
  return refusal ? failed(reason, std::move(detail)) : unreachable(reason, std::move(detail));
}

} // namespace holdfast::capture
