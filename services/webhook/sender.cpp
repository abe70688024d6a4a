#include "services/webhook/sender.hpp"

#include "lib/base/error.hpp"
#include "lib/base/url.hpp"

#include <curl/curl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <utility>

namespace holdfast::webhook {

namespace {

constexpr std::size_t kAnswerLimit = 256 * 1024;

// For the whole process, before the first handle; libcurl wants it done while one thread runs, or once.
void initialise() {
  static const bool done = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  if (!done) throw base::Error(base::ErrorClass::system, "libcurl cannot be initialised");
}

struct Transfer {
  explicit Transfer(bool allow) : allow_private(allow) {}
  ~Transfer() {
    if (handle != nullptr) curl_easy_cleanup(handle);
    if (headers != nullptr) curl_slist_free_all(headers);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Post post;
  std::function<void(const Answer&)> done;
  const bool allow_private;
  std::string refused; // the address that was not connected to
  std::size_t received{0};
  CURL* handle{nullptr};
  curl_slist* headers{nullptr};
};

curl_socket_t open_socket(void* context, curlsocktype, curl_sockaddr* to) {
  auto& transfer = *static_cast<Transfer*>(context);
  char text[NI_MAXHOST] = "";
  const int code = getnameinfo(&to->addr, to->addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  if (!transfer.allow_private && (code != 0 || base::is_private_address(text))) {
    transfer.refused = text;
    return CURL_SOCKET_BAD;
  }
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

// The answer's body is of no interest, and one without an end is not waited for.
std::size_t discard(char*, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.received += size * count;
  return transfer.received > kAnswerLimit ? 0 : size * count;
}

} // namespace

struct Sender::Impl {
  bool allow_private;
  std::string user_agent;
  std::chrono::milliseconds timeout;
  CURLM* multi{nullptr};
  std::map<CURL*, std::unique_ptr<Transfer>> transfers;

  void finish() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const auto found = transfers.find(message->easy_handle);
      if (found == transfers.end()) continue;
      const auto transfer = std::move(found->second);
      transfers.erase(found);
      long status = 0;
      curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
      curl_multi_remove_handle(multi, transfer->handle);
      Answer answer;
      answer.status = static_cast<int>(status);
      if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && status != 0)) {
        answer.status = 0;
        answer.error = !transfer->refused.empty()
                           ? "its address " + transfer->refused + " is not public (urls.allow_private)"
                           : curl_easy_strerror(code);
      }
      transfer->done(answer);
    }
  }
};

Sender::Sender(bool allow_private, std::string user_agent, std::chrono::milliseconds timeout)
    : impl_(new Impl{allow_private, std::move(user_agent), timeout, nullptr, {}}) {
  initialise();
  impl_->multi = curl_multi_init();
  if (impl_->multi == nullptr) throw base::Error(base::ErrorClass::system, "libcurl has no memory");
}

Sender::~Sender() {
  for (auto& [handle, transfer] : impl_->transfers)
    curl_multi_remove_handle(impl_->multi, handle);
  impl_->transfers.clear();
  curl_multi_cleanup(impl_->multi);
}

void Sender::start(Post post, std::function<void(const Answer&)> done) {
  auto transfer = std::make_unique<Transfer>(impl_->allow_private);
  transfer->post = std::move(post);
  transfer->done = std::move(done);
  CURL* handle = transfer->handle = curl_easy_init();
  if (handle == nullptr) throw base::Error(base::ErrorClass::system, "libcurl has no memory");
  for (const auto& header : transfer->post.headers)
    transfer->headers = curl_slist_append(transfer->headers, header.c_str());
  transfer->headers = curl_slist_append(transfer->headers, "Expect:"); // no waiting for "100 Continue"
  const auto milliseconds = static_cast<long>(impl_->timeout.count());
  curl_easy_setopt(handle, CURLOPT_URL, transfer->post.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_PROXY, ""); // else the guard would judge the proxy's address
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, milliseconds);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds / 2);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, impl_->user_agent.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, transfer->headers);
  curl_easy_setopt(handle, CURLOPT_POST, 1L);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer->post.body.size()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, transfer->post.body.data());
  curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, transfer.get());
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &discard);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer.get());
  if (curl_multi_add_handle(impl_->multi, handle) != CURLM_OK)
    throw base::Error(base::ErrorClass::system, "libcurl takes no more transfers");
  impl_->transfers.emplace(handle, std::move(transfer));
}

std::size_t Sender::under_way() const noexcept { return impl_->transfers.size(); }

void Sender::step(int descriptor, std::chrono::milliseconds at_most) {
  int running = 0;
  curl_multi_perform(impl_->multi, &running);
  const auto before = impl_->transfers.size();
  impl_->finish();
  if (impl_->transfers.size() != before) return; // there is news
  curl_waitfd extra{};
  extra.fd = descriptor;
  extra.events = CURL_WAIT_POLLIN;
  int ready = 0;
  curl_multi_poll(impl_->multi, &extra, descriptor < 0 ? 0 : 1, static_cast<int>(at_most.count()), &ready);
  curl_multi_perform(impl_->multi, &running);
  impl_->finish();
}

void Sender::wake() { curl_multi_wakeup(impl_->multi); }

} // namespace holdfast::webhook
