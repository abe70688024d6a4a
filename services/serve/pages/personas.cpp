#include "lib/base/text/text.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/persona.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

namespace holdfast::serve {

namespace {

constexpr int kPersonas = 500;

Html state_of(const pg::Row& row, bool may_change) {
  Html state = !row.is_null("signed_out_at")
                   ? sentence("signed out since " + row.text("signed_out_at") + ": " + row.text("signed_out_reason"))
               : row.integer("version") == 0 ? sentence("not signed in yet")
                                             : sentence("signed in, as far as is known");
  if (!row.is_null("sign_in"))
    state += html::fill(embedded::persona_sign_in_html, {{"id", may_change ? row.text("sign_in") : ""},
                                                         {"who", row.text("sign_in_by")},
                                                         {"state", row.text("sign_in_state")}});
  return state;
}

Html all_personas(const PageRequest& request) {
  Table table({{"Persona", ""},
               {"State", "long"},
               {"Hosts", "long"},
               {"Changed", "nw"},
               {request.may_change ? "Change" : "", "long"}},
              "Personas");
  for (const auto row : catalog::list(request.connection, {"personas", kPersonas})) {
    const auto name = row.text("name");
    auto acts = acts_on("persona", name, "");
    if (!row.is_null("sign_in")) acts.push_back({"cancelSignIn", "Cancel the sign-in", row.text("sign_in")});
    table.row({name, state_of(row, request.may_change), base::join(row["hosts"].as<std::vector<std::string>>(), ", "),
               ago(row.text("changed_at")),
               html::fill(embedded::persona_form_html, {{"name", name}, {"acts", buttons(acts, request.here)}})});
  }
  return table.html("There are no personas yet.");
}

} // namespace

std::optional<Page> personas_page(const PageRequest& request) {
  Page page{"Personas", "Personas", {{"personas", all_personas(request), "", false}}};
  if (request.may_change)
    page.sections.push_back({"new", html::fill(embedded::persona_form_html, {{"name", ""}, {"acts", ""}}),
                             "Sign in to a site", true, false});
  return page;
}

std::optional<Page> persona_view_page(const PageRequest& request) {
  const auto rows = store::sign_in_row(request.connection, request.id);
  if (rows.empty()) return std::nullopt;
  const auto row = rows.one();
  Page page{"Sign in to " + row.text("name"), row.text("name"), {}};
  page.kicker = "Sign in";
  page.body = request.may_change ? html::fill(embedded::persona_view_html,
                                              {{"id", request.id}, {"deadline", when(row.text("sign_in_until"))}})
                                 : Html(html::Literal("<p>Only an operator may sign in.</p>"));
  return page;
}

} // namespace holdfast::serve
