#pragma once
// The pages over a collection, their live sections and the numbers for Prometheus: access, and routes from paths to
// pages (pages/pages.hpp). Any thread; each request takes a database connection of its own out of a few. The destructor
// closes them.

#include "services/serve/access.hpp"
#include "services/serve/api/api.hpp"
#include "services/serve/connections.hpp"
#include "services/serve/feed.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_message.hpp"
#include "services/serve/http_server.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::serve {

struct Page;
struct Found; // routes.hpp

struct SiteOptions {
  std::string dsn;           // of sessions that read
  std::string dsn_to_change; // of sessions that change something; empty: the login may not
  ApiOptions api;
  std::string collection_id;
  Role guest{Role::none};         // of requests without a token
  RoleGroups groups{};            // of users that a proxy names
  std::vector<std::string> hosts; // names under which it may be asked for; empty: any
  const Files* files{nullptr};    // may be null: no files here
  std::uint16_t files_port{0};    // where the browser finds them, on the same host
  std::string files_origin;       // where else it finds them; may be empty
  int changes_in_a_minute{0};     // of one client; 0: no bound
  std::string url;                // at which users reach it; empty: where they ask
  std::string replay;             // URL of the collection in a replay tool, which has another origin; may be empty
};

class Site {
public:
  explicit Site(SiteOptions options);

  Response answer(const Request& request);
  // How much of its body is read before a request is answered: little, unless its credentials let it change something.
  BodyLimit body_limit(const Request& request);

  // The path of a link that signs one browser in, once; empty: the login in database.url may not make the token for it.
  std::string sign_in_link();

private:
  std::string files_origin(const Request& request) const;
  Response admit(const Request& request);
  Response sign_in(const Request& request);
  Response sign_in_by_link(const Request& request, const std::string& secret);
  Response sign_in_by_password(const Request& request, const std::string& name, const std::string& password,
                               const std::string& next);
  Response change_password(const Request& request, const Caller& caller);
  bool has_accounts(); // with which one can sign in here
  Response run_as(Role role, const std::function<Response(pg::Connection&)>& work);
  Response form(const Request& request, const Caller& caller);
  std::string site_of(const Request& request) const; // serve.url, or the address that was asked for: for absolute links
  Response route(const Request& request, const Caller& caller);
  Response page(const Request& request, const Caller& caller);
  Response view(const Request& request, const Caller& caller);
  Response live(const Request& request, const Caller& caller);
  std::optional<Page> page_at(pg::Connection& connection, const Request& request, const Caller& caller,
                              const Found& found) const;
  std::string sections(pg::Connection& connection, const Request& shown, const Caller& caller) const;

  SiteOptions options_;
  Access access_;
  Connections connections_, changing_;
  Feed feed_;
  Rates changes_; // by token, or by the address of a guest
};

} // namespace holdfast::serve
