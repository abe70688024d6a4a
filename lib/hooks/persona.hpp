#pragma once
// Personas: named sets of options, cookies and a browser profile that a crawl can name. Each is a directory of that
// name:
//   persona.json   {"notes": "...", "options": {"USER_AGENT": "..."}}
//   cookies.txt    for COOKIES_FILE, in Netscape's format
//   auth.json      for AUTH_STORAGE_FILE
// and whatever browsers keep there. They may hold secrets, so nothing of them goes into the database. Blocking file
// work; any thread.

#include "lib/hooks/environment.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::hooks {

struct Persona {
  std::string name, notes;
  Options options;
  bool cookies{false}, auth{false};
};

// Letters, digits, ".", "_" and "-", not beginning with a dot.
bool is_persona_name(std::string_view name);

// nullopt if there is no such persona; "Default" always is, be it empty. Throws Error(configuration) if its
// persona.json is wrong, Error(usage) if that is no name of a persona.
std::optional<Persona> read_persona(const std::filesystem::path& personas, const std::string& name);
std::vector<std::string> persona_names(const std::filesystem::path& personas);

// Options and notes as given; cookies are copied from that file unless it is empty. Only its owner may read what it
// writes. Throws Error(cannot_create), and Error(refused) if the cookies are not in Netscape's format.
void write_persona(const std::filesystem::path& personas, const Persona& persona, const std::filesystem::path& cookies);
// False if there was none.
bool remove_persona(const std::filesystem::path& personas, const std::string& name);

// Its options as hooks get them, with the files in `directory`, which holds a copy of the persona or is it.
Options persona_options(const Persona& persona, const std::filesystem::path& directory);

} // namespace holdfast::hooks
