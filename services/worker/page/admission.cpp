#include "services/worker/page/admission.hpp"

#include "lib/base/address.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/log.hpp"
#include "lib/robots/robots.hpp"
#include "services/worker/turn/claim_conditions.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

namespace holdfast::worker {

namespace {

constexpr std::chrono::milliseconds kRobotsElsewhere{1000}; // while another worker fetches it
constexpr std::chrono::hours kRobotsKeep{24};               // as RFC 9309 recommends
constexpr std::chrono::minutes kRobotsKeepTrouble{1};
constexpr std::size_t kHosts = 20;     // of a page and its redirects, whose rate limits are believed
constexpr std::size_t kRedirects = 20; // of one page, that are judged

Failure refused(std::string reason) { return {Failure::Kind::refused, std::move(reason)}; }

Failure later(std::chrono::milliseconds delay, std::string reason) {
  Failure failure{Failure::Kind::later, std::move(reason)};
  failure.delay = delay;
  return failure;
}

robots::FetchOptions fetch_options(const hooks::Options& options, bool allow_private) {
  robots::FetchOptions fetch;
  if (const auto agent = options.find("USER_AGENT"); agent != options.end()) fetch.user_agent = agent->second;
  fetch.check_certificates = hooks::enabled(options, "CHECK_SSL_VALIDITY", true);
  fetch.allow_private = allow_private;
  return fetch;
}

} // namespace

awaitable<void> Admission::judge_page() {
  if (!context_.options.allow_private) co_await require_public();
  if (!claim_.robots) co_return;
  // Parsed before the first request for the page.
  const auto url = base::parse_url(claim_.url);
  const std::string rule = co_await robots_rule_against(url);
  if (!rule.empty()) throw refused("the site's robots.txt forbids it (Disallow: " + rule + ")");
}

// Checks the addresses of a URL that may have been private all along (a name that resolves to 127.0.0.1). A name that
// does not exist is no refusal: that error ends the page as failed.
awaitable<void> Admission::require_public() {
  std::string where;
  try {
    where = co_await base::on_thread(context_.resolver, [&] { return base::private_address_of(claim_.host); });
  } catch (const base::Error& error) {
    if (error.error_class() == base::ErrorClass::unavailable) context_.claim_conditions.rest(error.what());
    throw;
  }
  check_();
  if (!where.empty()) throw refused(where + " (" + base::kAllowPrivateHint + ")");
}

// Checks redirects. The hook follows them, so the target is checked when that hook has ended: no later hook requests
// it, and nothing of it is kept.
awaitable<void> Admission::judge_redirects(const std::vector<std::string>& urls) {
  if (context_.options.allow_private && !claim_.robots) co_return;
  for (const auto& text : urls) {
    const auto url = base::try_parse_url(text);
    if (!url || url->text == claim_.url || judged_.contains(url->text)) continue;
    if (judged_.size() >= kRedirects)
      throw refused("it redirects to more URLs than are judged (" + std::to_string(kRedirects) + ")");
    std::string where;
    try {
      if (!context_.options.allow_private)
        where = co_await base::on_thread(context_.resolver, [&] { return base::private_address_of(url->host); });
    } catch (const base::Error&) { // an unknown name leads nowhere
    }
    check_();
    if (!where.empty()) throw refused("it redirects to " + url->text + ", and " + where);
    std::string rule; // not by "?:", within which g++ 12 destroys what is awaited twice
    if (claim_.robots) rule = co_await robots_rule_against(*url);
    if (!rule.empty())
      throw refused("it redirects to " + url->text + ", which the robots.txt of that site forbids (Disallow: " + rule +
                    ")");
    judged_.insert(url->text);
  }
}

// The rule of its site's robots.txt that forbids a URL, or nothing. The answer is shared by all workers.
awaitable<std::string> Admission::robots_rule_against(const base::Url& url) {
  const std::string origin = url.origin();
  const bool own = origin == base::parse_url(claim_.url).origin(); // whose delays its claim has kept
  auto known = co_await context_.retry.repeat(&store::robots_get, context_.worker_id, claim_.lease, origin);
  if (known.fetch) co_await fetch_robots(origin, url, own, known);
  if (own && known.too_early) throw later(std::chrono::milliseconds(0), "robots.txt asks for a delay");
  if (known.state == "wanted") throw later(kRobotsElsewhere, origin + "/robots.txt is just being fetched");
  if (known.state == "unreachable")
    throw base::Error(base::ErrorClass::temporary, origin + "/robots.txt cannot be read: " + known.error);
  co_return robots::forbidding_rule(robots::parse(known.rules), url.target()).value_or("");
}

// Asking for it is a request to the site like any other, made within its limits: a page of a site with a delay goes
// back into the queue, to be claimed once the delay is over.
awaitable<void> Admission::fetch_robots(const std::string& origin, const base::Url& url, bool own,
                                        store::Robots& known) {
  const auto options = fetch_options(options_, context_.options.allow_private);
  const auto fetched =
      co_await base::on_thread(context_.resolver, [&] { return robots::fetch(origin, options, abandon_); });
  check_();
  store::RobotsAnswer answer;
  answer.status = fetched.status;
  answer.rules = fetched.rules;
  answer.error = fetched.error;
  answer.keep = fetched.error.empty() ? std::chrono::milliseconds(kRobotsKeep) : kRobotsKeepTrouble;
  if (const auto delay = robots::parse(fetched.rules).delay)
    answer.delay = std::min(*delay, context_.options.robots_delay_max);
  const bool delayed = co_await context_.retry.repeat(&store::robots_put, context_.worker_id, origin, url.host, answer);
  if (fetched.status == 429 || fetched.status == 503)
    co_await context_.retry.repeat(&store::host_rate_limited, url.host, fetched.status, fetched.retry_after,
                                   context_.hostname);
  check_();
  {
    const base::LogAbout about({claim_.lease.crawl_id, claim_.lease.snapshot_id, claim_.lease.fence, "", ""});
    spdlog::info("{}/robots.txt: {}", origin,
                 fetched.error.empty() ? "status " + std::to_string(fetched.status) : fetched.error);
  }
  if (own && delayed && fetched.error.empty())
    throw later(std::chrono::milliseconds(0), "robots.txt was asked for first");
  known.state = fetched.error.empty() ? "known" : "unreachable";
  known.rules = fetched.rules;
  known.error = fetched.error;
}

// Only the page's own hosts are slowed down by a hook's report: others would stop in all crawls. The page is due again
// with its host.
awaitable<std::optional<Failure>> Admission::heed_rate_limits(const hooks::HookOutcome& outcome,
                                                              archive::ResultView& result) {
  for (const auto& location : outcome.redirects) {
    const auto url = base::try_parse_url(location);
    if (url && hosts_.size() < kHosts) hosts_.insert(url->host);
  }
  std::optional<Failure> slower;
  const bool failed = result.status == "failed";
  std::set<std::string> ignored;
  for (const auto& limit : outcome.rate_limits) {
    const auto site = base::host_named(limit.host.empty() ? claim_.host : limit.host);
    if (!site || !hosts_.contains(*site)) {
      ignored.insert(limit.host);
      continue;
    }
    std::optional<std::chrono::milliseconds> wait;
    if (limit.retry_after_seconds)
      wait = std::chrono::milliseconds(
          static_cast<std::int64_t>(std::clamp(*limit.retry_after_seconds, 0.0, 86400.0) * 1000));
    const auto left_alone =
        co_await context_.retry.repeat(&store::host_rate_limited, *site, limit.status, wait, context_.hostname);
    {
      const auto about = log_about(claim_.lease, result.plugin, result.hook);
      spdlog::info("{} requested a pause of {} s (status {})", *site, limit.retry_after_seconds.value_or(0),
                   limit.status);
    }
    if (*site != claim_.host || !failed || claim_.attempts > context_.options.rate_limit_retries) continue;
    slower = Failure{Failure::Kind::later,
                     fmt::format("the site asked us to slow down (status {}), try {} of {}", limit.status,
                                 claim_.attempts, context_.options.rate_limit_retries + 1)};
    slower->delay = left_alone;
    slower->spend = true;
  }
  if (!ignored.empty()) {
    std::string hosts = *ignored.begin();
    if (ignored.size() > 1) hosts += fmt::format(" and {} more", ignored.size() - 1);
    const auto about = log_about(claim_.lease, result.plugin, result.hook);
    spdlog::warn("{}: {}/{} reports a rate limit of {}, to which the page does not lead: ignored", claim_.url,
                 result.plugin, result.hook, hosts);
    result.add_error("the rate limit of " + hosts + " is ignored: the page does not lead there");
  }
  co_return slower;
}

} // namespace holdfast::worker
