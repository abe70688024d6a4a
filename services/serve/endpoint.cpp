#include "services/serve/endpoint.hpp"

#include "lib/base/error.hpp"

#include <boost/asio/ip/address.hpp>

#include <charconv>

namespace holdfast::serve {

Endpoint parse_endpoint(const std::string& text, const std::string& setting) {
  const auto wrong = [&] {
    return base::Error(base::ErrorClass::configuration, setting + ": \"" + text + "\" is not a listen address",
                       "ADDRESS:PORT, [IPv6]:PORT, or PORT for this machine alone");
  };
  Endpoint endpoint;
  const auto colon = text.rfind(':');
  std::string address = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  if (address.empty() || address == "*") address = "0.0.0.0";
  if (address == "localhost") address = "127.0.0.1";
  unsigned number = 0;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (problem != std::errc{} || end != port.data() + port.size() || number > 65535) throw wrong();
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(address, error);
  if (error) throw wrong();
  endpoint.address = parsed.to_string();
  endpoint.port = static_cast<std::uint16_t>(number);
  endpoint.loopback = parsed.is_loopback();
  endpoint.setting = setting;
  return endpoint;
}

std::string url_of(const Endpoint& endpoint, std::uint16_t port) {
  const bool six = endpoint.address.find(':') != std::string::npos;
  const std::string host = endpoint.address == "0.0.0.0" || endpoint.address == "::" ? "localhost"
                           : six                                                     ? "[" + endpoint.address + "]"
                                                                                     : endpoint.address;
  return "http://" + host + ":" + std::to_string(port) + "/";
}

} // namespace holdfast::serve
