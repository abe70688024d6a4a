#include "lib/base/text.hpp"
#include "lib/store/persona.hpp"
#include "lib/store/sign_in.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages.hpp"
#include "services/serve/parts.hpp"

namespace holdfast::serve {

namespace {

Html sign_ins_under_way(const PageRequest& request) {
  std::vector<Table::Column> columns{{"Persona", ""}, {"Who", "long"}, {"Since", "nw"}, {"State", ""}};
  if (request.may_change) columns.push_back({"Change", ""});
  Table table(columns, "Sign-ins under way");
  const auto rows = store::sign_ins(request.connection);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const std::string id = row["id"];
    std::vector<html::Value> cells{
        request.may_change
            ? html::Value(html::fill(embedded::persona_link_html, {{"id", id}, {"name", row.text("persona")}}))
            : html::Value(row.text("persona")),
        row["viewer"].value_or(row.text("asked_by").c_str()), ago(row.text("asked_at")),
        row.text("state") + (row.is_null("worker") ? "" : " on " + row.text("worker")) +
            (row.is_null("problem") ? "" : ": " + row.text("problem"))};
    if (request.may_change) cells.emplace_back(buttons({{"cancelSignIn", "Cancel", id}}, "/personas"));
    table.row(std::move(cells));
  }
  return table.html("No sign-in is under way.");
}

Html all_personas(const PageRequest& request) {
  std::vector<Table::Column> columns{{"Persona", ""}, {"State", "long"}, {"Hosts", "long"}, {"Changed", "nw"}};
  if (request.may_change) columns.push_back({"Change", "long"});
  Table table(columns, "Personas");
  const auto rows = store::personas(request.connection);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const auto name = row.text("name");
    const auto state =
        !row.is_null("signed_out_at")
            ? sentence("signed out since " + row.text("signed_out_at") + ": " + row.text("signed_out_reason"))
        : row.integer("version") == 0 ? sentence("not signed in yet")
                                      : sentence("signed in, as far as is known");
    std::vector<html::Value> cells{name, state, base::join(row["hosts"].as<std::vector<std::string>>(), ", "),
                                   ago(row.text("changed_at"))};
    if (request.may_change) {
      const auto remove = buttons({{"removePersona", "Remove", name, {}, true}}, request.here);
      cells.emplace_back(html::fill(embedded::persona_form_html, {{"name", name}, {"remove", remove}}));
    }
    table.row(std::move(cells));
  }
  return table.html("There are no personas yet.");
}

} // namespace

std::optional<Page> personas_page(const PageRequest& request) {
  Page page{"Personas",
            "Personas",
            {{"personas", all_personas(request), "", false}, {"sign-ins", sign_ins_under_way(request), "Signing in"}}};
  if (request.may_change)
    page.sections.push_back({"new", html::fill(embedded::persona_form_html, {{"name", ""}, {"remove", ""}}),
                             "Sign in to a site", true, false});
  return page;
}

std::optional<Page> persona_view_page(const PageRequest& request) {
  const auto rows = store::sign_ins(request.connection);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    if (row.text("id") != request.id) continue;
    Page page{"Sign in to " + row.text("persona"), row.text("persona"), {}};
    page.kicker = "Sign in";
    page.body = request.may_change ? html::fill(embedded::persona_view_html,
                                                {{"id", request.id}, {"deadline", when(row.text("deadline"))}})
                                   : Html(html::Literal("<p>Only an operator may sign in.</p>"));
    return page;
  }
  return std::nullopt;
}

} // namespace holdfast::serve
