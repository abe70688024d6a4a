#include "lib/http/client.hpp"

#include "lib/http/exchange.hpp"

#include <mutex>
#include <vector>

namespace holdfast::http {

// Handles that are not in use, with their connections.
struct Client::Impl {
  std::mutex mutex;
  std::vector<Handle> idle;

  Handle take() {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return new_handle();
    Handle handle = std::move(idle.back());
    idle.pop_back();
    return handle;
  }
  void give_back(Handle handle) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(handle));
  }
};

Client::Client() : impl_(std::make_unique<Impl>()) { impl_->give_back(new_handle()); }
Client::~Client() = default;

Response Client::send(const Request& request) {
  Exchange exchange(impl_->take(), request);
  struct GiveBack {
    Impl& impl;
    Exchange& exchange;
    ~GiveBack() { impl.give_back(exchange.release()); }
  } const give_back{*impl_, exchange};
  return exchange.response(libcurl().easy_perform(exchange.handle()));
}

} // namespace holdfast::http
