#pragma once
// Personas in the database (migrations/functions/84_persona.sql), sealed there. Blocking; call on the thread that owns
// the connection.

#include "lib/persona/key_ring.hpp"
#include "lib/persona/state.hpp"
#include "lib/pg/connection.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
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
  nlohmann::json checks, hosts;
  persona::State state;
};
// Loads a persona; nullopt: there is none. For workers and the owner alone. Throws Error(configuration) if the key ring
// cannot decrypt it.
std::optional<Persona> persona_load(pg::Connection& connection, const persona::KeyRing& key_ring,
                                    const std::string& name);
// Stores a state; returns the new version, or nullopt if `version`, from which it was made, is not the last one any
// more. Version 0: there was no state, and the persona is made if need be. `signed_in`: it is the state of a new
// session, and the crawls that wait for one continue. Throws Error(configuration) without a key.
std::optional<std::int64_t> persona_save(pg::Connection& connection, const persona::KeyRing& key_ring,
                                         const std::string& name, std::int64_t version, const persona::State& state,
                                         const std::string& by, bool signed_in = true);

// Changes the named members and keeps others: {"options": {...}, "hosts": [...], "worker_label", "checks",
// "check_every", "notes"}.
void persona_set(pg::Connection& connection, const std::string& name, const nlohmann::json& change,
                 const std::string& by);
// Parses a check in the notation of users ("text=Log out", "not-selector=form.login @https://press.example/"): {"kind":
// "text", "value": "Log out", "signed_out": false, "url": ""}. signed_out: the check is true while signed out. Throws
// Error(refused).
nlohmann::json parse_check(const std::string& text);
// A worker with the page or sign-in for which it holds a persona. Errors: lease_lost if it does not hold it any more.
struct PersonaHeld {
  std::string worker, id;
  std::int64_t fence{0}; // of a page
};
// Changes the state: by the changes of a page, or to that of a new session. If another worker is faster, `change` is
// called again, with the state of that. Returns the persona as it is then; nullopt: `change` has returned false,
// because nothing is to be done. Throws Error(refused) if the persona was removed, or others were faster each time.
std::optional<Persona> persona_keep(pg::Connection& connection, const persona::KeyRing& key_ring,
                                    const PersonaHeld& held, const std::string& name,
                                    const std::function<bool(persona::State&)>& change);
// Records that a page that was given `version` was captured signed out: its crawls wait until a new session is stored.
// Returns true if that was unknown.
bool persona_signed_out(pg::Connection& connection, const PersonaHeld& page, std::int64_t version,
                        const std::string& reason);

// People who sign in by hand (migrations/functions/87_sign_in.sql). Blocking; call on the thread that owns the
// connection. All may be repeated.

struct SignIn {
  std::string id, persona, url, asked_by;
  std::string seen_at; // address of this worker, as the database sees it
  std::chrono::milliseconds left{0};
};

// The row of v_persona with this sign-in; none: it has ended.
pg::Result sign_in_row(pg::Connection& connection, const std::string& id);

struct SignInAddress {
  static constexpr std::size_t kKeySize = 64;
  std::string address, certificate_hash; // SHA-256 of what its worker presents
  int port{0};
  std::string key{};     // lets one connection in
  std::string waits{};   // for what, for users
  std::string problem{}; // why there will be none
};
// Prepares a new connection. Throws Error(refused) if another user has the view.
SignInAddress sign_in_open(pg::Connection& connection, const std::string& id, const std::string& by);

// Takes a sign-in for a worker. Errors: lease_lost if it has lapsed.
std::optional<SignIn> sign_in_take(pg::Connection& connection, const std::string& worker);
bool sign_in_ready(pg::Connection& connection, const std::string& worker, const std::string& id,
                   const SignInAddress& place);
// The sign-in that this key lets in; empty: none.
std::string sign_in_check(pg::Connection& connection, const std::string& worker, const std::string& key);

} // namespace holdfast::store
