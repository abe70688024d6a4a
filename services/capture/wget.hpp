#pragma once
// The wget plugin: the page and all that it shows as files and as a WARC, by wget.

#include "services/capture/hook.hpp"

#include <string>
#include <vector>

namespace holdfast::capture {

// wget/<host>/... the page and its requisites, links made local; wget/warc/page.warc.gz; wget/page.json.
Result run_wget(Job& job);

// One request as the log of wget (with --server-response) tells it.
struct WgetExchange {
  std::string url;
  bool retry{false};
  int status{0};
  std::vector<std::pair<std::string, std::string>> headers;
  std::string redirect; // where it leads
  std::string saved_to;
  bool complete{false};
  std::string error;
  bool unreachable{false}; // there was no connection, so no other client gets one

  std::string header(std::string_view name) const;
};

std::vector<WgetExchange> parse_wget_log(std::string_view log);

} // namespace holdfast::capture
