#include "lib/store/persona.hpp"

#include "lib/base/base64.hpp"
#include "lib/base/error.hpp"
#include "lib/base/url.hpp"
#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

std::optional<PersonaRow> persona_load(pg::Connection& connection, const std::string& name) {
  const auto found = connection.call(
      "select name, version, encode(state, 'base64') as state, key_id, options::text as options, hosts, "
      "worker_label, checks::text as checks, signed_out_at, signed_out_reason from holdfast.persona_load($1)",
      name);
  if (found.empty()) return std::nullopt;
  const auto row = found.one();
  PersonaRow persona;
  persona.name = name;
  persona.version = row["version"];
  persona.sealed = base::base64_decode(row["state"].value_or(""));
  persona.key_id = row["key_id"].value_or("");
  const auto options = nlohmann::json::parse(row.text("options"));
  for (const auto& [key, value] : options.items())
    persona.options[key] = value.is_string() ? value.get<std::string>() : value.dump();
  persona.hosts = row["hosts"];
  persona.worker_label = row["worker_label"].value_or("");
  persona.checks_json = row["checks"];
  persona.signed_out_at = row["signed_out_at"].value_or("");
  persona.signed_out_reason = row["signed_out_reason"].value_or("");
  return persona;
}

nlohmann::json parse_check(const std::string& text) {
  const auto wrong = [&](const std::string& what) -> base::Error {
    return {base::ErrorClass::refused, "check \"" + text.substr(0, 200) + "\": " + what,
            "login, text=, selector= or cookie=, or not-text=, not-selector= or redirect=; for example text=Log out"};
  };
  constexpr std::string_view kNot = "not-";
  if (text == "login") return {{"kind", "login"}, {"value", ""}, {"signed_out", true}, {"url", ""}};
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw wrong("it has no \"=\"");
  auto kind = text.substr(0, equals), value = text.substr(equals + 1), url = std::string();
  const bool negated = kind.starts_with(kNot);
  if (negated) kind.erase(0, kNot.size());
  if (const auto at = value.rfind(" @http"); at != std::string::npos) {
    url = value.substr(at + 2);
    value.resize(at);
  }
  const bool known = kind == "text" || kind == "selector" || (!negated && (kind == "cookie" || kind == "redirect"));
  if (!known) throw wrong("there is no such kind of check");
  if (value.empty()) throw wrong("it has no value");
  if (kind == "redirect" && !base::try_parse_url(value)) throw wrong("where the login is must be a URL");
  if (!url.empty() && !base::try_parse_url(url)) throw wrong("\"" + url + "\" is not a URL");
  return {{"kind", kind}, {"value", value}, {"signed_out", negated || kind == "redirect"}, {"url", url}};
}

void persona_set(pg::Connection& connection, const std::string& name, const PersonaChange& change,
                 const std::string& by) {
  const auto options = change.options.is_null() ? std::nullopt : std::optional(json_text(change.options));
  auto parameters = pg::Params::of(name, options);
  change.hosts ? parameters.add(*change.hosts) : parameters.add(std::nullopt);
  parameters.add(change.worker_label).add(change.notes).add(by);
  parameters.add(change.checks ? std::optional(json_text(*change.checks)) : std::nullopt);
  connection.call("select holdfast.persona_set($1, $2::jsonb, $3::text[], $4, $5, $6, $7::jsonb)", parameters);
}

std::optional<std::int64_t> persona_save(pg::Connection& connection, const std::string& name, std::int64_t version,
                                         std::string_view sealed, const std::string& key_id, const std::string& by,
                                         bool signed_in) {
  return connection
      .call("select holdfast.persona_save($1, $2::bigint, decode($3, 'base64'), $4, $5, $6)", name, version,
            base::base64_encode(sealed), key_id, by, signed_in)
      .value()
      .optional<std::int64_t>();
}

bool persona_signed_out(pg::Connection& connection, const std::string& name, std::int64_t version,
                        const std::string& reason, const std::string& crawl_id, const std::string& worker_id) {
  return connection
      .call("select holdfast.persona_signed_out($1, $2::bigint, $3, $4::uuid, $5::uuid)", name, version, reason,
            crawl_id, worker_id)
      .value();
}

void persona_remove(pg::Connection& connection, const std::string& name) {
  connection.call("select holdfast.persona_remove($1)", name);
}

pg::Result personas(pg::Connection& connection, const std::string& name) {
  return connection.call("select *, to_jsonb(v)::text as json from holdfast.v_persona v where $1 in (name, '')", name);
}

} // namespace holdfast::store
