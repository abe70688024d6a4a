#include "services/webhook/mail.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace holdfast::webhook {

namespace {

using Json = nlohmann::json;

// Text of a page in a line of its own: hostile, so without control characters.
std::string line_of(const Json& data, const char* name) {
  constexpr std::size_t kMost = 2000;
  return data.contains(name) && data[name].is_string() ? base::one_line(data[name].get<std::string>(), kMost) : "";
}

// A header with any text: encoded words of at most 75 characters (RFC 2047), split between characters.
std::string header(const std::string& name, const std::string& text) {
  if (std::all_of(text.begin(), text.end(), [](char letter) { return letter >= ' ' && letter < 127; }) &&
      text.size() < 900)
    return name + ": " + text + "\r\n";
  constexpr std::size_t kPiece = 42;
  std::string line = name + ":";
  for (std::size_t at = 0; at < text.size();) {
    auto end = std::min(at + kPiece, text.size());
    while (end < text.size() && end > at + 1 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
      --end;
    line += (at == 0 ? " =?UTF-8?B?" : "\r\n =?UTF-8?B?") + base::base64_encode(text.substr(at, end - at)) + "?=";
    at = end;
  }
  return line + "\r\n";
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

std::string body_of(const MailOptions& options, const Json& data, const std::string& words) {
  std::string text;
  const auto said = data.value("said", std::vector<std::string>());
  for (const auto& one : said)
    text += base::one_line(one, 2000) + "\n";
  text += "\n" + line_of(data, "title") + "\n" + line_of(data, "url") + "\n";
  if (data.contains("selected_before"))
    text += "\nbefore: " + line_of(data, "selected_before") + "\nnow:    " + line_of(data, "selected") + "\n";
  if (!words.empty()) text += "\n" + words;
  for (const auto& entry : data.value("entries", Json::array()))
    text += "\n" + line_of(entry, "title") + "\n" + line_of(entry, "url") + "\n";
  text += "\nWatched: " + line_of(data, "when") + (data.contains("label") ? " (" + line_of(data, "label") + ")" : "") +
          "\n";
  if (options.page.empty()) return text + "Capture: " + line_of(data, "id") + "\n";
  const auto link = [&](const std::string& what, const std::string& path) {
    text += what + ": " + options.page + path + "\n";
  };
  link("Capture, with the pictures and texts before and now", "/snapshot/" + line_of(data, "id"));
  if (data.contains("change_from")) link("Capture before", "/snapshot/" + line_of(data, "change_from"));
  return text;
}

} // namespace

std::string mail_message(const MailOptions& options, const std::string& to, const std::string& message_id,
                         const std::string& payload, const std::string& words) {
  constexpr std::size_t kSubject = 200, kLine = 76;
  const auto event = Json::parse(payload, nullptr, false);
  const auto data = event.value("data", Json::object());
  const auto type = line_of(event, "type");
  const bool notice = type == "watch.matched";
  auto name = line_of(data, "label");
  if (name.empty()) name = line_of(data, "title");
  if (name.empty()) name = line_of(data, "url");
  auto subject = "holdfast: " + type;
  if (notice) subject = name + ": " + base::join(data.value("said", std::vector<std::string>()), "; ");
  const auto body = base::base64_encode(notice ? body_of(options, data, words) : event.dump(2) + "\n");
  const auto domain = options.from.substr(options.from.find('@') + 1);
  auto message = header("From", options.from) + header("To", to) +
                 header("Subject", base::one_line(subject, kSubject)) +
                 header("Date", date_of(line_of(event, "timestamp"))) +
                 header("Message-ID", "<" + message_id + "@" + domain + ">") +
                 "MIME-Version: 1.0\r\nAuto-Submitted: auto-generated\r\nContent-Type: text/plain; charset=utf-8\r\n"
                 "Content-Transfer-Encoding: base64\r\n\r\n";
  for (std::size_t at = 0; at < body.size(); at += kLine)
    message += body.substr(at, kLine) + "\r\n";
  return message;
}

} // namespace holdfast::webhook
