#include "lib/persona/store.hpp"

namespace holdfast::persona {

std::optional<Persona> load(pg::Connection& connection, const Vault& vault, const std::string& name) {
  auto row = store::persona_load(connection, name);
  if (!row) return std::nullopt;
  Persona persona{std::move(*row), {}};
  std::vector<std::string> left_out; // nothing: it was written by text()
  if (persona.version > 0)
    persona.state = State::parse(vault.open(name, persona.version, persona.key_id, persona.sealed),
                                 "persona \"" + name + "\"", left_out);
  return persona;
}

std::optional<std::int64_t> save(pg::Connection& connection, const Vault& vault, const std::string& name,
                                 std::int64_t version, const State& state, const std::string& by, bool signed_in) {
  const auto sealed = vault.seal(name, version + 1, state.text());
  return store::persona_save(connection, name, version, sealed, vault.key_ids().front(), by, signed_in);
}

} // namespace holdfast::persona
