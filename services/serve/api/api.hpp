#pragma once
// The HTTP API under /api/: what the verbs do, as JSON. Each operation is a row of a table (api/table.hpp), from which
// the OpenAPI document is made. The forms of the page call the same operations. Any thread; the database sessions come
// from the caller.

#include "lib/store/crawl.hpp"
#include "services/serve/access.hpp"
#include "services/serve/http_message.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace holdfast::serve {

class Feed;

// A page that a browser saved as one file (lib/formats/saved_page.hpp), and what became of it.
struct UploadedPage {
  pg::Connection& connection;
  const std::string &bytes, &url; // url: if the file does not name it
  const std::string& by;
};
struct ImportedPage {
  std::string snapshot, crawl, url;
  bool added{false}, known{false}; // known: it was here before
  std::vector<std::string> problems;
};

struct ApiOptions {
  // The crawl that the body of a request to add describes, as `holdfast add` makes it.
  std::function<store::PlannedCrawl(const nlohmann::json& body)> plan; // throws Error(usage) or Error(refused)
  std::function<ImportedPage(const UploadedPage&)> import_page;        // throws Error(usage) or Error(refused)
  bool allow_private{false};                                           // webhooks may lead to private addresses
  Feed* feed{nullptr};                                                 // for those that watch
  // Returns the address of a file of the archive for this client; empty: files are not served.
  std::function<std::string(const Request&, const Caller&, const std::string& path)> file_url{};
  std::vector<std::string> program{}; // this program, with its settings: it runs exports
};

// Runs work on a session of a role.
using RunAs = std::function<Response(Role, const std::function<Response(pg::Connection&)>& work)>;

inline constexpr std::string_view kApi = "/api/";

Response answer_api(const Request& request, const Caller& caller, const ApiOptions& options, const RunAs& run);

// Answers a form of the page: fields of the operation's body, each given as text, and `id`, maybe more than one.
// Returns the last answer, or the first that is a problem.
Response answer_form(const std::string& operation, const Form& form, const Request& request, const Caller& caller,
                     const ApiOptions& options, const RunAs& run);

} // namespace holdfast::serve
