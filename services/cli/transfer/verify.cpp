#include "services/cli/transfer/verify.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/captures.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/find.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/directories.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/transfer/verify_replay.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <optional>

namespace holdfast::cli {

namespace {

constexpr std::chrono::seconds kReplayPoll{10};
constexpr std::chrono::hours kFollowed{24};     // before it was started
constexpr std::chrono::minutes kLongestSeal{5}; // far longer than its transaction may take

struct VerifyOptions {
  std::vector<std::string> ids; // crawls or snapshots, whole or shortened
  bool all{false};
  bool collect{false}; // remove what lost attempts left beside them
  bool replay{false};
  bool follow{false};
  int every{1};         // of the snapshots that are replayed
  std::string pictures; // where their screenshots go
};

using EachSealed = std::function<void(const std::function<void(const store::SealedFiles&)>&)>;

struct Tally {
  std::size_t snapshots{0}, without_files{0}, defects{0}, leftovers{0}, removed{0}, without_row{0};
};

void print(Context& context, const std::string& kind, const std::string& snapshot, const std::string& path) {
  if (context.json())
    print_record("Defect", {{"kind", kind}, {"snapshot_id", snapshot}, {"path", path}});
  else
    std::cout << kind << std::string(kind.size() < 12 ? 12 - kind.size() : 1, ' ') << printable(path) << '\n';
}

// Returns the directory of the attempts at a snapshot, relative to the root. Throws Error for a row that the
// constraints of its tables reject: a superuser can switch them off.
std::filesystem::path place_of(const store::SealedFiles& sealed) {
  if (sealed.directory.empty())
    return archive::snapshot_directory(sealed.created_at, base::host_directory(base::parse_url(sealed.url)),
                                       sealed.snapshot_id);
  constexpr int kParts = 5; // yyyy/mm/host/id/a<fence>
  const std::filesystem::path directory = sealed.directory;
  const auto place = directory.parent_path();
  if (directory.is_absolute() || directory.lexically_normal() != directory ||
      std::distance(directory.begin(), directory.end()) != kParts || *directory.begin() == ".." ||
      place.filename() != sealed.snapshot_id)
    throw base::Error(base::ErrorClass::bug, "not the directory of an attempt: \"" + sealed.directory + "\"");
  return place;
}

void verify_one(Context& context, const archive::Root& root, const store::SealedFiles& sealed, bool collect,
                Tally& tally) {
  ++tally.snapshots;
  std::filesystem::path place;
  try {
    place = place_of(sealed);
  } catch (const base::Error& error) {
    ++tally.defects;
    return print(context, "bad row", sealed.snapshot_id, error.what());
  }
  if (sealed.directory.empty()) {
    ++tally.without_files; // refused, cancelled, quarantined, or failed before anything was published
  } else {
    auto defects = archive::verify_attempt(root, sealed.directory, sealed.manifest_sha256);
    const auto captures = store::captures_of(context.connection(), {sealed.snapshot_id});
    for (auto& defect : archive::verify_captures(root, sealed.directory, {captures.begin(), captures.end()}))
      defects.push_back(std::move(defect));
    for (const auto& revisit : store::revisits_broken(context.connection(), sealed.snapshot_id))
      defects.push_back({"no original", revisit.file + " at " + std::to_string(revisit.offset)});
    for (const auto& defect : defects) {
      ++tally.defects;
      print(context, defect.kind, sealed.snapshot_id, defect.path);
    }
  }
  const std::string kept = std::filesystem::path(sealed.directory).filename().native();
  for (const auto& leftover : archive::find_leftovers(root, place, kept)) {
    ++tally.leftovers;
    if (collect) {
      archive::remove_leftover(root, leftover);
      ++tally.removed;
    }
    print(context, collect ? "removed" : "leftover", sealed.snapshot_id, leftover.native());
  }
}

struct Replayed {
  std::size_t snapshots{0}, failed{0}, without_warc{0};
  double worst{1};
};

std::string percent(const nlohmann::json& share) {
  return share.is_number() ? std::to_string(static_cast<int>(share.get<double>() * 100)) + " %" : "-";
}

void replay_one(Context& context, ReplayCheck& check, const store::SealedFiles& sealed, Replayed& told) {
  const auto quality = check.check(sealed);
  if (!quality) {
    ++told.without_warc;
    return;
  }
  ++told.snapshots;
  const auto problem = quality->detail.value("problem", "");
  if (!problem.empty()) ++told.failed;
  if (quality->score) told.worst = std::min(told.worst, *quality->score);
  nlohmann::ordered_json line = {{"snapshot_id", sealed.snapshot_id}, {"url", sealed.url}};
  line["score"] = quality->score ? nlohmann::ordered_json(*quality->score) : nlohmann::ordered_json();
  for (const char* name : {"screenshot", "text", "resources", "missing", "missing_urls", "problem"})
    line[name] = quality->detail.value(name, nlohmann::json());
  if (context.json())
    print_record("Replay", line);
  else
    std::cout << percent(line["score"]) << "  " << printable(sealed.url) << "  "
              << (problem.empty() ? "screenshot " + percent(line["screenshot"]) + ", text " + percent(line["text"]) +
                                        ", resources " + percent(line["resources"])
                                  : printable(problem))
              << '\n';
  std::cout << std::flush;
}

// Returns 1 if a snapshot cannot be replayed. Prints and stores the scores of the others.
int verify_replay(Context& context, const VerifyOptions& options, const archive::Root& root, const EachSealed& each) {
  ReplayCheck check(context, root, options.pictures);
  Replayed told;
  int place = 0;
  each([&](const store::SealedFiles& sealed) {
    if (!sealed.directory.empty() && place++ % options.every == 0) replay_one(context, check, sealed, told);
  });
  if (context.json())
    print_record("Replays", {{"snapshots", told.snapshots},
                             {"failed", told.failed},
                             {"without_warc", told.without_warc},
                             {"worst", told.worst}});
  else
    std::cout << told.snapshots << " snapshots replayed, " << told.failed << " of them failed, " << told.without_warc
              << " without a WARC file" << std::endl;
  return told.failed == 0 ? base::kExitSuccess : base::kExitFailedWork;
}

// At the lowest priority, which Chromium inherits, until a signal comes.
int follow_replays(Context& context, const VerifyOptions& options, const archive::Root& root) {
  ::setpriority(PRIO_PROCESS, 0, 19);
  ReplayCheck check(context, root, options.pictures);
  Replayed told;
  // Pages sealed before the last empty answer, less the time until a seal is visible, are not read again.
  auto begin = std::chrono::steady_clock::now() - kFollowed;
  while (!interrupted()) {
    const auto now = std::chrono::steady_clock::now();
    // Reads one at a time: the next newest may have been sealed meanwhile, or replayed by another process.
    const auto within = std::chrono::duration_cast<std::chrono::seconds>(now - begin);
    const auto due = store::replays_due(context.connection(), options.every, within, 1);
    if (due.empty()) {
      begin = now - kLongestSeal;
      interrupted_within(kReplayPoll);
    } else {
      replay_one(context, check, due.front(), told);
    }
  }
  return base::kExitInterrupted;
}

// 1 if any file is missing, changed, unreadable, or should not be there, if the index of the WARC files is wrong, or if
// a snapshot's directory has no row, or if a row is none that the database lets in.
int verify(Context& context, const VerifyOptions& options) {
  if (!options.follow && options.ids.empty() != options.all)
    throw base::Error(base::ErrorClass::usage, "nothing to verify: name crawls or snapshots, or use --all",
                      "holdfast verify ID..., or holdfast verify --all");
  auto& connection = context.connection();
  const auto root = archive::Root::open(context.archive_root(), store::collection_id(connection), false);
  const Presence presence(context, "command", "verify");
  if (options.follow) return follow_replays(context, options, root);
  std::vector<std::optional<std::string>> targets;
  if (options.all) targets.emplace_back(std::nullopt);
  for (const auto& id : read_ids(options.ids))
    targets.emplace_back(store::find(connection, id).id);
  const EachSealed each = [&](const auto& take) {
    for (const auto& target : targets)
      store::each_sealed(connection, target, take);
  };
  if (options.replay) return verify_replay(context, options, root, each);
  Tally tally;
  each([&](const store::SealedFiles& sealed) { verify_one(context, root, sealed, options.collect, tally); });
  if (options.all)
    each_unknown_directory(connection, archive::Files(root), {}, [&](const std::string& directory) {
      ++tally.without_row;
      print(context, "no row", std::filesystem::path(directory).filename().native(), directory);
    });
  if (context.json())
    print_record("Verification", {{"snapshots", tally.snapshots},
                                  {"without_files", tally.without_files},
                                  {"defects", tally.defects},
                                  {"leftovers", tally.leftovers},
                                  {"removed", tally.removed},
                                  {"without_row", tally.without_row}});
  else
    std::cout << tally.snapshots << " snapshots checked, " << tally.without_files << " of them without files: "
              << (tally.defects == 0 ? "all files and their index are as they were sealed"
                                     : std::to_string(tally.defects) + " defects")
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

int verify_all(Context& context) {
  VerifyOptions options;
  options.all = true;
  return verify(context, options);
}

Action verify_verb(CLI::App& command) {
  const auto options = std::make_shared<VerifyOptions>();
  const auto ids = command.add_option("ids", options->ids, "Crawls or snapshots; - reads them from standard input");
  const auto all = command.add_flag("--all", options->all, "Everything");
  command.add_flag("--collect", options->collect, "Also remove files of lost attempts");
  const auto replay = command.add_flag(
      "--replay", options->replay, "Open each from its WARC files, without a network, and compare it with the capture");
  command.add_option("--every", options->every, "Replay one snapshot in N")->check(CLI::PositiveNumber)->needs(replay);
  command
      .add_flag("--follow", options->follow,
                "Keep running: replay new snapshots, starting with today's, at the lowest priority")
      ->needs(replay)
      ->excludes(ids)
      ->excludes(all);
  command.add_option("--pictures", options->pictures, "Keep the screenshots of capture and replay in this directory")
      ->needs(replay);
  return [options](Context& context) { return verify(context, *options); };
}

} // namespace holdfast::cli
