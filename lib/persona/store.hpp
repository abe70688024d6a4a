#pragma once
// Personas in the database, opened. Blocking; call on the thread that owns the connection.

#include "lib/persona/state.hpp"
#include "lib/persona/vault.hpp"
#include "lib/store/persona.hpp"

#include <optional>

namespace holdfast::persona {

struct Persona : store::PersonaRow {
  State state;
};

// nullopt: there is none of this name. Throws Error(configuration) if the vault cannot open it.
std::optional<Persona> load(pg::Connection& connection, const Vault& vault, const std::string& name);
// The new version; nullopt: the state was made from `version`, and that is not the last one any more. Version 0: there
// was no state, and the persona is made if need be. Throws Error(configuration) without a key.
std::optional<std::int64_t> save(pg::Connection& connection, const Vault& vault, const std::string& name,
                                 std::int64_t version, const State& state, const std::string& by,
                                 bool signed_in = true);

} // namespace holdfast::persona
