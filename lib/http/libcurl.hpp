#pragma once
// The functions of libcurl that are used here. Private to lib/http. The library is loaded by the first use, because
// most commands and hooks need none, and its own libraries take longer to load than a hook runs. Any thread.

#include <curl/curl.h>

namespace holdfast::http {

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

} // namespace holdfast::http
