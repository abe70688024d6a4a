#include "lib/store/persona.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace holdfast::store {

std::optional<Persona> persona_load(pg::Connection& connection, const persona::KeyRing& key_ring,
                                    const std::string& name) {
  const auto found =
      connection.call("select version, encode(state, 'base64') as state, key_id, options::text as options, "
                      "checks::text as checks, to_jsonb(hosts)::text as hosts from holdfast.persona_load($1)",
                      name);
  if (found.empty()) return std::nullopt;
  const auto row = found.one();
  Persona persona{name,
                  row["version"],
                  row["key_id"].value_or(""),
                  texts_of(nlohmann::json::parse(row.text("options"))),
                  nlohmann::json::parse(row.text("checks")),
                  nlohmann::json::parse(row.text("hosts")),
                  {}};
  std::vector<std::string> left_out; // nothing: it was written by text()
  if (persona.version > 0)
    persona.state = persona::State::parse(
        key_ring.open(name, persona.version, persona.key_id, base::base64_decode(row.text("state"))),
        "persona \"" + name + "\"", left_out);
  return persona;
}

std::optional<std::int64_t> persona_save(pg::Connection& connection, const persona::KeyRing& key_ring,
                                         const std::string& name, std::int64_t version, const persona::State& state,
                                         const std::string& by, bool signed_in) {
  const auto sealed = base::base64_encode(key_ring.seal(name, version + 1, state.text()));
  return connection
      .call("select holdfast.persona_save($1, $2::bigint, decode($3, 'base64'), $4, $5, $6)", name, version, sealed,
            key_ring.key_ids().front(), by, signed_in)
      .value()
      .optional<std::int64_t>();
}

void persona_set(pg::Connection& connection, const std::string& name, const nlohmann::json& change,
                 const std::string& by) {
  call(connection, "persona_set", name, json_text(change), by);
}

nlohmann::json parse_check(const std::string& text) {
  struct Kind {
    std::string_view written, kind;
    bool signed_out;
  };
  static constexpr Kind kKinds[] = {
      {"text=", "text", false},    {"selector=", "selector", false},    {"cookie=", "cookie", false},
      {"not-text=", "text", true}, {"not-selector=", "selector", true}, {"redirect=", "redirect", true}};
  const auto wrong = [&](const std::string& what) -> base::Error {
    std::string known = "login";
    for (const auto& kind : kKinds)
      known += ", " + std::string(kind.written);
    return {base::ErrorClass::refused, "check \"" + text.substr(0, 200) + "\": " + what,
            known + "; for example text=Log out"};
  };
  if (text == "login") return {{"kind", "login"}, {"value", ""}, {"signed_out", true}, {"url", ""}};
  if (text.find('=') == std::string::npos) throw wrong("it has no \"=\"");
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                        [&](const Kind& one) { return text.starts_with(one.written); });
  if (kind == std::end(kKinds)) throw wrong("there is no such kind of check");
  auto value = text.substr(kind->written.size()), url = std::string();
  if (const auto at = value.rfind(" @http"); at != std::string::npos) {
    url = value.substr(at + 2);
    value.resize(at);
  }
  if (value.empty()) throw wrong("it has no value");
  if (kind->kind == "redirect") {
    const auto login = base::try_parse_url(value);
    if (!login) throw wrong("the value of redirect= must be a URL: redirect=https://press.example/login");
    value = login->text;
  }
  if (!url.empty() && !base::try_parse_url(url)) throw wrong("\"" + url + "\" is not a URL");
  return {{"kind", kind->kind}, {"value", value}, {"signed_out", kind->signed_out}, {"url", url}};
}

std::optional<Persona> persona_keep(pg::Connection& connection, const persona::KeyRing& key_ring,
                                    const PersonaHeld& held, const std::string& name,
                                    const std::function<bool(persona::State&)>& change) {
  constexpr int kTries = 8; // against other writers
  for (int left = kTries; left > 0; --left) {
    auto persona = persona_load(connection, key_ring, name);
    if (!persona) throw base::Error(base::ErrorClass::refused, "the persona \"" + name + "\" was removed meanwhile");
    if (!change(persona->state)) return std::nullopt;
    const auto saved =
        connection
            .call("select holdfast.persona_keep($1::uuid, $2::uuid, $3::bigint, $4::bigint, decode($5, 'base64'), $6)",
                  held.worker, held.id, held.fence, persona->version,
                  base::base64_encode(key_ring.seal(name, persona->version + 1, persona->state.text())),
                  key_ring.key_ids().front())
            .value()
            .optional<std::int64_t>();
    if (!saved) continue;
    persona->version = *saved;
    return persona;
  }
  throw base::Error(base::ErrorClass::refused, "others changed the persona \"" + name + "\" each time");
}

bool persona_signed_out(pg::Connection& connection, const PersonaHeld& page, std::int64_t version,
                        const std::string& reason) {
  return call(connection, "persona_signed_out", page.worker, page.id, page.fence, version, reason).value();
}

pg::Result sign_in_row(pg::Connection& connection, const std::string& id) {
  return connection.call("select * from holdfast.v_persona where sign_in = $1::uuid", id);
}

SignInAddress sign_in_open(pg::Connection& connection, const std::string& id, const std::string& by) {
  const auto key = base::random_hex32() + base::random_hex32();
  const auto found = call(connection, "sign_in_open", id, by, base::sha256_hex(key));
  if (found.empty()) return {"", "", 0, "", "", "it has ended; its worker's log says why"};
  const auto row = found.one();
  return {row["address"].value_or(""), row["certificate_hash"].value_or(""), row["port"].value_or(0), key, row["waits"],
          row["problem"].value_or("")};
}

std::optional<SignIn> sign_in_take(pg::Connection& connection, const std::string& worker) {
  const auto found = call(connection, "sign_in_take", worker);
  if (found.empty()) return std::nullopt;
  const auto row = found.one();
  return SignIn{row["id"],       row["persona"], row["url"],
                row["asked_by"], row["address"], std::chrono::milliseconds(row.integer("left_ms"))};
}

bool sign_in_ready(pg::Connection& connection, const std::string& worker, const std::string& id,
                   const SignInAddress& place) {
  return call(connection, "sign_in_ready", worker, id, place.address, place.port, place.certificate_hash).value();
}

std::string sign_in_check(pg::Connection& connection, const std::string& worker, const std::string& key) {
  const auto answer = call(connection, "sign_in_check", worker, base::sha256_hex(key));
  return answer.value().value_or("");
}

} // namespace holdfast::store
