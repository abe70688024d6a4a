#pragma once
// Where a WebSocket leads (view_relay.hpp). Plain values.

#include <functional>
#include <string>

namespace holdfast::serve {

// Where the browser is. Port 0: not ready yet, for the reason `waits`. `problem`: there will be none.
struct FarEnd {
  std::string problem{}, waits{}, address{}, certificate_hash{}, key{};
  int port{0};
};
using FindFarEnd = std::function<FarEnd()>; // blocking

} // namespace holdfast::serve
