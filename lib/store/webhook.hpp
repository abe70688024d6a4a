#pragma once
// Webhooks and their deliveries. One free function per SQL function (migrations/functions/82_webhook.sql), same name.
// Blocking; call on the thread that owns the connection.

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

// Lists the webhooks that a sender can reach.
struct Reach {
  std::optional<std::vector<std::string>> names; // webhooks over HTTP that it can sign for; nothing: all
  std::vector<std::string> schemes;              // of URLs: http, https, mailto
};
std::vector<Delivery> webhook_claim(pg::Connection& connection, const std::string& owner, const Reach& reach,
                                    std::chrono::milliseconds lease, int room);
// Reports a delivery. `error` empty: delivered. `status` 0: there was no answer. Returns false if the claim was over;
// then nothing is changed.
bool webhook_report(pg::Connection& connection, const Delivery& delivery, int status, const std::string& error,
                    bool gone);
// Returns how long until a delivery may be due; nothing: nothing waits.
std::optional<std::chrono::milliseconds> webhook_wait(pg::Connection& connection, const Reach& reach);

} // namespace holdfast::store
