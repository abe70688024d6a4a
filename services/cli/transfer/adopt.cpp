#include "lib/archive/captures.hpp"
#include "lib/archive/recover.hpp"
#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/import.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/directories.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <set>

namespace holdfast::cli {

namespace {

struct Adopted {
  std::size_t snapshots{0}, known{0}, unreadable{0}, records{0};
  std::set<std::string> crawls;
};

// Returns `given` relative to the archive root. In a bucket it is already: 2026, 2026/11/example.org.
std::filesystem::path part_of(const std::filesystem::path& root, const std::string& given) {
  if (root.native().starts_with("s3:")) return std::filesystem::path(given).lexically_normal();
  if (!std::filesystem::is_directory(given))
    throw base::Error(base::ErrorClass::usage, "\"" + given + "\" is not a directory");
  const auto part = std::filesystem::canonical(given).lexically_relative(std::filesystem::canonical(root));
  if (part.empty() || *part.begin() == "..")
    throw base::Error(base::ErrorClass::usage, given + " is not in the archive " + root.string(),
                      "holdfast --set archive.root=" + given + " adopt " + given);
  return part == "." ? std::filesystem::path() : part;
}

// `given`: the archive root or a directory in it; empty: the archive root. 1 if a snapshot's files cannot be read.
int adopt(Context& context, const std::string& given) {
  const auto root = context.archive_root();
  const archive::Files files(root);
  const auto below = given.empty() ? std::filesystem::path() : part_of(root, given);
  const auto collection = files.collection();
  if (!collection)
    throw base::Error(base::ErrorClass::refused,
                      archive::shown(root, "") + " is not an archive: it has no file .holdfast-archive",
                      "archive.root names the directory that holds the years");
  auto& connection = context.connection(true);
  store::call(connection, "collection_adopt", *collection);
  const Presence presence(context, "command", "adopt");
  const auto opened = archive::Root::open(root, store::collection_id(connection), false);

  Adopted adopted;
  adopted.known = each_unknown_directory(connection, files, below, [&](const std::string& directory) {
    std::string problem;
    try {
      if (auto page = files.read_snapshot(directory, problem)) {
        const auto captures = archive::read_captures(opened, (*page)["directory"].get<std::string>());
        (*page)["captures"] = nlohmann::json::parse(archive::captures_json(captures));
        const auto answer = store::call_for<std::string>(connection, "adopt", store::json_text(*page));
        if (answer == "adopted") {
          ++adopted.snapshots;
          adopted.crawls.insert((*page)["crawl_id"].get<std::string>());
        } else {
          ++adopted.known;
        }
        return;
      }
    } catch (const base::Error& error) { // the facts in these files are impossible
      if (error.error_class() == base::ErrorClass::temporary || error.error_class() == base::ErrorClass::unavailable)
        throw;
      problem = error.what();
    }
    ++adopted.unreadable;
    print_defect(context.json(), "unreadable", directory, problem);
  });
  files.each_kept([&](const std::string& directory) { // what removed snapshots have left to others
    const auto records = nlohmann::json::parse(archive::captures_json(archive::read_captures(opened, directory)));
    for (const auto& record : records)
      if (store::call_for<bool>(connection, "adopt_kept", directory, store::json_text(record))) ++adopted.records;
  });
  if (context.json())
    print_record("Adoption", {{"snapshots", adopted.snapshots},
                              {"records", adopted.records},
                              {"crawls", adopted.crawls.size()},
                              {"known", adopted.known},
                              {"unreadable", adopted.unreadable}});
  else
    std::cout << adopted.snapshots << (adopted.snapshots == 1 ? " snapshot of " : " snapshots of ")
              << adopted.crawls.size() << (adopted.crawls.size() == 1 ? " crawl" : " crawls") << " adopted, "
              << adopted.known << " had rows already, " << adopted.unreadable << " cannot be read\n"
              << "  next: holdfast verify --all compares the files with their manifests\n";
  std::cout << std::flush;
  return adopted.unreadable == 0 ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace

Action adopt_verb(CLI::App& command) {
  const auto directory = std::make_shared<std::string>();
  command.add_option("directory", *directory, "The archive, or a directory in it (default: archive.root)");
  return [directory](Context& context) { return adopt(context, *directory); };
}

namespace {

int check(Context& context) {
  context.diagnose();
  auto& connection = context.connection();
  const Presence presence(context, "command", "check");
  const auto rows = store::call(connection, "check_invariants");
  if (context.json()) {
    for (const auto row : rows)
      print_record("Violation", {{"invariant", row.text("invariant")},
                                 {"object_id", row["object_id"].value_or("")},
                                 {"detail", row["detail"].value_or("")}});
  } else if (rows.empty()) {
    std::cout << "every invariant holds\n";
  } else {
    print_table(rows, {"invariant", "object_id", "detail"});
  }
  std::cout << std::flush;
  return rows.empty() ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace

Action check_verb(CLI::App&) { return &check; }

} // namespace holdfast::cli
