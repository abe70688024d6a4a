#include "services/capture/fetch/fetch.hpp"

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/link.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/fetch/egress.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

namespace holdfast::capture {

namespace {

constexpr int kMostRedirects = 10;
constexpr double kLongestSilence = 30; // seconds

http::Request request_for(const Job& job, const FetchOptions& options) {
  const double silence = std::min(options.share * job.remaining(), kLongestSilence);
  http::Request request;
  request.method = options.head ? "HEAD" : "GET";
  request.headers = {"Accept: " + options.accept, "Accept-Encoding: identity", "Accept-Language: " + languages()};
  request.user_agent = user_agent(job);
  request.check_certificates = Job::flag("CHECK_SSL_VALIDITY", true);
  request.proxy = egress_proxy();
  request.cookies = Job::setting("COOKIES_FILE");
  request.connect_timeout = std::chrono::milliseconds(static_cast<long>(silence * 1000));
  request.silence = std::chrono::seconds(std::max(1L, static_cast<long>(std::ceil(silence))));
  request.most_bytes = options.most_bytes;
  request.broken_off = true;
  return request;
}

[[noreturn]] void fail(const Job& job, const http::Request& request, const http::Response& answer,
                       const Json& redirects) {
  const bool own = formats::request_url(job.url()) == request.url && redirects.empty();
  const Json detail = {{"redirects", redirects}};
  if (const auto reason = egress_reason(answer.headers); !reason.empty()) {
    auto ending = egress_ending(reason, detail);
    ending.unreachable = ending.unreachable && own;
    throw ending;
  }
  const auto reason = host_in(request.url) + ": " + answer.error;
  throw answer.is_final && own ? unreachable(reason, detail) : failed(reason, detail);
}

std::unique_ptr<http::Client> make_client() {
  try {
    return std::make_unique<http::Client>();
  } catch (const base::Error& error) { // there is no libcurl
    throw skipped(error.what());
  }
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
  const auto client = make_client();
  auto request = request_for(job, options);
  request.url = formats::request_url(url);
  Json redirects = Json::array();
  const bool of_the_page = url == job.url();
  for (;;) {
    auto answer = client->send(request);
    if (answer.status == 0) fail(job, request, answer, redirects);
    const auto location = answer.header("location");
    const int status = answer.status;
    const bool redirect = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
    if (!redirect || location.empty()) return {std::move(answer), request.url, std::move(redirects)};
    const auto joined = formats::join_url(request.url, location);
    const auto target = joined && base::is_web_url(*joined) ? formats::request_url(*joined) : location;
    redirects.push_back({{"url", request.url}, {"status", status}, {"location", target}});
    const Json detail = {{"redirects", redirects}};
    if (!base::is_web_url(target))
      throw failed("redirected to " + target.substr(0, 200) + ", which is not http or https", detail);
    if (redirects.size() > kMostRedirects)
      throw failed("more than " + std::to_string(kMostRedirects) + " redirects", detail);
    if (of_the_page) job.report_redirect(request.url, target, status);
    refuse_private(job.url(), target);
    request.url = target;
  }
}

} // namespace holdfast::capture
