#pragma once
// The table of pages, and the frame around each. Pure; any thread.

#include "services/serve/access.hpp"
#include "services/serve/http_message.hpp"
#include "services/serve/pages/pages.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::serve {

// Every page. A path that ends in "/" and is not "/" is followed by an id. live: it shows news by itself.
struct Route {
  std::string_view path, tab, what;
  bool live;
  std::optional<Page> (*page)(const PageRequest&);
  bool has_id() const { return path.size() > 1 && path.ends_with('/'); }
};

struct Found {
  const Route* route{nullptr};
  std::string id;
};
// Finds the page of a path; route is null if there is none.
Found find_route(const std::string& path);

// Tells a browser whether a section has changed.
std::string digest_of(const html::Html& html);
// Renders a page within the frame of all pages. `query`: the words in the search field.
std::string layout(const Route& route, const Page& page, const std::string& query, const Request& request,
                   const Caller& caller);
// Text of a page that refuses, or reports what was done; and a link to go on.
struct Problem {
  std::string heading, detail, hint, back, label{"Back"};
};
Response problem_page(unsigned status, const Problem& problem, const Request& request, const Caller& caller);
Response no_such(std::string_view what, const Request& request, const Caller& caller);
// `link`: the secret of the link that leads here; empty: a token is required, or the name and password of an account.
Response sign_in_page(unsigned status, const std::string& next, const std::string& problem, const std::string& link,
                      bool by_password);

} // namespace holdfast::serve
