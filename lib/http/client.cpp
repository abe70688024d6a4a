#include "lib/http/client.hpp"

#include "lib/base/error.hpp"
#include "lib/http/exchange.hpp"

#include <map>
#include <mutex>
#include <utility>
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

namespace {

struct Pending {
  std::string body;
  std::unique_ptr<Exchange> exchange; // refers to the body
  std::function<void(const Response&)> done;
};

struct CloseMulti {
  void operator()(CURLM* multi) const { libcurl().multi_cleanup(multi); }
};

} // namespace

struct Batch::Impl {
  std::unique_ptr<CURLM, CloseMulti> multi;
  std::map<CURL*, std::unique_ptr<Pending>> pending;

  void finish() {
    int left = 0;
    while (const CURLMsg* message = libcurl().multi_info_read(multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const auto found = pending.find(message->easy_handle);
      if (found == pending.end()) continue;
      const auto one = std::move(found->second);
      pending.erase(found);
      libcurl().multi_remove_handle(multi.get(), one->exchange->handle());
      one->done(one->exchange->response(code));
    }
  }
};

Batch::Batch() : impl_(std::make_unique<Impl>()) {
  new_handle(); // libcurl is started
  impl_->multi.reset(libcurl().multi_init());
  if (!impl_->multi) throw base::Error(base::ErrorClass::system, "libcurl has no memory");
}

Batch::~Batch() {
  for (const auto& [handle, one] : impl_->pending)
    libcurl().multi_remove_handle(impl_->multi.get(), handle);
}

void Batch::start(Request request, std::string body, std::function<void(const Response&)> done) {
  auto one = std::make_unique<Pending>();
  one->body = std::move(body);
  one->done = std::move(done);
  request.body = one->body;
  one->exchange = std::make_unique<Exchange>(new_handle(), std::move(request));
  CURL* const handle = one->exchange->handle();
  if (libcurl().multi_add_handle(impl_->multi.get(), handle) != CURLM_OK)
    throw base::Error(base::ErrorClass::system, "libcurl takes no more transfers");
  impl_->pending.emplace(handle, std::move(one));
}

std::size_t Batch::under_way() const noexcept { return impl_->pending.size(); }

void Batch::step(int descriptor, std::chrono::milliseconds at_most) {
  CURLM* const multi = impl_->multi.get();
  int running = 0;
  libcurl().multi_perform(multi, &running);
  const auto before = impl_->pending.size();
  impl_->finish();
  if (impl_->pending.size() != before) return; // there is news
  curl_waitfd extra{};
  extra.fd = descriptor;
  extra.events = CURL_WAIT_POLLIN;
  int ready = 0;
  libcurl().multi_poll(multi, &extra, descriptor < 0 ? 0 : 1, static_cast<int>(at_most.count()), &ready);
  libcurl().multi_perform(multi, &running);
  impl_->finish();
}

void Batch::wake() { libcurl().multi_wakeup(impl_->multi.get()); }

} // namespace holdfast::http
