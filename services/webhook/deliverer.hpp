#pragma once
// Sends deliveries that wait in the outbox (holdfast.delivery) to webhooks and by e-mail, beside a worker or a runner.
// Owned by the verb; any number of processes may run one. It has a thread ("hf-webhook") and a database session of its
// own, and needs no other part's lease: a claim of a delivery ends by itself, so that another process sends the
// deliveries of a killed one. The destructor stops the thread within a second or two; its deliveries are released.

#include "services/webhook/mail.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::webhook {

struct DelivererOptions {
  std::string dsn, label, version;
  std::filesystem::path secret_file; // empty: no webhooks over HTTP
  MailOptions mail;
  std::filesystem::path archive_root; // for what has changed in words; empty: without
  bool allow_private{false};
  std::chrono::milliseconds timeout{10000}; // of one attempt
  std::chrono::milliseconds lease{30000};   // of a claim; more than timeout
  std::chrono::milliseconds poll{5000};     // if the notification is not heard
};

class Deliverer {
public:
  // Throws Error(configuration) if the secrets cannot be used.
  explicit Deliverer(DelivererOptions options);
  ~Deliverer();
  Deliverer(const Deliverer&) = delete;
  Deliverer& operator=(const Deliverer&) = delete;

  // Waits until nothing is due or under way any more, at most that long: for verbs that end when their work does.
  void flush(std::chrono::milliseconds at_most);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Signs deliveries by the Standard Webhooks specification: "v1," and the base64 of the HMAC-SHA-256 of
// "<webhook-id>.<webhook-timestamp>.<body>". Pure, but for reading the file; any thread.

// The secrets of webhooks.secret_file: lines "SECRET" (for every webhook without one of its own) or "NAME SECRET"; "#"
// begins a comment. "whsec_" and base64 are the bytes that they encode, anything else its own bytes. A name may stand
// in several lines: then all of them sign, so that a secret can be changed without a gap.
class Secrets {
public:
  // Throws Error(configuration), which never quotes the file.
  static Secrets read(const std::filesystem::path& file);

  // Returns the webhooks with a secret; nothing: all of them.
  std::optional<std::vector<std::string>> names() const;
  const std::vector<std::string>& of(const std::string& webhook) const;

private:
  std::map<std::string, std::vector<std::string>> keys_; // "": of those without one
};

std::string signature(const std::string& key, std::string_view message_id, std::string_view timestamp,
                      std::string_view body);

} // namespace holdfast::webhook
