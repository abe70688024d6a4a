#include "lib/robots/fetch.hpp"

#include "lib/base/error.hpp"
#include "lib/http/client.hpp"
#include "lib/robots/rules.hpp"

namespace holdfast::robots {

namespace {

constexpr int kMostRedirects = 5; // RFC 9309, 2.3.1.2

} // namespace

Fetched fetch(const std::string& origin, const FetchOptions& options, const std::atomic<bool>& abandon) {
  http::Request request;
  request.url = origin + "/robots.txt";
  request.user_agent = options.user_agent.empty() ? std::string(kAgent) : options.user_agent;
  request.allow_private = options.allow_private;
  request.check_certificates = options.check_certificates;
  request.compressed = true;
  request.redirects = kMostRedirects;
  request.timeout = options.timeout;
  request.connect_timeout = options.timeout / 2;
  request.abandon = &abandon;
  request.most_bytes = kMostBytes;
  Fetched fetched;
  http::Response response;
  try {
    response = http::Client().send(request);
  } catch (const base::Error& error) {
    response.error = error.what();
  }
  if (response.too_many_redirects) return fetched; // as if there were none
  if (response.status == 0) {
    fetched.error = response.refused.empty() ? response.error : "it leads to an address that is not public";
    return fetched;
  }
  fetched.status = response.status;
  fetched.retry_after = response.retry_after;
  if (response.good())
    fetched.rules = std::move(response.body);
  else if (response.status == 429 || response.status < 400 || response.status >= 500)
    fetched.error = "status " + std::to_string(response.status);
  return fetched;
}

} // namespace holdfast::robots
