#include "services/worker/hook/hook_network.hpp"

#include "lib/base/error.hpp"

#include <algorithm>
#include <cstdlib>

namespace holdfast::worker {

namespace {

constexpr std::size_t kKept = 4; // networks that no session uses
// NO_PROXY in a network of their own, for traffic among a session's programs. If private pages are allowed, pages may
// be there too; then everything goes through the proxy, as where loopback is the machine's. Chromium needs it
// explicitly.
constexpr const char* kLoopback = "localhost,127.0.0.1,::1";
constexpr const char* kNothing = "<-loopback>";

const char* proxy_in_environment() {
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return name;
  return nullptr;
}

} // namespace

Route::Route(std::shared_ptr<HookNetwork> network, std::size_t listener, std::unique_ptr<egress::Endpoint> endpoint,
             std::string direct)
    : network_(std::move(network)), listener_(listener), endpoint_(std::move(endpoint)), direct_(std::move(direct)) {}

Route::~Route() {
  if (network_) network_->taken[listener_] = false;
}

void Route::apply(process::Command& command) const {
  if (network_) command.sandbox.network = network_->network;
  const auto url = endpoint_->url();
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
    process::set_variable(command.environment, name, url);
  for (const char* name : {"no_proxy", "NO_PROXY"})
    process::set_variable(command.environment, name, direct_);
  process::set_variable(command.environment, "HOLDFAST_EGRESS", url + "#" + endpoint_->key()); // for the built-in hooks
}

HookNetworks::HookNetworks(const Options& options, const SandboxState& state)
    : shim_(options.shim),
      listeners_(std::min(static_cast<std::size_t>(options.slots) + 2, process::PrivateNetwork::kMostListeners)),
      direct_(options.allow_private ? kNothing : kLoopback),
      free_(std::make_shared<std::vector<std::shared_ptr<HookNetwork>>>()) {
  if (!options.egress) {
    description_ = "the machine's: hook.network is open";
    return;
  }
  if (const char* name = proxy_in_environment()) {
    description_ = std::string("the machine's: ") + name + " is set, and that proxy decides";
    return;
  }
  egress::Rules rules;
  rules.allow_private = options.allow_private;
  rules.ports = options.ports;
  proxy_ = std::make_unique<egress::Proxy>(std::move(rules));
  description_ = "the egress proxy";
  if (state.sandbox.level != process::SandboxLevel::full) {
    proxy_->open({}); // a machine without loopback shows now, not with each page
    return;
  }
  std::string problem;
  try {
    auto first = make();
    const auto user = state.users.lease();
    auto tried = state.with(user);
    tried.network = first->network;
    problem = process::sandbox_problem(shim_, tried);
    free_->push_back(std::move(first));
  } catch (const base::Error& error) {
    problem = error.what();
  }
  isolated_ = problem.empty();
  if (!isolated_ && options.sandbox == "required")
    throw base::Error(base::ErrorClass::unavailable,
                      "hook.sandbox is required, and its network does not work here: " + problem,
                      "set hook.network to open, or hook.sandbox to auto");
  if (!isolated_) proxy_->open({});
  description_ += isolated_ ? ", from a network of their own" : "; hooks that ignore it are not stopped: " + problem;
}

HookNetworks::~HookNetworks() = default;

std::shared_ptr<HookNetwork> HookNetworks::make() const {
  auto network = std::make_shared<HookNetwork>();
  network->network = process::PrivateNetwork::make(shim_, listeners_);
  network->taken.resize(listeners_);
  return network;
}

std::shared_ptr<HookNetwork> HookNetworks::enter() {
  if (!isolated_) return nullptr;
  std::shared_ptr<HookNetwork> network;
  if (free_->empty()) {
    network = make();
  } else {
    network = std::move(free_->back());
    free_->pop_back();
  }
  // Returned once its session and the last route have ended.
  HookNetwork* const shared = network.get();
  return {shared, [network = std::move(network), free = std::weak_ptr(free_)](HookNetwork*) {
            if (const auto list = free.lock(); list && list->size() < kKept) list->push_back(network);
          }};
}

std::unique_ptr<Route> HookNetworks::route(std::shared_ptr<HookNetwork> network, const egress::Asker& page,
                                           std::uint64_t most_bytes) {
  if (!proxy_) return nullptr;
  egress::EndpointRules rules;
  rules.page = page;
  rules.most_bytes = most_bytes;
  std::size_t number = 0;
  if (network) {
    const auto found = std::find(network->taken.begin(), network->taken.end(), false);
    if (found == network->taken.end())
      throw base::Error(base::ErrorClass::temporary, "no free proxy listener in the network of its crawl");
    number = static_cast<std::size_t>(found - network->taken.begin());
    rules.listener = network->network->listener(number);
  }
  auto endpoint = proxy_->open(std::move(rules));
  if (network) network->taken[number] = true;
  auto direct = network ? direct_ : std::string();
  return std::make_unique<Route>(std::move(network), number, std::move(endpoint), std::move(direct));
}

} // namespace holdfast::worker
