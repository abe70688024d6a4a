#include "lib/archive/verify.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/url.hpp"
#include "lib/store/verify.hpp"
#include "lib/store/view.hpp"
#include "services/cli/input.hpp"
#include "services/cli/output.hpp"
#include "services/cli/unknown_directories.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <optional>

namespace holdfast::cli {

namespace {

struct VerifyOptions {
  std::vector<std::string> ids; // crawls or snapshots, whole or shortened
  bool all{false};
  bool collect{false}; // remove what lost attempts left beside them
};

constexpr int kVerifyBatch = 500;

struct Tally {
  std::size_t snapshots{0}, without_files{0}, defects{0}, leftovers{0}, removed{0}, without_row{0};
};

void print(Context& context, const std::string& kind, const std::string& snapshot, const std::string& path) {
  if (context.json())
    std::cout << base::json_text(nlohmann::ordered_json{
                     {"type", "Defect"}, {"kind", kind}, {"snapshot_id", snapshot}, {"path", path}})
              << '\n';
  else
    std::cout << kind << std::string(kind.size() < 12 ? 12 - kind.size() : 1, ' ') << printable(path) << '\n';
}

void verify_one(Context& context, const archive::Root& root, const store::SealedFiles& sealed, bool collect,
                Tally& tally) {
  ++tally.snapshots;
  if (sealed.directory.empty()) {
    ++tally.without_files; // refused, cancelled, quarantined, or failed before anything was published
  } else {
    for (const auto& defect : archive::verify_attempt(root, sealed.directory, sealed.manifest_sha256)) {
      ++tally.defects;
      print(context, defect.kind, sealed.snapshot_id, defect.path);
    }
  }
  const std::filesystem::path directory =
      sealed.directory.empty()
          ? archive::snapshot_directory(sealed.created_at, base::host_directory(base::parse_url(sealed.url)),
                                        sealed.snapshot_id)
          : std::filesystem::path(sealed.directory).parent_path();
  const std::string kept = std::filesystem::path(sealed.directory).filename().native();
  for (const auto& leftover : archive::find_leftovers(root, directory, kept)) {
    ++tally.leftovers;
    if (collect) {
      archive::remove_leftover(root, leftover);
      ++tally.removed;
    }
    print(context, collect ? "removed" : "leftover", sealed.snapshot_id, leftover.native());
  }
}

// 1 if any file is missing, changed, unreadable, or should not be there, or a snapshot's directory has no row.
int verify(Context& context, const VerifyOptions& options) {
  if (options.ids.empty() != options.all)
    throw base::Error(base::ErrorClass::usage, "nothing to verify: name crawls or snapshots, or use --all",
                      "holdfast verify ID..., or holdfast verify --all");
  auto& connection = context.connection();
  const auto root = archive::Root::open(context.archive_root(), store::collection_id(connection), false);
  std::vector<std::optional<std::string>> targets;
  if (options.all) targets.emplace_back(std::nullopt);
  for (const auto& id : read_ids(options.ids))
    targets.emplace_back(store::find(connection, id).id);
  Tally tally;
  for (const auto& target : targets) {
    std::optional<std::string> after;
    for (;;) {
      const auto batch = store::sealed_files(connection, target, after, kVerifyBatch);
      for (const auto& sealed : batch)
        verify_one(context, root, sealed, options.collect, tally);
      if (batch.size() < kVerifyBatch) break;
      after = batch.back().snapshot_id;
    }
  }
  if (options.all)
    each_unknown_directory(connection, archive::Files(root), {}, [&](const std::string& directory) {
      ++tally.without_row;
      print(context, "no row", std::filesystem::path(directory).filename().native(), directory);
    });
  if (context.json())
    std::cout << nlohmann::ordered_json{{"type", "Verification"},
                                        {"snapshots", tally.snapshots},
                                        {"without_files", tally.without_files},
                                        {"defects", tally.defects},
                                        {"leftovers", tally.leftovers},
                                        {"removed", tally.removed},
                                        {"without_row", tally.without_row}}
                     .dump()
              << '\n';
  else
    std::cout << tally.snapshots << " snapshots checked, " << tally.without_files << " of them without files: "
              << (tally.defects == 0 ? "all files are as they were sealed" : std::to_string(tally.defects) + " defects")
              << (tally.leftovers == 0 ? std::string()
                  : options.collect
                      ? ", " + std::to_string(tally.removed) + " leftovers of lost attempts removed"
                      : ", " + std::to_string(tally.leftovers) + " leftovers of lost attempts (--collect removes them)")
              << (tally.without_row == 0 ? std::string()
                                         : ", " + std::to_string(tally.without_row) +
                                               " directories without a row (holdfast adopt makes them)")
              << '\n';
  std::cout << std::flush;
  return tally.defects + tally.without_row == 0 ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace

Action verify_verb(CLI::App& command) {
  const auto options = std::make_shared<VerifyOptions>();
  command.add_option("ids", options->ids, "Crawls or snapshots; - reads them from standard input");
  command.add_flag("--all", options->all, "Everything");
  command.add_flag("--collect", options->collect, "Remove what lost attempts have left beside them");
  return [options](Context& context) { return verify(context, *options); };
}

} // namespace holdfast::cli
