#include "lib/store/persona.hpp"

#include "lib/base/base64.hpp"
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
  for (const auto& [key, value] : nlohmann::json::parse(row.text("options")).items())
    persona.options[key] = value.is_string() ? value.get<std::string>() : value.dump();
  persona.hosts = row["hosts"];
  persona.worker_label = row["worker_label"].value_or("");
  persona.checks_json = row["checks"];
  persona.signed_out_at = row["signed_out_at"].value_or("");
  persona.signed_out_reason = row["signed_out_reason"].value_or("");
  return persona;
}

void persona_set(pg::Connection& connection, const std::string& name, const PersonaChange& change,
                 const std::string& by) {
  const auto options = change.options.is_null() ? std::nullopt : std::optional(json_text(change.options));
  auto parameters = pg::Params::of(name, options);
  change.hosts ? parameters.add(*change.hosts) : parameters.add(std::nullopt);
  parameters.add(change.worker_label).add(change.notes).add(by);
  connection.call("select holdfast.persona_set($1, $2::jsonb, $3::text[], $4, $5, $6)", parameters);
}

std::optional<std::int64_t> persona_save(pg::Connection& connection, const std::string& name, std::int64_t version,
                                         std::string_view sealed, const std::string& key_id, const std::string& by) {
  return connection
      .call("select holdfast.persona_save($1, $2::bigint, decode($3, 'base64'), $4, $5)", name, version,
            base::base64_encode(sealed), key_id, by)
      .value()
      .optional<std::int64_t>();
}

void persona_remove(pg::Connection& connection, const std::string& name) {
  connection.call("select holdfast.persona_remove($1)", name);
}

pg::Result personas(pg::Connection& connection, const std::string& name) {
  return connection.call("select *, to_jsonb(v)::text as json from holdfast.v_persona v where $1 in (name, '')", name);
}

} // namespace holdfast::store
