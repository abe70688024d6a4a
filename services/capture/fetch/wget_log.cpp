#include "services/capture/fetch/wget_log.hpp"

#include "lib/formats/link.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/fetch/egress.hpp"
#include "services/capture/hook.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::capture {

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "--2026-01-02 03:04:05--  (try: 2)  http://..."
bool take_request(std::string_view line, WgetExchange& exchange) {
  constexpr std::size_t kUrl = 25; // after the date
  if (line.size() <= kUrl || !line.starts_with("--") || line.substr(21, 4) != "--  ") return false;
  auto rest = line.substr(kUrl);
  if (rest.starts_with("(try:")) {
    const auto close = rest.find(")  ");
    if (close == std::string_view::npos) return false;
    exchange.retry = true;
    rest = rest.substr(close + 3);
  }
  if (rest.empty() || rest.find(' ') != std::string_view::npos) return false;
  exchange.url = rest;
  return true;
}

// "  HTTP/1.1 200 OK" and "  Name: value"
bool take_response_line(std::string_view line, WgetExchange& exchange) {
  if (!line.starts_with("  ") || line.size() < 4 || line[2] == ' ') return false;
  line.remove_prefix(2);
  if (line.starts_with("HTTP/")) {
    const auto blank = line.find(' ');
    const auto digits = line.substr(std::min(blank, line.size() - 1) + 1, 3);
    int status = 0;
    const auto* const end = digits.data() + digits.size();
    if (digits.size() != 3 || std::from_chars(digits.data(), end, status).ptr != end) return false;
    exchange.status = status;
    exchange.reason = line.substr(std::min(blank + 5, line.size()));
    exchange.headers.clear();
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || line.substr(0, colon).find(' ') != std::string_view::npos)
    return false;
  auto value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  exchange.headers.emplace_back(line.substr(0, colon), value);
  return true;
}

// Returns the error, in fewer words than wget's; empty: the line has none.
std::string error_in(std::string_view line) {
  if (contains(line, "redirections exceeded")) {
    const auto end = line.find(" redirections exceeded");
    const auto begin = line.find_last_not_of("0123456789", end == 0 ? 0 : end - 1);
    return "too many redirects: " + std::string(line.substr(begin == std::string_view::npos ? 0 : begin + 1));
  }
  if (contains(line, "Unsupported scheme")) return "redirected to a URL that is not http or https";
  if (contains(line, "unable to resolve host address")) return "the host name does not resolve";
  // "failed: Connection refused.", "Read error at byte 66 (Connection reset by peer)."
  for (const std::string_view mark : {"failed", "Read error ", "Giving up", "Unable to establish SSL connection"}) {
    const auto at = line.find(mark);
    if (at == std::string_view::npos) continue;
    const auto begin = line.find_first_of(":(", at + mark.size());
    if (begin == std::string_view::npos || (!mark.ends_with(' ') && begin != at + mark.size())) continue;
    std::string text(line.substr(begin + 1));
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(".)") + 1);
    text.resize(std::min(text.find(").Giving up"), text.size()));
    if (text == "Success") return "the page broke off";
    if (!text.empty()) return text;
  }
  if (const auto at = line.find("Connection closed at byte"); at != std::string_view::npos) {
    std::string text(line.substr(at));
    return "the page broke off: " + text.substr(0, text.find('.'));
  }
  for (const std::string_view mark :
       {"No data received", "Unable to establish SSL connection", "Connection timed out", "Read error"})
    if (contains(line, mark)) return std::string(mark);
  if (const auto at = line.find("ERROR: "); at != std::string_view::npos && contains(line, "certificate")) {
    std::string text(line.substr(at + 7));
    text.erase(text.find_last_not_of(",.:") + 1);
    return text;
  }
  return {};
}

bool no_connection(std::string_view line) {
  if (contains(line, "unable to resolve host address")) return true;
  for (const char* why : {"Connection refused", "Connection timed out", "No route to host", "Network is unreachable",
                          "Name or service not known"})
    if (contains(line, std::string("failed: ") + why)) return true;
  return false;
}

// The egress proxy's reason names the host, as we do.
std::string without_host(std::string_view reason, const std::string& url) {
  const auto host = host_in(url) + ": ";
  return std::string(reason.starts_with(host) ? reason.substr(host.size()) : reason);
}

void take_line(std::string_view line, WgetExchange& exchange) {
  if (take_response_line(line, exchange)) return;
  constexpr std::string_view kLocation = "Location: ", kFollowing = " [following]", kSaving = "Saving to: ";
  if (line.starts_with(kLocation) && line.ends_with(kFollowing)) {
    const auto target = line.substr(kLocation.size(), line.size() - kLocation.size() - kFollowing.size());
    exchange.redirect = formats::join_url(exchange.url, target).value_or(std::string(target));
  } else if (line.starts_with(kSaving)) {
    auto name = line.substr(kSaving.size());
    for (const std::string_view quote : {"\xE2\x80\x98", "'"})
      if (name.starts_with(quote)) name.remove_prefix(quote.size());
    for (const std::string_view quote : {"\xE2\x80\x99", "'"})
      if (name.ends_with(quote)) name.remove_suffix(quote.size());
    exchange.saved_to = name;
  } else if (line.ends_with("]") && contains(line, " saved [")) {
    exchange.complete = true;
  } else if (constexpr std::string_view kTunnel = "Proxy tunneling failed: "; line.starts_with(kTunnel)) {
    const auto reason = line.substr(kTunnel.size());
    exchange.error = without_host(reason.substr(0, reason.rfind("Unable to establish")), exchange.url);
    exchange.unreachable = !exchange.error.starts_with("refused:");
  } else {
    exchange.unreachable = exchange.unreachable || no_connection(line);
    if (auto error = error_in(line); !error.empty()) exchange.error = std::move(error);
  }
}

} // namespace

std::string WgetExchange::header(std::string_view name) const { return header_of(headers, name); }

std::vector<WgetExchange> parse_wget_log(std::string_view log) {
  std::vector<WgetExchange> exchanges;
  for (std::size_t begin = 0; begin < log.size();) {
    const auto end = std::min(log.find('\n', begin), log.size());
    auto line = log.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    begin = end + 1;
    WgetExchange next;
    if (take_request(line, next))
      exchanges.push_back(std::move(next));
    else if (!exchanges.empty())
      take_line(line, exchanges.back());
  }
  for (auto& exchange : exchanges)
    if (const auto reason = egress_reason(exchange.headers); !reason.empty()) { // no server has said this
      exchange.status = 0;
      exchange.complete = false;
      exchange.error = without_host(reason, exchange.url);
      exchange.unreachable = !reason.starts_with("refused:");
    }
  return exchanges;
}

std::size_t main_exchange(std::vector<WgetExchange>& exchanges) {
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    if (i > 0 && exchanges[i].saved_to.empty()) exchanges[i].saved_to = exchanges[i - 1].saved_to;
    const bool last = i + 1 == exchanges.size();
    if (last || !(!exchanges[i].redirect.empty() || exchanges[i + 1].retry)) return i + 1;
  }
  return 0;
}

} // namespace holdfast::capture
