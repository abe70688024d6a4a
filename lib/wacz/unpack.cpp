#include "lib/wacz/unpack.hpp"

#include "lib/base/error.hpp"
#include "lib/wacz/writer.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/record_bytes.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <optional>
#include <utility>

namespace holdfast::wacz {

namespace {

constexpr std::uint64_t kMostRatio = 20;        // WARC files are compressed already; plain ones shrink to a tenth
constexpr std::uint64_t kMostRatioOfText = 200; // of one that was compressed as a whole
constexpr std::uint64_t kSmall = 64u << 20;
constexpr std::size_t kReadAtOnce = 1u << 18;

// `left`: how much the file may still unpack to.
void count(std::uint64_t unpacked, std::uint64_t& left, const std::string& name) {
  if (unpacked > left) throw base::Error(base::ErrorClass::refused, name + " unpacks to more than WARC files do");
  left -= unpacked;
}

} // namespace

void Unpacked::add(std::string_view bytes) {
  write_all(file.get(), bytes);
  size += bytes.size();
}

ArchiveReader::ArchiveReader(const Unpacked& file, Kind kind, const Problem& problem)
    : name_(file.name), problem_(problem), archive_(::archive_read_new(), &::archive_read_free),
      left_(kSmall + (kind == Kind::zip ? kMostRatio : kMostRatioOfText) * file.size) {
  if (kind == Kind::zip) {
    ::archive_read_support_format_zip(archive_.get());
  } else {
    // The three by their first bytes. Others are recognised by less, and text could be taken for one.
    ::archive_read_support_filter_bzip2(archive_.get());
    ::archive_read_support_filter_xz(archive_.get());
    ::archive_read_support_filter_zstd(archive_.get());
    ::archive_read_support_format_raw(archive_.get());
  }
  if (::lseek(file.file.get(), 0, SEEK_SET) != 0 ||
      ::archive_read_open_fd(archive_.get(), file.file.get(), kReadAtOnce) != ARCHIVE_OK)
    throw base::Error(base::ErrorClass::usage,
                      name_ + (kind == Kind::zip ? " is not a WACZ file: " : " cannot be unpacked: ") + why(),
                      kind == Kind::zip ? "" : "unpack it by the program that packed it, and import what comes out");
}

bool ArchiveReader::next(std::string& path) {
  archive_entry* entry = nullptr;
  const int answer = ::archive_read_next_header(archive_.get(), &entry);
  if (answer == ARCHIVE_EOF) return false;
  if (answer < ARCHIVE_WARN) {
    problem_(name_, why());
    return false;
  }
  const char* const text = ::archive_entry_pathname_utf8(entry);
  path = text == nullptr ? "" : text;
  return true;
}

bool ArchiveReader::is_packed() const { return ::archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_NONE; }

void ArchiveReader::read(const std::string& entry, const std::function<void(std::string_view)>& take) {
  std::string piece(kReadAtOnce, '\0');
  for (;;) {
    const auto got = ::archive_read_data(archive_.get(), piece.data(), piece.size());
    if (got < 0) problem_(entry, why());
    if (got <= 0) return;
    count(static_cast<std::uint64_t>(got), left_, name_);
    take(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
}

std::string ArchiveReader::why() const {
  const char* const text = ::archive_error_string(archive_.get());
  return text == nullptr ? "it cannot be read" : text;
}

Unpacked unpack_entry(ArchiveReader& archive, const std::string& entry) {
  Unpacked unpacked{entry, temporary_file()};
  archive.read(entry, [&](std::string_view bytes) { unpacked.add(bytes); });
  return unpacked;
}

namespace {

// Unpacks as far as possible: libarchive returns an error in place of the last bytes of gzip that breaks off.
Unpacked unpack_gzip(warc::RecordBytes& bytes, const std::string& name, const Problem& problem) {
  Unpacked unpacked{name, temporary_file()};
  auto left = kSmall + kMostRatioOfText * bytes.size();
  std::string piece(kReadAtOnce, '\0');
  for (std::uint64_t at = 0; at < bytes.size(); at = bytes.position()) {
    bytes.open(at);
    while (const auto got = bytes.compressed() ? bytes.read(piece.data(), piece.size()) : 0) {
      count(got, left, name);
      unpacked.add(std::string_view(piece).substr(0, got));
    }
    if (bytes.compressed() && bytes.broken().empty()) continue;
    problem(name + " at " + std::to_string(at), bytes.compressed() ? bytes.broken() : "no gzip data begins here");
    break;
  }
  return unpacked;
}

// Unpacks a file that was compressed as a whole (gzip, bzip2, xz, zstd); nullopt: it was not.
std::optional<Unpacked> unpacked(const Unpacked& packed, const Problem& problem) {
  if (packed.size == 0) return std::nullopt;
  warc::RecordBytes bytes(packed.file.get(), 0, packed.size);
  bytes.open(0);
  if (bytes.compressed()) return unpack_gzip(bytes, packed.name, problem);
  ArchiveReader archive(packed, ArchiveReader::Kind::compressed, problem);
  std::string path;
  if (!archive.next(path) || !archive.is_packed()) return std::nullopt;
  return unpack_entry(archive, packed.name);
}

} // namespace

bool has_places(const Unpacked& file) {
  return warc::Reader::has_members(file.file.get(), file.size) && !warc::is_arc(file.file.get(), file.size);
}

Unpacked with_places(Unpacked file, const Problem& problem) {
  if (auto plain = unpacked(file, problem)) file = *std::move(plain);
  if (!warc::is_arc(file.file.get(), file.size)) return file;
  Unpacked warc{file.name, temporary_file()};
  warc::arc_to_warc(
      file.file.get(), file.size, [&](std::string_view bytes) { warc.add(bytes); },
      [&](std::uint64_t at, const std::string& what) { problem(file.name + " at " + std::to_string(at), what); });
  return warc;
}

} // namespace holdfast::wacz
