#include "lib/store/schema.hpp"

#include "lib/base/error.hpp"
#include "migrations/migrations.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace holdfast::store {

namespace {

using Files = std::map<std::string, std::string>; // name -> text

std::vector<pg::MigrationFile> convert(const std::vector<migrations::File>& files, const Files& added) {
  std::map<std::string_view, std::string_view> all;
  for (const auto& file : files)
    all[file.name] = file.text;
  for (const auto& [name, text] : added)
    all[name] = text;
  std::vector<pg::MigrationFile> converted;
  for (const auto& [name, text] : all)
    converted.push_back({name, text});
  return converted;
}

void read_files(const std::filesystem::path& directory, const std::string& prefix, Files& files) {
  if (!std::filesystem::is_directory(directory)) return;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".sql") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    files[prefix + entry.path().filename().string()] = text.str();
  }
}

} // namespace

const pg::Migrator& migrator() {
  static Files numbered, functions; // the migrator keeps views of them
  static const pg::Migrator instance = [] {
    if (const char* directory = std::getenv("HOLDFAST_TEST_MIGRATIONS")) {
      read_files(directory, "", numbered);
      read_files(std::filesystem::path(directory) / "functions", "functions/", functions);
    }
    return pg::Migrator(convert(migrations::numbered(), numbered), convert(migrations::functions(), functions),
                        HOLDFAST_VERSION);
  }();
  return instance;
}

pg::MigrationReport migrate(pg::Connection& connection, bool force) {
  const auto refuse = [](pg::Transaction& transaction, int minimum) {
    const auto older =
        transaction.call("select label, version from holdfast.older_programs($1::integer)", pg::Params::of(minimum));
    if (older.empty()) return;
    std::string names;
    for (std::size_t i = 0; i < older.size() && i < 5; ++i)
      names += (i > 0 ? ", " : "") + older[i].text("label") + " (" + older[i].text("version") + ")";
    if (older.size() > 5) names += ", ...";
    throw base::Error(base::ErrorClass::refused,
                      "this migration needs programs of revision " + std::to_string(minimum) + " or later, but " +
                          std::to_string(older.size()) + " older ones are running: " + names,
                      "install the new release on their machines and drain them first: holdfast drain NODE; "
                      "holdfast migrate --force does without");
  };
  return migrator().migrate(connection, force ? pg::BeforeBreaking{} : refuse);
}

} // namespace holdfast::store
