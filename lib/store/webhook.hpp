#pragma once
// Webhooks and what is to be sent to them. One free function per SQL function (migrations/functions/82_webhook.sql),
// same name. Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

// A claimed delivery: to be reported by (id, fence) before the claim's lease is over.
struct Delivery {
  std::int64_t id{0}, fence{0};
  int attempts{0};
  std::string message_id, webhook, url, event, payload;
};

// Channel that is rung when something is to be sent.
inline constexpr const char* kWebhookChannel = "holdfast_webhook";

// `names`: the webhooks that the caller can sign for; nothing: all.
std::vector<Delivery> webhook_claim(pg::Connection& connection, const std::string& owner,
                                    const std::optional<std::vector<std::string>>& names,
                                    std::chrono::milliseconds lease, int room);
// `error` empty: delivered. `status` 0: there was no answer. False: the claim was over, nothing is changed.
bool webhook_report(pg::Connection& connection, const Delivery& delivery, int status, const std::string& error,
                    bool gone);
void webhook_release(pg::Connection& connection, const Delivery& delivery);
// Until something may be due; nothing: nothing waits.
std::optional<std::chrono::milliseconds> webhook_wait(pg::Connection& connection,
                                                      const std::optional<std::vector<std::string>>& names);

// The address in its normal form. Throws Error(refused) for what is no URL, and for a host that is not
// public unless `allow_private`.
std::string webhook_url(const std::string& text, bool allow_private);
// For people; each throws Error(refused) for a name that none has.
// No events: all of them.
void webhook_set(pg::Connection& connection, const std::string& name, const std::string& url,
                 const std::vector<std::string>& events, const std::string& by);
void webhook_enable(pg::Connection& connection, const std::string& name, bool enabled, const std::string& by);
void webhook_remove(pg::Connection& connection, const std::string& name);
std::int64_t webhook_retry(pg::Connection& connection, const std::string& name, const std::string& by);
std::int64_t webhook_test(pg::Connection& connection, const std::string& name, const std::string& by);

} // namespace holdfast::store
