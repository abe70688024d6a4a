#pragma once
// Opens sealed snapshots from their WARC files in a Chromium without a network and compares what they show with what
// was captured: holdfast-capture replay. Main thread only; blocks for some seconds for each snapshot.

#include "lib/archive/root.hpp"
#include "lib/base/file.hpp"
#include "lib/store/capture.hpp"
#include "services/cli/context/context.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

class ReplayCheck {
public:
  // `pictures`: directory for the screenshots of both, for users; empty: none.
  ReplayCheck(Context& context, const archive::Root& root, std::filesystem::path pictures);

  struct Quality {
    std::optional<double> score; // from 0 to 1; nullopt: there was nothing to compare
    nlohmann::json detail;       // result.json of holdfast-capture replay
  };
  // Stores it as well. nullopt: the snapshot has no WARC file.
  std::optional<Quality> check(const store::SealedFiles& sealed);

private:
  struct Wanted {
    nlohmann::json replay; // replay.json; null: there is no WARC file
    std::filesystem::path scratch;
    std::map<std::string, std::string> files; // of the archive: where they are on this machine
    std::string crawl;                        // of an imported page; else empty
  };
  Wanted what_to_replay(const store::SealedFiles& sealed, const std::filesystem::path& scratch);
  void add_picture(Wanted& wanted, const std::vector<store::Capture>& captures);
  bool borrow(Wanted& wanted, const store::SealedFiles& sealed, const std::filesystem::path& directory);
  nlohmann::json record_of(Wanted& wanted, const store::Capture& capture);
  std::string local_file(const std::string& path, const std::filesystem::path& scratch);

  Context& context_;
  const archive::Root& root_;
  const std::filesystem::path pictures_;
  std::vector<base::Fd> files_; // of the archive, while a snapshot is replayed
};

} // namespace holdfast::cli
