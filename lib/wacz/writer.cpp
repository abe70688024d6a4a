#include "lib/wacz/writer.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/json.hpp"
#include "lib/warc/gzip.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace holdfast::wacz {

namespace {

constexpr std::size_t kLinesOfBlock = 3000; // of the index, each compressed alone

} // namespace

Writer::Writer(ZipWriter& zip, About about) : zip_(zip), about_(std::move(about)), resources_(temporary_file()) {}

std::string Writer::add_file(const std::string& path, int file, std::uint64_t size) {
  auto sha256 = zip_.add(path, file, size);
  add_resource(path, size, sha256);
  return sha256;
}

std::string Writer::add_text(const std::string& path, const std::string& text) {
  auto sha256 = zip_.add(path, text);
  add_resource(path, text.size(), sha256);
  return sha256;
}

void Writer::add_resource(const std::string& path, std::uint64_t size, const std::string& sha256) {
  const auto entry =
      (resources_size_ == 0 ? "\n    " : ",\n    ") +
      base::json_text(nlohmann::ordered_json{
          {"name", path.substr(path.find('/') + 1)}, {"path", path}, {"hash", "sha256:" + sha256}, {"bytes", size}});
  write_all(resources_.get(), entry);
  resources_size_ += entry.size();
}

void Writer::add_warc(const std::string& name, int file, std::uint64_t size) {
  add_file("archive/" + name, file, size);
}

void Writer::add_capture(const warc::Capture& capture) { lines_.add(warc::cdxj_line(capture)); }

PageList::PageList() : file_(temporary_file()) {
  write(base::json_text(nlohmann::ordered_json{
      {"format", "json-pages-1.0"}, {"id", "pages"}, {"title", "All Pages"}, {"hasText", true}}));
}

void PageList::add(const WrittenPage& page) {
  nlohmann::ordered_json object = {{"id", page.id}, {"url", page.url}, {"ts", page.date}};
  if (!page.title.empty()) object["title"] = page.title;
  if (!page.text.empty()) object["text"] = page.text;
  if (!page.tags.empty()) object["tags"] = page.tags;
  if (!page.notes.empty()) object["notes"] = page.notes;
  if (!page.bookmarked.empty()) object["bookmarked_at"] = page.bookmarked;
  if (!page.path.empty()) object["path"] = page.path;
  write(base::json_text(object));
}

void PageList::write(const std::string& line) {
  write_all(file_.get(), line + "\n");
  size_ += line.size() + 1;
}

// Writes blocks of lines, each a gzip member, and a second index with the offset of each.
void Writer::add_index() {
  const auto index = temporary_file();
  std::uint64_t offset = 0;
  std::string second =
      "!meta 0 " + base::json_text(nlohmann::ordered_json{{"format", "cdxj-gzip-1.0"}, {"filename", "index.cdx.gz"}}) +
      "\n";
  std::string block, first;
  std::size_t lines = 0;
  const auto flush = [&] {
    if (lines == 0) return;
    const auto packed = warc::gzip(block);
    write_all(index.get(), packed);
    second += first + " " +
              base::json_text(nlohmann::ordered_json{{"offset", offset},
                                                     {"length", packed.size()},
                                                     {"digest", "sha256:" + base::sha256_hex(packed)},
                                                     {"filename", "index.cdx.gz"}}) +
              "\n";
    offset += packed.size();
    block.clear();
    lines = 0;
  };
  lines_.each([&](const std::string& line) {
    if (lines == 0) first = line.substr(0, line.find(" {"));
    block += line + "\n";
    if (++lines == kLinesOfBlock) flush();
  });
  flush();
  add_file("indexes/index.cdx.gz", index.get(), offset);
  add_text("indexes/index.idx", second);
}

void Writer::finish() {
  add_file(PageList::kPath, pages_.file(), pages_.size());
  add_index();
  const auto description = base::json_text(nlohmann::ordered_json{{"profile", "data-package"},
                                                                  {"wacz_version", "1.1.1"},
                                                                  {"title", about_.title},
                                                                  {"created", about_.created},
                                                                  {"software", about_.software}});
  const auto head = description.substr(0, description.size() - 1) + ",\n  \"resources\": [";
  const std::string tail = "\n  ]\n}\n";
  const auto package = temporary_file();
  write_all(package.get(), head);
  if (base::each_piece(resources_.get(), 0, resources_size_,
                       [&](std::string_view piece) { write_all(package.get(), piece); }) < 0)
    throw base::Error(base::ErrorClass::input_output, "cannot read the list of resources: " + base::errno_text(errno));
  write_all(package.get(), tail);
  const auto sha256 = add_file("datapackage.json", package.get(), head.size() + resources_size_ + tail.size());
  add_text("datapackage-digest.json",
           nlohmann::ordered_json{{"path", "datapackage.json"}, {"hash", "sha256:" + sha256}}.dump(2) + "\n");
}

namespace {

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw base::Error(base::ErrorClass::cannot_create,
                    what + " in " + std::filesystem::temp_directory_path().string() + ": " + why,
                    "TMPDIR names another directory");
}

void check(sqlite3* database, int answer) {
  if (answer != SQLITE_OK && answer != SQLITE_DONE && answer != SQLITE_ROW)
    fail("cannot sort lines", database == nullptr ? "no memory" : sqlite3_errmsg(database));
}

SortedLines::Statement prepared(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  check(database, sqlite3_prepare_v2(database, sql, -1, &statement, nullptr));
  return {statement, &sqlite3_finalize};
}

} // namespace

base::Fd temporary_file() {
  auto file = base::unnamed_file(std::filesystem::temp_directory_path());
  if (!file) fail("cannot create a file", base::errno_text(errno));
  return file;
}

void write_all(int file, std::string_view bytes) {
  if (!base::write_all(file, bytes)) fail("cannot write a file", base::errno_text(errno));
}

SortedLines::SortedLines() : database_(nullptr, &sqlite3_close), insert_(nullptr, &sqlite3_finalize) {
  sqlite3* database = nullptr;
  const int answer = sqlite3_open("", &database); // without a name: a temporary file, once memory does not suffice
  database_.reset(database);
  check(database, answer);
  check(database, sqlite3_exec(database,
                               "pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -65536;"
                               "create table line (line blob)",
                               nullptr, nullptr, nullptr));
  insert_ = prepared(database, "insert into line values (?)");
}

void SortedLines::add(std::string_view line) {
  if (sqlite3_get_autocommit(database_.get()) != 0)
    check(database_.get(), sqlite3_exec(database_.get(), "begin", nullptr, nullptr, nullptr));
  check(database_.get(), sqlite3_bind_blob64(insert_.get(), 1, line.data(), line.size(), SQLITE_STATIC));
  check(database_.get(), sqlite3_step(insert_.get()));
  sqlite3_reset(insert_.get());
}

void SortedLines::each(const std::function<void(const std::string&)>& take) {
  const auto sorted = prepared(database_.get(), "select line from line order by line");
  int answer = SQLITE_ROW;
  while ((answer = sqlite3_step(sorted.get())) == SQLITE_ROW) {
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(sorted.get(), 0));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(sorted.get(), 0));
    take(size == 0 ? std::string() : std::string(bytes, size));
  }
  check(database_.get(), answer);
}

namespace {

archive* archive_of(void* pointer) { return static_cast<archive*>(pointer); }

// archive_write_free() would write the end of a file that has none.
void give_up(void* pointer) {
  ::archive_write_fail(archive_of(pointer));
  ::archive_write_free(archive_of(pointer));
}

} // namespace

ZipWriter::ZipWriter(int file, std::time_t time) : archive_(::archive_write_new(), &give_up), time_(time) {
  auto* const writer = archive_of(archive_.get());
  ::archive_write_set_format_zip(writer);
  ::archive_write_zip_set_compression_store(writer);
  ::archive_write_set_bytes_in_last_block(writer, 1);
  if (::archive_write_open_fd(writer, file) != ARCHIVE_OK) fail("cannot begin the file");
}

ZipWriter::~ZipWriter() = default;

void ZipWriter::fail(const std::string& what) {
  const char* const said = ::archive_error_string(archive_of(archive_.get()));
  const int number = ::archive_errno(archive_of(archive_.get()));
  const std::string why = number > 0 ? base::errno_text(number) : said == nullptr ? "" : said;
  throw base::Error(base::ErrorClass::cannot_create, what + (why.empty() ? "" : ": " + why),
                    "free some space there, then try again");
}

void ZipWriter::begin(const std::string& path, std::uint64_t size) {
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(::archive_entry_new(), &::archive_entry_free);
  ::archive_entry_set_pathname_utf8(entry.get(), path.c_str());
  ::archive_entry_set_filetype(entry.get(), AE_IFREG);
  ::archive_entry_set_perm(entry.get(), 0644);
  ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
  ::archive_entry_set_mtime(entry.get(), time_, 0);
  if (::archive_write_header(archive_of(archive_.get()), entry.get()) < ARCHIVE_WARN) fail("cannot write " + path);
  path_ = path;
  left_ = size;
  digest_ = base::Sha256();
}

void ZipWriter::write(std::string_view bytes) {
  if (bytes.size() > left_)
    throw base::Error(base::ErrorClass::input_output, path_ + " became longer while it was read");
  digest_.update(bytes);
  left_ -= bytes.size();
  while (!bytes.empty()) {
    const auto written = ::archive_write_data(archive_of(archive_.get()), bytes.data(), bytes.size());
    if (written <= 0) fail("cannot write " + path_);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string ZipWriter::end() {
  if (left_ > 0) throw base::Error(base::ErrorClass::input_output, path_ + " became shorter while it was read");
  if (::archive_write_finish_entry(archive_of(archive_.get())) < ARCHIVE_WARN) fail("cannot write " + path_);
  return digest_.finish();
}

std::string ZipWriter::add(const std::string& path, int file, std::uint64_t size) {
  begin(path, size);
  if (base::each_piece(file, 0, size, [&](std::string_view piece) { write(piece); }) < 0)
    throw base::Error(base::ErrorClass::input_output, "cannot read " + path + ": " + base::errno_text(errno));
  return end(); // fails if there is less
}

std::string ZipWriter::add(const std::string& path, std::string_view text) {
  begin(path, text.size());
  write(text);
  return end();
}

void ZipWriter::close() {
  if (::archive_write_close(archive_of(archive_.get())) < ARCHIVE_WARN) fail("cannot end the file");
}

} // namespace holdfast::wacz
