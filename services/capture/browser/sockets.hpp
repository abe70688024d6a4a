#pragma once
// Records the WebSockets of a page: the handshake of each as a request and a response with status 101, and its messages
// as a metadata record beside them, one JSON object a line: when, "received" or "sent", and "text" or "base64". No
// standard has a place for them; players pass over such records. Owned by the recorder, used from its thread.

#include "lib/warc/writer.hpp"
#include "services/capture/hook.hpp"

#include <map>
#include <memory>
#include <string>

namespace holdfast::capture {

class Sockets {
public:
  explicit Sockets(warc::Writer& warc) : warc_(warc) {}
  // Takes an event Network.webSocket...
  void take(const std::string& method, const Json& parameters);
  // Writes what has come.
  void finish();

private:
  struct Socket {
    warc::Exchange exchange;
    warc::Spool messages;
    bool full{false};
  };
  void add_message(Socket& socket, const char* direction, const Json& frame);

  warc::Writer& warc_;
  std::map<std::string, std::unique_ptr<Socket>> sockets_; // by request
};

} // namespace holdfast::capture
