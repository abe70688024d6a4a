#include "lib/store/call.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

namespace holdfast::serve {

std::optional<Page> tokens_page(const PageRequest& request) {
  std::vector<Table::Column> columns{{"Name", "nw"}, {"May", "nw"}, {"State", ""}, {"Made", "nw"}, {"Expires", "nw"}};
  if (request.may_change) columns.push_back({"Change", "nw"});
  Table table(columns, "Your tokens");
  for (const auto row : store::call(request.connection, "own_tokens", request.by)) {
    const auto name = row.text("name");
    const auto expires = row["expires_at"].value_or(""), revoked = row["revoked_by"].value_or("");
    std::vector<html::Value> cells{name, row.text("role") == "operator" ? "read, add and change" : "read",
                                   row.text("state") + (revoked.empty() ? "" : " by " + revoked),
                                   ago(row.text("created_at")),
                                   expires.empty() ? html::escaped("never") : when(expires)};
    if (request.may_change)
      cells.emplace_back(row.text("state") == "valid" ? buttons(acts_on("token", name, ""), "/tokens") : Html());
    table.row(std::move(cells));
  }
  Page page{"Your tokens", "Your tokens", {}};
  page.body = html::fill(embedded::tokens_html, {{"table", table.html("You have no tokens and no sessions.")},
                                                 {"site", request.site},
                                                 {"may", request.may_change},
                                                 {"account", request.account}});
  return page;
}

} // namespace holdfast::serve
