// holdfast backup, holdfast restore. A backup is a directory: backup.json (what it is; written last), database.dump
// (pg_dump) and archive/ (the files of the archive root, linked where that is possible). Files of sealed pages never
// change, so a second backup to the same directory copies only what is new.
#include "lib/archive/attempt.hpp"
#include "lib/archive/root.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/pg/conninfo.hpp"
#include "lib/process/subprocess.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/schema.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/directories.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/transfer/verify.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDump = "database.dump";
constexpr const char* kAbout = "backup.json";
constexpr const char* kFiles = "archive";
constexpr const char* kIncomplete = ".incomplete"; // end of the name of a first backup until it is complete
constexpr std::chrono::hours kLongestDump{24 * 7};
constexpr std::size_t kMostRead = 1u << 20; // of backup.json, and of what pg_dump says

[[noreturn]] void cannot_write(const fs::path& path, const std::error_code& problem, const std::string& left) {
  throw base::Error(base::ErrorClass::cannot_create, "cannot write " + path.string() + ": " + problem.message(), left);
}

// Runs pg_dump or pg_restore on the database of the settings. Throws Error with its last words.
void run_postgres(Context& context, std::vector<std::string> words) {
  const TemporaryDirectory temporary("backup"); // another disk may have room
  const auto log = temporary.path() / "log";
  const auto name = words.front();
  const auto variables = pg::environment_of(pg::with_password(context.dsn()));
  std::vector<std::string> environment = {"PATH=" + std::string(::getenv("PATH") ? ::getenv("PATH") : "/usr/bin")};
  for (const auto& [variable, value] : variables)
    environment.push_back(variable + "=" + value);
  if (const auto database = variables.find("PGDATABASE"); database != variables.end())
    words.insert(words.begin() + 1, "--dbname=" + database->second);
  words.insert(words.begin(), "/usr/bin/env");
  const base::Fd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!output) cannot_write(log, {errno, std::generic_category()}, "");
  const auto code = process::run_to_end({words, environment, -1, output.get()}, kLongestDump);
  if (code == 0) return;
  if (code == 127)
    throw base::Error(base::ErrorClass::unavailable, "cannot run " + name,
                      "install PostgreSQL's client programs (Debian: postgresql-client)");
  throw base::Error(base::ErrorClass::input_output,
                    name + " failed: " + base::one_line(base::read_file(log, kMostRead), 500));
}

bool is_same(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  if (!fs::exists(to, problem)) return false;
  return fs::equivalent(from, to, problem) || (fs::file_size(from, problem) == fs::file_size(to, problem) &&
                                               fs::last_write_time(from) == fs::last_write_time(to));
}

struct Copied {
  std::set<std::string> attempts; // directories of attempts that got a file
  std::uint64_t files{0}, bytes{0};
};

// Puts a file where it is not yet: as a link, else as a copy that appears at once.
void put_file(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  fs::path fresh = to;
  fresh += ".part";
  fs::remove(fresh, problem);
  fs::create_hard_link(from, fresh, problem);
  if (problem) {
    fs::copy_file(from, fresh, fs::copy_options::overwrite_existing, problem);
    if (!problem) fs::last_write_time(fresh, fs::last_write_time(from), problem);
  }
  if (!problem) fs::rename(fresh, to, problem);
  if (!problem) return;
  std::error_code ignored;
  fs::remove(fresh, ignored);
  if (problem == std::errc::no_such_file_or_directory && !fs::exists(from, ignored)) return; // removed meanwhile
  throw fs::filesystem_error("cannot write", to, problem);
}

// Copies what `to` lacks. Leaves out half-made attempts, whose names begin with ".a".
void copy_files(const fs::path& from, const fs::path& to, Copied& copied) {
  fs::create_directories(to);
  std::error_code gone;
  for (fs::recursive_directory_iterator at(from), end; at != end; at.increment(gone)) {
    if (interrupted()) throw base::Error(base::ErrorClass::temporary, "interrupted");
    const auto path = at->path().lexically_relative(from);
    if (at->path().filename().native().starts_with(".a")) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code problem;
    if (at->is_symlink(problem)) {
      if (!fs::is_symlink(to / path, problem)) fs::copy_symlink(at->path(), to / path);
    } else if (at->is_directory(problem)) {
      fs::create_directory(to / path);
    } else if (at->is_regular_file(problem) && !is_same(at->path(), to / path)) {
      put_file(at->path(), to / path);
      ++copied.files;
      copied.bytes += fs::file_size(to / path, problem);
      constexpr int kParts = 5; // yyyy/mm/host/id/a<fence>
      auto part = path.begin();
      fs::path attempt;
      for (int i = 0; i < kParts && part != path.end(); ++i)
        attempt /= *part++;
      copied.attempts.insert(attempt.string());
    }
  }
}

// Compares the pages that were copied with their manifests, and that none is missing which is in the archive. Throws
// Error(input_output).
void verify_backup(const fs::path& archive, const fs::path& directory, const std::string& collection,
                   const std::vector<store::SealedFiles>& pages, const Copied& copied) {
  const auto root = archive::Root::open(directory / kFiles, collection, false);
  for (const auto& page : pages) {
    std::error_code problem;
    const bool is_there = fs::exists(directory / kFiles / page.directory, problem);
    if (is_there && !copied.attempts.contains(page.directory)) continue;       // verified when it was copied
    if (!is_there && !fs::exists(archive / page.directory, problem)) continue; // removed meanwhile, or lost before
    const auto defects = archive::verify_attempt(root, page.directory, page.manifest_sha256);
    if (!defects.empty())
      throw base::Error(base::ErrorClass::input_output,
                        "the copy of " + page.directory + " is wrong: " + defects[0].kind + " " + defects[0].path,
                        "holdfast verify " + page.snapshot_id + " tells whether the archive is");
  }
}

// Writes a backup to a directory: of another backup, which it becomes, or a new one.
nlohmann::ordered_json write_backup(Context& context, const fs::path& directory) {
  auto& connection = context.connection();
  const auto collection = store::collection_id(connection);
  const auto archive = context.archive_root();
  const bool in_bucket = archive.native().starts_with("s3:");
  std::error_code problem;
  const bool has_files = !in_bucket && fs::exists(archive, problem);
  Copied copied;
  // Before the dump, for pages that are removed meanwhile; and after it, for those that were sealed meanwhile.
  if (has_files) copy_files(archive, directory / kFiles, copied);
  auto dump = directory / kDump;
  dump += ".part";
  run_postgres(context,
               {"pg_dump", "--format=custom", "--schema=holdfast", "--extension=pg_trgm", "--file=" + dump.string()});
  std::vector<store::SealedFiles> pages;
  store::each_sealed(connection, std::nullopt, [&](const auto& page) {
    if (!page.directory.empty()) pages.push_back(page);
  });
  if (has_files) {
    copy_files(archive, directory / kFiles, copied);
    verify_backup(archive, directory, collection, pages, copied);
  }
  const auto sha256 = archive::sha256_file(dump);
  fs::rename(dump, directory / kDump);
  nlohmann::ordered_json about{{"type", "Backup"},         {"format", 1},
                               {"collection", collection}, {"revision", store::migrator().revision()},
                               {"dump_sha256", sha256},    {"pages", pages.size()},
                               {"files", has_files}};
  const auto text = about.dump() + "\n";
  auto file = directory / kAbout;
  file += ".part";
  std::ofstream stream(file);
  stream << text << std::flush;
  if (!stream) cannot_write(file, {errno, std::generic_category()}, "");
  stream.close();
  fs::rename(file, directory / kAbout);
  ::sync();
  about["copied_files"] = copied.files;
  about["copied_bytes"] = copied.bytes;
  return about;
}

bool has_nothing(const fs::path& directory) {
  std::error_code problem;
  return !fs::exists(directory, problem) || fs::is_empty(directory, problem);
}

int backup(Context& context, const std::string& given) {
  const fs::path directory = fs::absolute(given).lexically_normal() / "";
  const auto place = directory.parent_path();
  const bool again = fs::exists(place / kAbout);
  if (!again && !has_nothing(place))
    throw base::Error(base::ErrorClass::refused, place.string() + " is neither empty nor a backup",
                      "name a new directory");
  auto& connection = context.connection();
  if (again &&
      nlohmann::json::parse(base::read_file(place / kAbout, kMostRead), nullptr, false).value("collection", "") !=
          store::collection_id(connection))
    throw base::Error(base::ErrorClass::refused, place.string() + " is a backup of another collection",
                      "name a new directory");
  interrupted();
  const Presence presence(context, "command", "backup");
  auto target = place;
  if (!again) target += kIncomplete;
  const auto left = again ? "the backup of before is as it was" : "nothing of the backup was left";
  nlohmann::ordered_json about;
  try {
    if (!again) fs::remove_all(target);
    fs::create_directories(target);
    fs::permissions(target, fs::perms::owner_all); // it has what the archive and the database have
    about = write_backup(context, target);
    if (!again) {
      fs::remove(place);
      fs::rename(target, place);
    }
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    if (!again) fs::remove_all(target, ignored);
    cannot_write(error.path1(), error.code(), left);
  } catch (const base::Error& error) {
    std::error_code ignored;
    if (!again) fs::remove_all(target, ignored);
    throw base::Error(error.error_class(), error.what(), error.hint().empty() ? left : error.hint() + "; " + left);
  }
  if (context.json())
    std::cout << base::json_text(about) << std::endl;
  else
    std::cout << "backup of " << about["pages"] << " pages in " << place.string() << ": " << about["copied_files"]
              << " files copied, verified\n"
              << (about["files"] ? "" : "  without files: the archive is a bucket, or empty\n")
              << "  not in it: settings, persona.key, installed plugins; keep these elsewhere" << std::endl;
  return base::kExitSuccess;
}

// Only into an empty place: nothing of a collection is overwritten.
int restore(Context& context, const std::string& given) {
  const fs::path directory = fs::absolute(given);
  const auto about = nlohmann::json::parse(base::read_file(directory / kAbout, kMostRead), nullptr, false);
  if (!about.is_object() || about.value("format", 0) != 1)
    throw base::Error(base::ErrorClass::refused, directory.string() + " is not a complete backup",
                      "holdfast backup DIR makes one");
  if (archive::sha256_file(directory / kDump) != about.value("dump_sha256", ""))
    throw base::Error(base::ErrorClass::input_output, (directory / kDump).string() + " is damaged");
  const auto archive = context.archive_root();
  const bool in_bucket = archive.native().starts_with("s3:");
  const bool with_files = about.value("files", false) && !in_bucket;
  pg::Connection connection(context.dsn());
  if (store::has_schema(connection) || (with_files && !has_nothing(archive)))
    throw base::Error(base::ErrorClass::refused,
                      "there is a collection already, which a restore would overwrite: " +
                          (store::has_schema(connection) ? "in the database" : "in " + archive.string()),
                      "restore into an empty database and archive.root, for example with a new --data-dir");
  interrupted();
  try {
    Copied copied;
    if (with_files) copy_files(directory / kFiles, archive, copied);
    run_postgres(context, {"pg_restore", "--no-owner", "--no-acl", "--exit-on-error", "--single-transaction",
                           (directory / kDump).string()});
  } catch (const std::exception& error) {
    std::error_code ignored;
    if (with_files)
      for (const auto& entry : fs::directory_iterator(archive, ignored))
        fs::remove_all(entry.path(), ignored);
    const auto* const ours = dynamic_cast<const base::Error*>(&error);
    throw base::Error(ours != nullptr ? ours->error_class() : base::ErrorClass::cannot_create,
                      "cannot restore: " + std::string(error.what()), "nothing was restored");
  }
  store::migrator().migrate(connection);
  store::complete_schema(connection);
  store::call(connection, "restored", user_name());
  return verify_all(context);
}

} // namespace

Action backup_verb(CLI::App& command) {
  const auto directory = std::make_shared<std::string>();
  command.add_option("directory", *directory, "Directory of the backup: a new one, or one to bring up to date")
      ->required();
  return [directory](Context& context) { return backup(context, *directory); };
}

Action restore_verb(CLI::App& command) {
  const auto directory = std::make_shared<std::string>();
  command.add_option("directory", *directory, "Directory of the backup")->required();
  return [directory](Context& context) { return restore(context, *directory); };
}

} // namespace holdfast::cli
