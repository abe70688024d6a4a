#pragma once
// Layout of the files of a snapshot in ArchiveBox 0.7 to 0.9. Blocking; any thread.

#include "lib/archivebox/index.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace holdfast::archivebox {

// The name of a plugin as version 0.9 has it, for one of any version: "archive_org" -> "archivedotorg".
std::string plugin_name(const std::string& extractor);

// The plugin to whose outputs a name at the top of a snapshot's directory belongs, and its name there ("": its contents
// belong directly into the plugin's directory). Files that belong to no plugin are "archivebox"'s: its own index.
struct Place {
  std::string plugin, name;
  friend bool operator==(const Place&, const Place&) = default;
};
Place place_of(const std::string& name, bool is_directory, const Snapshot& snapshot);

class Directories {
public:
  explicit Directories(std::filesystem::path data_dir);
  // Relative to the data directory; nullopt: it has none. Links are not followed out of the data directory.
  std::optional<std::string> of(const Snapshot& snapshot) const;

private:
  void look_in(const std::filesystem::path& users);
  const std::filesystem::path data_dir_;
  std::map<std::string, std::string> by_id_; // those of version 0.9
};

} // namespace holdfast::archivebox
