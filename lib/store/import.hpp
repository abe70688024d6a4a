#pragma once
// Pages that another program has archived, stored as sealed snapshots (migrations/functions/97_adopt.sql). Their files
// are in the archive before their rows are stored. A page's id is made from its name in the other program, so every
// step may be repeated: the same page gets the same directory and the same row. Blocking; call on the thread that owns
// the connection.

#include "lib/pg/connection.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::store {

struct ImportName {
  std::string kind;   // "archivebox", "warc"
  std::string source; // distinguishes sources of this kind, if `key` does not: a digest, a collection's name
  std::string key;    // of the page or crawl in its source; never changes there
};

// A UUID version 7 of this time (milliseconds count): equal for equal names and times.
std::string import_id(const ImportName& name, std::chrono::system_clock::time_point at);

struct ImportPage {
  std::string id, crawl_id, url; // the URL is canonical
  std::string directory;         // of the snapshot in the archive: <yyyy>/<mm>/<host>/<id>
};

enum class ImportPlace {
  fresh,   // "new": nothing is there yet, or it was stored by this call
  known,   // there is a snapshot with this id
  taken,   // its crawl has another snapshot of the URL
  removed, // a snapshot with this id was removed, and its files wait to be deleted
};

// Returns true if these pages can be stored; one answer for each.
std::vector<ImportPlace> import_check(pg::Connection& connection, const std::vector<ImportPage>& pages);

// Stores pages in one transaction; one answer for each. `pages`: an array of objects, each as
// archive::Files::read_snapshot() makes it, with "source" and perhaps "crawl" (label, notes, tags, created_at: facts of
// a crawl that is not there yet) and "captures". May be repeated.
std::vector<ImportPlace> import_pages(pg::Connection& connection, const nlohmann::json& pages);

} // namespace holdfast::store
