#pragma once
// The proxy through which hooks reach the web. Checks each address at the moment of the connection, so that neither a
// redirect, a frame, another spelling nor a name that changes its address leads to a private machine.
//
// Plain HTTP is passed on request by request. A connection is used again for the same server where the length of each
// message is beyond doubt; else it ends with the response, whose header announces that. CONNECT is a tunnel of bytes.
// The proxy adds nothing else to them. It answers refused requests itself, with 403 or 502 and the reason in
// kReasonHeader.
//
// One thread of its own ("egress") serves all connections, four more resolve names. An Endpoint may be used from any
// thread.

#include "lib/base/file.hpp"
#include "services/egress/destination.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::egress {

// Header of the proxy's own answers: the endpoint's key and the reason. A site that sends it does not have the key. The
// built-in hooks check it (services/capture/fetch/egress.hpp).
inline constexpr const char* kReasonHeader = "X-Holdfast-Egress";

struct HostTraffic {
  std::uint64_t requests{0}; // with connections for CONNECT
  std::uint64_t tunnels{0};  // these alone
  std::uint64_t bytes{0};    // received
};
struct Traffic {
  std::uint64_t bytes{0};    // received from servers
  std::uint64_t requests{0}; // connections for CONNECT
  std::uint64_t refused{0};
  std::map<std::string, HostTraffic> hosts; // the first thousand
  std::string first_refusal;
  std::string trouble; // of this machine, that kept something from being asked for
  bool over_limit{false};
};

struct EndpointRules {
  Asker page;                  // that uses it
  std::uint64_t most_bytes{0}; // 0: any number; then connections are cut and nothing more is fetched
  base::Fd listener;           // a socket that listens already; by default one on 127.0.0.1 is made
};

class Proxy;

// Listener of the proxy for one page or one session. Its destruction closes all connections made through it. Destroy it
// before the proxy.
class Endpoint {
public:
  struct State;
  explicit Endpoint(std::shared_ptr<State> state);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  std::string url() const; // "http://127.0.0.1:41234"
  std::string key() const;
  Traffic traffic() const;

private:
  std::shared_ptr<State> state_;
};

class Proxy {
public:
  explicit Proxy(Rules rules);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  // Throws Error(system) if there can be no socket.
  std::unique_ptr<Endpoint> open(EndpointRules rules);

private:
  struct Service;
  std::unique_ptr<Service> service_;
};

} // namespace holdfast::egress
