#include "lib/store/call.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

namespace holdfast::serve {

std::optional<Page> tokens_page(const PageRequest& request) {
  Table table({{"Name", "nw"},
               {"May", "nw"},
               {"State", ""},
               {"Made", "nw"},
               {"Expires", "nw"},
               {request.may_change ? "Change" : "", "nw"}},
              "Your tokens");
  for (const auto row : store::call(request.connection, "own_tokens", request.by)) {
    const auto name = row.text("name");
    const auto expires = row["expires_at"].value_or(""), revoked = row["revoked_by"].value_or("");
    table.row({name, row.text("role") == "operator" ? "read, add and change" : "read",
               row.text("state") + (revoked.empty() ? "" : " by " + revoked), ago(row.text("created_at")),
               expires.empty() ? html::escaped("never") : when(expires),
               row.text("state") == "valid" ? buttons(acts_on("token", name, ""), "/tokens") : Html()});
  }
  Page page{"Your tokens", "Your tokens", {}};
  page.body = html::fill(embedded::tokens_html, {{"table", table.html("You have no tokens and no sessions.")},
                                                 {"site", request.site},
                                                 {"may", request.may_change},
                                                 {"account", request.account}});
  return page;
}

} // namespace holdfast::serve
