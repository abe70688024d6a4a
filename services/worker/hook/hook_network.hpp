#pragma once
// Connects the hooks of a worker to the web: through its egress proxy, and where the sandbox is full, from a network of
// their own that has no other way out. Each crawl's session has such a network, because hooks of one crawl talk to its
// browser over loopback; used ones are kept for other crawls. Each page and each session has a Route of its own, which
// counts the requests of its hooks. Main thread only. Owned by Worker, which destroys all routes first.

#include "lib/process/command.hpp"
#include "lib/process/sandbox.hpp"
#include "services/egress/proxy.hpp"
#include "services/worker/hook/hook_sandbox.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::worker {

// A network and which of its listeners are in use.
struct HookNetwork {
  std::shared_ptr<process::PrivateNetwork> network;
  std::vector<bool> taken;
};

class Route {
public:
  Route(std::shared_ptr<HookNetwork> network, std::size_t listener, std::unique_ptr<egress::Endpoint> endpoint,
        std::string direct);
  ~Route();
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
  // Sets the network and the proxy variables of a hook.
  void apply(process::Command& command) const;
  std::string proxy() const { return endpoint_->url(); }
  egress::Traffic traffic() const { return endpoint_->traffic(); }

private:
  std::shared_ptr<HookNetwork> network_; // none: the machine's
  std::size_t listener_;
  std::unique_ptr<egress::Endpoint> endpoint_;
  std::string direct_; // NO_PROXY
};

class HookNetworks {
public:
  // Decides by hook.network and by what works here. Throws Error(unavailable) if a sandbox is required and its network
  // does not work, Error(system) if the proxy cannot listen.
  HookNetworks(const Options& options, const SandboxState& state);
  ~HookNetworks();

  const std::string& description() const noexcept { return description_; } // for the log and for holdfast doctor
  // For a session; null where hooks have the machine's network. Throws Error(unavailable, system).
  std::shared_ptr<HookNetwork> enter();
  // For a page, or (without one) for a session; null if hooks are not sent through the proxy. Throws Error(system).
  std::unique_ptr<Route> route(std::shared_ptr<HookNetwork> network, const egress::Asker& page,
                               std::uint64_t most_bytes);

private:
  std::shared_ptr<HookNetwork> make() const;

  const std::filesystem::path shim_;
  const std::size_t listeners_;
  const std::string direct_;
  std::string description_;
  std::unique_ptr<egress::Proxy> proxy_; // none: hooks have the machine's network and choose their own way
  bool isolated_{false};
  std::shared_ptr<std::vector<std::shared_ptr<HookNetwork>>> free_;
};

} // namespace holdfast::worker
