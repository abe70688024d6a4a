#pragma once
// E-mail messages of events. Pure.

#include <string>

namespace holdfast::webhook {

struct MailOptions {
  std::string server;        // smtps://host:465, or smtp://host:587 with STARTTLS; empty: no e-mail
  std::string from, user;    // user: empty: no login
  std::string password_file; // read for each message
  bool without_tls{false};   // smtp:// may stay unencrypted
  std::string ca_file;       // PEM; empty: the certificates of the system
  std::string page;          // URL of holdfast serve, for links; empty: no links
};

// Returns the message (RFC 5322) of an event. The same event has the same Message-ID each time. `words`: what has
// changed in the text; may be empty.
std::string mail_message(const MailOptions& options, const std::string& to, const std::string& message_id,
                         const std::string& payload, const std::string& words);

} // namespace holdfast::webhook
