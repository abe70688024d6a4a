#include "services/capture/browser/sockets.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"
#include "services/capture/browser/wire.hpp"

namespace holdfast::capture {

using base::text_at;

namespace {

constexpr std::uint64_t kMostBytes = 64u << 20; // of one socket's messages
constexpr int kText = 1;                        // an opcode; a text is not coded in base64

} // namespace

void Sockets::take(const std::string& method, const Json& parameters) {
  const auto id = text_at(parameters, "requestId");
  if (method == "Network.webSocketCreated") {
    auto socket = std::make_unique<Socket>();
    socket->exchange.url = text_at(parameters, "url");
    socket->exchange.date = base::utc_timestamp();
    sockets_[id] = std::move(socket);
    return;
  }
  const auto found = sockets_.find(id);
  if (found == sockets_.end()) return;
  auto& socket = *found->second;
  if (method == "Network.webSocketWillSendHandshakeRequest") {
    socket.exchange.request_headers = as_sent(headers_from(parameters["request"]["headers"]));
  } else if (method == "Network.webSocketHandshakeResponseReceived") {
    const auto& response = parameters["response"];
    const auto sent = sent_response(response);
    socket.exchange.status = response.value("status", 0);
    socket.exchange.reason = sent.reason.empty() ? text_at(response, "statusText") : sent.reason;
    socket.exchange.response_headers = sent.headers;
  } else if (method == "Network.webSocketFrameReceived") {
    add_message(socket, "received", parameters["response"]);
  } else if (method == "Network.webSocketFrameSent") {
    add_message(socket, "sent", parameters["response"]);
  }
}

void Sockets::add_message(Socket& socket, const char* direction, const Json& frame) {
  const bool text = frame.value("opcode", kText) == kText;
  const Json message = {{"time", base::utc_timestamp()},
                        {"direction", direction},
                        {text ? "text" : "base64", text_at(frame, "payloadData")}};
  const auto line = json_text(message) + "\n";
  socket.full = socket.full || socket.messages.size() + line.size() > kMostBytes;
  if (!socket.full) socket.messages.add(line);
}

void Sockets::finish() {
  for (const auto& [id, socket] : sockets_) {
    const auto& exchange = socket->exchange;
    if (exchange.status == 0) continue;
    const auto response = warc_.add(exchange, warc::Spool());
    if (socket->messages.size() > 0)
      warc_.add_about(exchange, response, "application/x-ndjson", socket->messages, socket->full ? "length" : "");
  }
  sockets_.clear();
}

} // namespace holdfast::capture
