#pragma once
// A request and its answer on a libcurl handle. Private to lib/http. Lives as long as the transfer runs.

#include "lib/http/client.hpp"

#include <curl/curl.h>

#include <array>
#include <exception>
#include <memory>

namespace holdfast::http {

// The functions of libcurl that are used here. Private to lib/http. The library is loaded by the first use, because
// most commands and hooks need none, and its own libraries take longer to load than a hook runs. Any thread.

// A function of libcurl by its name, as whatever type it is taken for.
struct Symbol {
  explicit Symbol(const char* name); // throws Error(unavailable)
  template <typename Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address);
  }
  void* address;
};

struct Libcurl {
  decltype(&::curl_global_init) global_init = Symbol("curl_global_init");
  decltype(&::curl_easy_init) easy_init = Symbol("curl_easy_init");
  decltype(&::curl_easy_setopt) easy_setopt = Symbol("curl_easy_setopt");
  decltype(&::curl_easy_getinfo) easy_getinfo = Symbol("curl_easy_getinfo");
  decltype(&::curl_easy_perform) easy_perform = Symbol("curl_easy_perform");
  decltype(&::curl_easy_strerror) easy_strerror = Symbol("curl_easy_strerror");
  decltype(&::curl_easy_reset) easy_reset = Symbol("curl_easy_reset");
  decltype(&::curl_easy_cleanup) easy_cleanup = Symbol("curl_easy_cleanup");
  decltype(&::curl_slist_append) slist_append = Symbol("curl_slist_append");
  decltype(&::curl_slist_free_all) slist_free_all = Symbol("curl_slist_free_all");
  decltype(&::curl_mime_init) mime_init = Symbol("curl_mime_init");
  decltype(&::curl_mime_addpart) mime_addpart = Symbol("curl_mime_addpart");
  decltype(&::curl_mime_type) mime_type = Symbol("curl_mime_type");
  decltype(&::curl_mime_data) mime_data = Symbol("curl_mime_data");
  decltype(&::curl_mime_encoder) mime_encoder = Symbol("curl_mime_encoder");
  decltype(&::curl_mime_headers) mime_headers = Symbol("curl_mime_headers");
  decltype(&::curl_mime_subparts) mime_subparts = Symbol("curl_mime_subparts");
  decltype(&::curl_mime_free) mime_free = Symbol("curl_mime_free");
  decltype(&::curl_multi_init) multi_init = Symbol("curl_multi_init");
  decltype(&::curl_multi_add_handle) multi_add_handle = Symbol("curl_multi_add_handle");
  decltype(&::curl_multi_remove_handle) multi_remove_handle = Symbol("curl_multi_remove_handle");
  decltype(&::curl_multi_perform) multi_perform = Symbol("curl_multi_perform");
  decltype(&::curl_multi_poll) multi_poll = Symbol("curl_multi_poll");
  decltype(&::curl_multi_info_read) multi_info_read = Symbol("curl_multi_info_read");
  decltype(&::curl_multi_wakeup) multi_wakeup = Symbol("curl_multi_wakeup");
  decltype(&::curl_multi_cleanup) multi_cleanup = Symbol("curl_multi_cleanup");
};

// Throws Error(unavailable) if it is not installed.
const Libcurl& libcurl();

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
  void set_mail();
  curl_mime* mime_of(const std::vector<MailPart>& parts);
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
  struct FreeMime {
    void operator()(curl_mime* mime) const { libcurl().mime_free(mime); }
  };
  std::array<char, CURL_ERROR_SIZE> error_{}; // until the handle is closed or released
  Handle handle_;
  Request request_;
  std::unique_ptr<curl_slist, FreeList> headers_, recipients_;
  std::unique_ptr<curl_mime, FreeMime> mime_;
  std::string_view unsent_;
  Response response_;
  bool full_{false};
  std::exception_ptr failure_;
};

} // namespace holdfast::http
