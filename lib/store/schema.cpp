#include "lib/store/schema.hpp"

#include "migrations/migrations.hpp"

namespace holdfast::store {

namespace {

std::vector<pg::MigrationFile> convert(const std::vector<migrations::File>& files) {
  std::vector<pg::MigrationFile> converted;
  for (const auto& file : files)
    converted.push_back({file.name, file.text});
  return converted;
}

} // namespace

const pg::Migrator& migrator() {
  static const pg::Migrator instance(convert(migrations::numbered()), convert(migrations::functions()));
  return instance;
}

} // namespace holdfast::store
