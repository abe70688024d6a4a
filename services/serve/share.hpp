#pragma once
// Links that share a page or a shelf: /share/<secret>/ on the origin of archived files, which has no cookies and no
// rights. Each request asks the database whether the link is valid, and whether it shares what is asked for. Blocking;
// any thread.

#include "lib/html/template.hpp"
#include "lib/pg/connection.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_message.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::serve {

inline constexpr std::string_view kShare = "share/"; // before the secret of a link

struct SharedPath {
  std::string link; // "share/<secret>", as the key of the addresses of files
  std::string hash; // of the secret
  std::string rest; // behind the link: empty, "page/<snapshot>", or a path of the archive
};
// Reads a path that begins with kShare; nothing if no link can be so.
std::optional<SharedPath> shared_path(std::string_view path);

// Returns true if this is a path of a file that the link shares.
bool shares_file(pg::Connection& connection, const SharedPath& path);
// Renders the page of a link, or the one of a snapshot that it shares. Nothing: the link is not valid, or does not
// share it.
std::optional<std::string> shared_page(pg::Connection& connection, const SharedPath& path, const Files& files,
                                       const Request& request);

} // namespace holdfast::serve
