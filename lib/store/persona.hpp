#pragma once
// Personas as the database has them, with the state sealed (migrations/functions/84_persona.sql); lib/persona opens it.
// Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

struct PersonaRow {
  std::string name;
  std::int64_t version{0}; // 0: no state
  std::string sealed, key_id;
  std::map<std::string, std::string> options;
  std::vector<std::string> hosts;
  std::string worker_label, checks_json{"[]"};
  std::string signed_out_at, signed_out_reason; // empty: it is not, as far as is known
};
// nullopt: there is none. For workers and the owner alone.
std::optional<PersonaRow> persona_load(pg::Connection& connection, const std::string& name);

// What is not given stays. In `options`, null removes one.
struct PersonaChange {
  nlohmann::json options;
  std::optional<std::vector<std::string>> hosts;
  std::optional<std::string> worker_label, notes;
  std::optional<nlohmann::json> checks;
};
// A check as people write it ("text=Log out", "not-selector=form.login @https://press.example/") as it is kept:
// {"kind": "text", "value": "Log out", "signed_out": false, "url": ""}. signed_out: what is so while it is not signed
// in. Throws Error(refused).
nlohmann::json parse_check(const std::string& text);
void persona_set(pg::Connection& connection, const std::string& name, const PersonaChange& change,
                 const std::string& by);
// The new version; nullopt: `version` is not the last one any more. `signed_in`: it is the state of a new session, and
// what waits for one goes on.
std::optional<std::int64_t> persona_save(pg::Connection& connection, const std::string& name, std::int64_t version,
                                         std::string_view sealed, const std::string& key_id, const std::string& by,
                                         bool signed_in = true);
// A page that was given `version` was captured signed out: its crawls wait until a new session is stored. True: that
// was not known.
bool persona_signed_out(pg::Connection& connection, const std::string& name, std::int64_t version,
                        const std::string& reason, const std::string& crawl_id, const std::string& worker_id);
// Throws Error(refused) if there is none, or while something uses it.
void persona_remove(pg::Connection& connection, const std::string& name);
// Rows of v_persona: all, or the one of this name.
pg::Result personas(pg::Connection& connection, const std::string& name = "");

} // namespace holdfast::store
