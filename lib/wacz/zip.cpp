#include "lib/wacz/zip.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>

namespace holdfast::wacz {

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
