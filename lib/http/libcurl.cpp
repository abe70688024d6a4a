#include "lib/http/libcurl.hpp"

#include "lib/base/error.hpp"

#include <dlfcn.h>

#include <string>

namespace holdfast::http {

namespace {

void* library() {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (void* const loaded = ::dlopen(name, RTLD_LAZY)) return loaded;
  throw base::Error(base::ErrorClass::unavailable, "libcurl is not installed (apt install libcurl4)");
}

} // namespace

Symbol::Symbol(const char* name) {
  static void* const from = library();
  address = ::dlsym(from, name);
  if (address == nullptr) throw base::Error(base::ErrorClass::unavailable, std::string("libcurl lacks ") + name);
}

const Libcurl& libcurl() {
  static const Libcurl functions;
  return functions;
}

} // namespace holdfast::http
