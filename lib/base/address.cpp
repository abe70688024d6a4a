#include "lib/base/address.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/url.hpp"

#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace holdfast::base {

namespace {

[[noreturn]] void throw_resolver_error(const std::string& host, int code) {
  const int error_number = errno;
  switch (code) {
  case EAI_AGAIN:
    if (!name_server_answers())
      throw Error(ErrorClass::unavailable, "this machine has no name server that answers", "See /etc/resolv.conf.");
    throw Error(ErrorClass::temporary, "the name server cannot resolve \"" + host + "\" at the moment");
  case EAI_MEMORY:
  case EAI_SYSTEM:
    throw Error(ErrorClass::system, "cannot resolve \"" + host +
                                        "\": " + (code == EAI_SYSTEM ? errno_text(error_number) : gai_strerror(code)));
  default:
    throw Error(ErrorClass::refused, host + ": the host name does not resolve");
  }
}

} // namespace

std::string own_host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

bool name_server_answers() {
  struct __res_state state {};
  if (::res_ninit(&state) != 0) return false;
  state.retrans = 2; // seconds
  state.retry = 1;
  std::array<unsigned char, NS_PACKETSZ> answer{};
  // The root zone, which no site can take away.
  const int length = ::res_nquery(&state, ".", ns_c_in, ns_t_ns, answer.data(), answer.size());
  const bool answers = length >= 0 || state.res_h_errno == HOST_NOT_FOUND || state.res_h_errno == NO_DATA;
  ::res_nclose(&state);
  return answers;
}

std::vector<std::string> resolve_host(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM; // one entry an address instead of one a protocol
  addrinfo* list = nullptr;
  if (const int code = getaddrinfo(host.c_str(), nullptr, &wanted, &list); code != 0) throw_resolver_error(host, code);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);

  std::vector<std::string> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    const int code =
        getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST | NI_NUMERICSERV);
    if (code != 0) throw_resolver_error(host, code);
    if (std::find(addresses.begin(), addresses.end(), text) == addresses.end()) addresses.emplace_back(text);
  }
  return addresses;
}

std::string private_address_of(const std::string& host) {
  if (is_private_host(host)) return "\"" + host + "\" is not a public host";
  for (const std::string& address : resolve_host(host))
    if (is_private_address(address))
      return "\"" + host + "\" resolves to " + address + ", which is not a public address";
  return "";
}

} // namespace holdfast::base
