#pragma once
// E-mail messages of events, sent by libcurl.

#include "lib/http/client.hpp"
#include "services/webhook/notice.hpp"

#include <string>

namespace holdfast::webhook {

struct MailOptions {
  std::string server;        // smtps://host:465, or smtp://host:587 with STARTTLS; empty: no e-mail
  std::string from, user;    // user: empty: no login
  std::string password_file; // read for each message
  bool without_tls{false};   // smtp:// may stay unencrypted
  std::string ca_file;       // PEM; empty: the certificates of the system
};

// Makes a request of a message. The same event has the same Message-ID each time. Throws Error(configuration) if the
// password cannot be read.
void set_mail(http::Request& request, const MailOptions& options, const std::string& to, const std::string& message_id,
              const Notice& notice);

} // namespace holdfast::webhook
