#pragma once
// Sends deliveries that wait in the outbox (holdfast.delivery) to webhooks, by e-mail and through Apprise, beside a
// worker or a runner.
// Owned by the verb; any number of processes may run one. It has a thread ("hf-webhook") and a database session of its
// own, and needs no other part's lease: a claim of a delivery ends by itself, so that another process sends the
// deliveries of a killed one. The destructor stops the thread within a second or two; its deliveries are released.

#include "services/webhook/mail.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace holdfast::webhook {

struct DelivererOptions {
  std::string dsn, label, version;
  std::filesystem::path secret_file; // empty: no webhooks over HTTP
  MailOptions mail;
  std::string apprise;                  // the program of Apprise; empty: it is not used
  std::filesystem::path apprise_config; // its services, by tag
  std::string page;                     // URL of holdfast serve, for links; empty: no links
  std::filesystem::path archive_root;   // for what has changed in words and pictures; empty: without
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

} // namespace holdfast::webhook
