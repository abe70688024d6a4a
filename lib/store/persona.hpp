#pragma once
// Personas in the database (migrations/functions/84_persona.sql), sealed there. Blocking; call on the thread that owns
// the connection.

#include "lib/persona/key_ring.hpp"
#include "lib/persona/state.hpp"
#include "lib/pg/connection.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace holdfast::store {

struct Persona {
  std::string name;
  std::int64_t version{0}; // 0: no state
  std::string key_id;
  std::map<std::string, std::string> options;
  nlohmann::json checks;
  persona::State state;
};
// nullopt: there is none. For workers and the owner alone. Throws Error(configuration) if the key_ring cannot open it.
std::optional<Persona> persona_load(pg::Connection& connection, const persona::KeyRing& key_ring,
                                    const std::string& name);
// The new version; nullopt: the state was made from `version`, and that is not the last one any more. Version 0: there
// was no state, and the persona is made if need be. `signed_in`: it is the state of a new session, and what waits for
// one goes on. Throws Error(configuration) without a key.
std::optional<std::int64_t> persona_save(pg::Connection& connection, const persona::KeyRing& key_ring,
                                         const std::string& name, std::int64_t version, const persona::State& state,
                                         const std::string& by, bool signed_in = true);

// What `change` does not name stays: {"options": {...}, "hosts": [...], "worker_label", "checks", "check_every",
// "notes"}.
void persona_set(pg::Connection& connection, const std::string& name, const nlohmann::json& change,
                 const std::string& by);
// A check as people write it ("text=Log out", "not-selector=form.login @https://press.example/") as it is kept:
// {"kind": "text", "value": "Log out", "signed_out": false, "url": ""}. signed_out: what is so while it is not signed
// in. Throws Error(refused).
nlohmann::json parse_check(const std::string& text);
// Of a worker, for a page or a sign-in that it has. Errors: lease_lost if it has it no more.
struct PersonaHeld {
  std::string worker, id;
  std::int64_t fence{0}; // of a page
};
// Changes the state: by what a page has changed, or to that of a new session. If another worker is faster, `change` is
// asked again, with the state of that. The persona as it is then; nullopt: `change` has answered false, for nothing to
// do. Throws Error(refused) if the persona is gone, or others were faster each time.
std::optional<Persona> persona_keep(pg::Connection& connection, const persona::KeyRing& key_ring,
                                    const PersonaHeld& held, const std::string& name,
                                    const std::function<bool(persona::State&)>& change);
// A page that was given `version` was captured signed out: its crawls wait until a new session is stored. True: that
// was not known.
bool persona_signed_out(pg::Connection& connection, const PersonaHeld& page, std::int64_t version,
                        const std::string& reason);
} // namespace holdfast::store
