#include "services/webhook/mail.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace holdfast::webhook {

namespace {

// A header with any text: encoded words of at most 75 characters (RFC 2047), split between characters.
std::string header(const std::string& name, const std::string& text) {
  if (std::all_of(text.begin(), text.end(), [](char letter) { return letter >= ' ' && letter < 127; }) &&
      text.size() < 900)
    return name + ": " + text;
  constexpr std::size_t kPiece = 42;
  std::string line = name + ":";
  for (std::size_t at = 0; at < text.size();) {
    auto end = std::min(at + kPiece, text.size());
    while (end < text.size() && end > at + 1 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
      --end;
    line += (at == 0 ? " =?UTF-8?B?" : "\r\n =?UTF-8?B?") + base::base64_encode(text.substr(at, end - at)) + "?=";
    at = end;
  }
  return line;
}

std::string date_of(const std::string& timestamp) {
  const auto at = base::read_timestamp(timestamp);
  if (!at) return "";
  const auto time = std::chrono::system_clock::to_time_t(*at);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::string written(64, '\0');
  written.resize(std::strftime(written.data(), written.size(), "%a, %d %b %Y %H:%M:%S +0000", &parts));
  return written;
}

} // namespace

void set_mail(http::Request& request, const MailOptions& options, const std::string& to, const std::string& message_id,
              const Notice& notice) {
  http::Mail mail{options.from, to, options.user, "", options.without_tls, options.ca_file};
  if (!options.password_file.empty())
    mail.password = base::split(base::secret_text(options.password_file, "mail.password_file"), "\r\n").at(0);
  request.url = options.server;
  request.headers = {header("From", options.from),
                     header("To", to),
                     header("Subject", notice.subject),
                     header("Date", date_of(notice.timestamp)),
                     "Message-ID: <" + message_id + "@" + options.from.substr(options.from.find('@') + 1) + ">",
                     "Auto-Submitted: auto-generated",
                     "Content-Type: multipart/alternative"};
  mail.parts = {{"text/plain; charset=utf-8", notice.text}};
  if (!notice.html.empty()) {
    http::MailPart page{"multipart/related", "", "", {{"text/html; charset=utf-8", notice.html}}};
    if (!notice.picture_before.empty()) page.parts.push_back({"image/jpeg", notice.picture_before, "before"});
    if (!notice.picture.empty()) page.parts.push_back({"image/jpeg", notice.picture, "now"});
    mail.parts.push_back(std::move(page));
  }
  request.mail = std::move(mail);
}

} // namespace holdfast::webhook
