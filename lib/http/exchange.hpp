#pragma once
// A request and its answer on a libcurl handle. Private to lib/http. Lives as long as the transfer runs.

#include "lib/http/libcurl.hpp"
#include "lib/http/message.hpp"

#include <array>
#include <exception>
#include <memory>

namespace holdfast::http {

struct CloseHandle {
  void operator()(CURL* handle) const { libcurl().easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, CloseHandle>;

// Starts libcurl for the process when first called. Throws Error(system).
Handle new_handle();

class Exchange {
public:
  // `handle`: new, or used before: its connections stay open.
  Exchange(Handle handle, Request request);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  CURL* handle() const noexcept { return handle_.get(); }
  Handle release(); // without what was set here
  // After the transfer. Throws what the sink threw.
  Response response(CURLcode code);

private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    libcurl().easy_setopt(handle_.get(), option, value);
  }
  template <typename Value>
  Value info(CURLINFO what) const {
    Value value{};
    libcurl().easy_getinfo(handle_.get(), what, &value);
    return value;
  }
  void set_limits();
  void set_body();
  void set_guard();
  std::string explain(CURLcode code) const;
  bool is_final(CURLcode code) const;
  static std::size_t on_read(char* buffer, std::size_t size, std::size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);
  static std::size_t on_write(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* to);

  struct FreeList {
    void operator()(curl_slist* list) const { libcurl().slist_free_all(list); }
  };
  std::array<char, CURL_ERROR_SIZE> error_{}; // until the handle is closed or released
  Handle handle_;
  Request request_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  std::string_view unsent_;
  Response response_;
  bool full_{false};
  std::exception_ptr failure_;
};

} // namespace holdfast::http
