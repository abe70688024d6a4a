#include "lib/hooks/persona.hpp"

#include "lib/base/error.hpp"

#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace holdfast::hooks {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;

namespace {

constexpr std::uintmax_t kLargestCookies = 16u << 20;
constexpr const char* kFile = "persona.json";
constexpr const char* kCookies = "cookies.txt";
constexpr const char* kAuth = "auth.json";

void require_name(const std::string& name) {
  if (!is_persona_name(name))
    throw Error(ErrorClass::usage, "\"" + name + "\" cannot be the name of a persona",
                "letters, digits, dots, underscores and hyphens, at most 64");
}

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw Error(ErrorClass::configuration, "cannot read " + file.string());
  return text.str();
}

// Readable by its owner alone, and whole or not at all.
void write_private(const fs::path& file, const std::string& text) {
  const fs::path partial = file.string() + ".new";
  std::error_code error;
  fs::remove(partial, error);
  const mode_t before = ::umask(077);
  std::ofstream stream(partial, std::ios::binary);
  ::umask(before);
  stream << text << std::flush;
  if (stream) fs::rename(partial, file, error);
  if (!stream || error)
    throw Error(ErrorClass::cannot_create, "cannot write " + file.string(), "check the owner of data_dir");
}

// Comments, blank lines, and lines of seven fields parted by tabs.
void require_cookies(const std::string& text, const fs::path& file) {
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const bool cookie = !line.empty() && line != "\r" && (line.front() != '#' || line.starts_with("#HttpOnly_"));
    if (cookie && std::count(line.begin(), line.end(), '\t') != 6)
      throw Error(ErrorClass::refused, file.string() + ":" + std::to_string(number) + ": not a line of a cookies file",
                  "Netscape's format: seven fields parted by tabs; browsers' add-ons export it as cookies.txt");
  }
}

} // namespace

bool is_persona_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.front() != '.' &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
             std::string_view::npos;
}

std::optional<Persona> read_persona(const fs::path& personas, const std::string& name) {
  require_name(name);
  const fs::path directory = personas / name;
  std::error_code error;
  Persona persona;
  persona.name = name;
  if (!fs::is_directory(directory, error)) return name == "Default" ? std::optional(persona) : std::nullopt;
  persona.cookies = fs::is_regular_file(directory / kCookies, error);
  persona.auth = fs::is_regular_file(directory / kAuth, error);
  const fs::path file = directory / kFile;
  if (!fs::exists(file, error)) return persona;
  const auto json = nlohmann::json::parse(content_of(file), nullptr, false);
  const auto wrong = [&](const std::string& what) {
    throw Error(ErrorClass::configuration, file.string() + ": " + what, "holdfast persona set " + name + " writes it");
  };
  if (!json.is_object()) wrong("not a JSON object");
  if (const auto notes = json.find("notes"); notes != json.end() && notes->is_string())
    persona.notes = notes->get<std::string>();
  if (const auto options = json.find("options"); options != json.end()) {
    if (!options->is_object()) wrong("\"options\" must be an object");
    for (const auto& [key, value] : options->items())
      persona.options[key] = value.is_string()    ? value.get<std::string>()
                             : value.is_boolean() ? (value.get<bool>() ? "True" : "False")
                                                  : value.dump();
  }
  return persona;
}

std::vector<std::string> persona_names(const fs::path& personas) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(personas, error), end; !error && entry != end; entry.increment(error))
    if (const auto name = entry->path().filename().string(); is_persona_name(name) && entry->is_directory(error))
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void write_persona(const fs::path& personas, const Persona& persona, const fs::path& cookies) {
  require_name(persona.name);
  std::string jar;
  if (!cookies.empty()) {
    std::error_code error;
    if (!fs::is_regular_file(cookies, error) || fs::file_size(cookies, error) > kLargestCookies)
      throw Error(ErrorClass::refused, "there is no cookies file " + cookies.string());
    jar = content_of(cookies);
    require_cookies(jar, cookies);
  }
  const fs::path directory = personas / persona.name;
  std::error_code error;
  fs::create_directories(directory, error);
  if (!error) fs::permissions(directory, fs::perms::owner_all, error);
  if (error)
    throw Error(ErrorClass::cannot_create, "cannot create " + directory.string() + ": " + error.message(),
                "check the owner of data_dir");
  const nlohmann::ordered_json json{{"notes", persona.notes}, {"options", persona.options}};
  write_private(directory / kFile, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (!cookies.empty()) write_private(directory / kCookies, jar);
}

bool remove_persona(const fs::path& personas, const std::string& name) {
  require_name(name);
  std::error_code error;
  const bool removed = fs::remove_all(personas / name, error) > 0;
  if (error)
    throw Error(ErrorClass::cannot_create, "cannot remove " + (personas / name).string() + ": " + error.message());
  return removed;
}

Options persona_options(const Persona& persona, const fs::path& directory) {
  Options options = persona.options;
  if (persona.cookies) options.try_emplace("COOKIES_FILE", (directory / kCookies).string());
  if (persona.auth) options.try_emplace("AUTH_STORAGE_FILE", (directory / kAuth).string());
  return options;
}

} // namespace holdfast::hooks
