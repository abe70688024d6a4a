#include "lib/persona/import.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/strange_sqlite.hpp"
#include "lib/base/text/text.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <nettle/aes.h>
#include <nettle/cbc.h>
#include <nettle/pbkdf2.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace holdfast::persona {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;

namespace {

constexpr std::uintmax_t kLargestFile = 64u << 20, kMostUnpacked = 1u << 30;
constexpr int kLongestRow = 1 << 20;
constexpr const char* kStorage = "localStorage and IndexedDB of the profile: if a site keeps its login there, sign in "
                                 "by hand or import storage state";

// Cookies of browsers, as columns host, name, value, path, seconds of expiry or -1, secure, HTTP only, same site, value
// encrypted. Chromium counts microseconds since 1601, newer versions of Firefox milliseconds.
constexpr const char* kChromium =
    "select host_key, name, value, path, iif(has_expires, expires_utc / 1000000 - 11644473600, -1), is_secure, "
    "is_httponly, case samesite when 0 then 'None' when 1 then 'Lax' when 2 then 'Strict' else '' end, encrypted_value "
    "from cookies";
constexpr const char* kFirefox =
    "select host, name, value, path, iif(expiry > 1e11, expiry / 1000, expiry), isSecure, isHttpOnly, "
    "case sameSite when 0 then iif(isSecure, 'None', '') when 1 then 'Lax' when 2 then 'Strict' else '' end, '' "
    "from moz_cookies where originAttributes = ''";

// Contents of a directory: profiles, of which the first that exists counts, and files that add to it.
constexpr const char* kProfiles[] = {"", "Default", "chrome_user_data/Default", "chrome_profile/Default"};
constexpr std::pair<const char*, const char*> kDatabases[] = {
    {"cookies.sqlite", kFirefox}, {"Network/Cookies", kChromium}, {"Cookies", kChromium}};
constexpr const char* kFiles[] = {"cookies.txt", "auth.json"};

[[noreturn]] void too_large(const fs::path& file) {
  throw Error(ErrorClass::refused, file.string() + " is larger than 64 MB");
}

// Reads a file that may be a pipe.
std::string read_whole(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text, piece(1u << 16, '\0');
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())) || stream.gcount() > 0)
    if (text.append(piece, 0, static_cast<std::size_t>(stream.gcount())).size() > kLargestFile) too_large(file);
  if (!stream.eof()) throw Error(ErrorClass::refused, "cannot read " + file.string() + ": " + base::errno_text(errno));
  return text;
}

using Row = std::function<void(sqlite3_stmt*)>;
std::string text_at(sqlite3_stmt* row, int column) {
  const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
  return bytes == nullptr ? "" : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
}

// Reads a copy, because its browser may have the database open.
void for_each_row(const fs::path& file, const fs::path& scratch, const char* query, const Row& row) {
  std::error_code error;
  const auto copy = scratch / "copy.sqlite";
  for (const char* part : {"", "-wal", "-journal"}) {
    fs::remove(copy.string() + part, error);
    if (const auto size = fs::file_size(file.string() + part, error); !error && size > kLargestFile) too_large(file);
    fs::copy_file(file.string() + part, copy.string() + part, error);
    if (*part == '\0' && error)
      throw Error(ErrorClass::refused, "cannot read " + file.string() + ": " + error.message());
  }
  sqlite3* opened = nullptr;
  int code = sqlite3_open_v2(copy.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, &sqlite3_close);
  if (code == SQLITE_OK) base::distrust(opened, kLongestRow);
  sqlite3_stmt* prepared = nullptr;
  if (code == SQLITE_OK) code = sqlite3_prepare_v2(opened, query, -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, &sqlite3_finalize);
  if (code == SQLITE_OK)
    while ((code = sqlite3_step(prepared)) == SQLITE_ROW)
      row(prepared);
  if (code != SQLITE_DONE) throw Error(ErrorClass::refused, file.string() + " cannot be read: " + sqlite3_errstr(code));
}

// Chromium on Linux encrypts cookies with a key from the desktop's keyring ("v11") or, without one, with a key that is
// the same everywhere ("v10"). nullopt: by another key.
std::optional<std::string> decrypted(const std::string& sealed, const std::string& host) {
  constexpr std::size_t kVersion = 3, kHash = 32;
  if (!sealed.starts_with("v10") || (sealed.size() - kVersion) % AES_BLOCK_SIZE != 0 || sealed.size() == kVersion)
    return std::nullopt;
  static constexpr std::string_view kPassword = "peanuts", kSalt = "saltysalt";
  std::array<std::uint8_t, AES128_KEY_SIZE> key{};
  pbkdf2_hmac_sha1(kPassword.size(), reinterpret_cast<const std::uint8_t*>(kPassword.data()), 1, kSalt.size(),
                   reinterpret_cast<const std::uint8_t*>(kSalt.data()), key.size(), key.data());
  std::array<std::uint8_t, AES_BLOCK_SIZE> chain{};
  chain.fill(' ');
  aes128_ctx context{};
  aes128_set_decrypt_key(&context, key.data());
  std::string plain(sealed.size() - kVersion, '\0');
  cbc_decrypt(&context, reinterpret_cast<nettle_cipher_func*>(&aes128_decrypt), AES_BLOCK_SIZE, chain.data(),
              plain.size(), reinterpret_cast<std::uint8_t*>(plain.data()),
              reinterpret_cast<const std::uint8_t*>(sealed.data()) + kVersion);
  const auto padding = static_cast<unsigned char>(plain.back());
  if (padding == 0 || padding > AES_BLOCK_SIZE || plain.size() < padding) return std::nullopt;
  plain.resize(plain.size() - padding);
  // Newer versions put the hash of the host before the value.
  return base::hex(plain.substr(0, kHash)) == base::sha256_hex(host) ? plain.substr(kHash) : plain;
}

void take_cookies(Imported& imported, const fs::path& file, const char* query, const fs::path& scratch) {
  std::map<std::string, int> closed; // by host
  for_each_row(file, scratch, query, [&](sqlite3_stmt* row) {
    Cookie cookie;
    cookie.domain = text_at(row, 0);
    cookie.name = text_at(row, 1);
    cookie.value = text_at(row, 2);
    cookie.path = text_at(row, 3);
    cookie.expires = static_cast<double>(sqlite3_column_int64(row, 4));
    cookie.secure = sqlite3_column_int(row, 5) != 0;
    cookie.httpOnly = sqlite3_column_int(row, 6) != 0;
    cookie.sameSite = text_at(row, 7);
    const auto sealed = text_at(row, 8);
    const auto plain = sealed.empty() ? std::optional(cookie.value) : decrypted(sealed, cookie.domain);
    if (!plain) {
      ++closed[cookie.domain];
      return;
    }
    cookie.value = *plain;
    add_cookie(imported.state, std::move(cookie), imported.left_out);
  });
  for (const auto& [host, count] : closed)
    imported.left_out.push_back(std::to_string(count) + (count == 1 ? " cookie" : " cookies") + " of " + host +
                                ", encrypted with a key of the desktop's keyring");
  imported.left_out.emplace_back(kStorage);
}

// The cookies of a Chromium profile in a tar file.
fs::path cookies_in_archive(const fs::path& file, const fs::path& scratch) {
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), &archive_read_free);
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_tar(reader.get());
  const auto wrong = [&](const std::string& what) {
    throw Error(ErrorClass::refused, file.string() + ": " + what,
                "cookies.txt, Playwright's storage state, or a profile of a browser");
  };
  if (archive_read_open_filename(reader.get(), file.c_str(), 1u << 16) != ARCHIVE_OK)
    wrong("nothing that browser state can be read from");
  archive_entry* entry = nullptr;
  std::uintmax_t unpacked = 0; // also what is passed over: a small file may unpack to very much
  while (archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    const fs::path name = archive_entry_pathname(entry) == nullptr ? "" : archive_entry_pathname(entry);
    const bool wanted = name.filename() == "Cookies" && archive_entry_filetype(entry) == AE_IFREG;
    const auto copy = scratch / "Cookies";
    std::ofstream stream(wanted ? copy : "/dev/null", std::ios::binary);
    std::array<char, 1u << 16> piece;
    const auto most = wanted ? unpacked + kLargestFile : kMostUnpacked;
    for (la_ssize_t got = 0; (got = archive_read_data(reader.get(), piece.data(), piece.size())) != 0;) {
      if (got < 0 || (unpacked += static_cast<std::uintmax_t>(got)) > most) wrong("it cannot be unpacked");
      stream.write(piece.data(), got);
    }
    stream.close();
    if (wanted) return copy;
  }
  wrong("has no Cookies of a Chromium profile in it");
  return {};
}

void add(State& state, State more, std::vector<std::string>& left_out) {
  for (auto& cookie : more.cookies)
    add_cookie(state, std::move(cookie), left_out);
  more.cookies = std::move(state.cookies);
  more.origins.insert(more.origins.end(), state.origins.begin(), state.origins.end());
  state = std::move(more);
}

void take_file(Imported& imported, const fs::path& file, const fs::path& scratch) {
  const auto text = read_whole(file);
  const auto first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (text.find('\0') != std::string::npos || text.starts_with("\x1F\x8B")) {
    take_cookies(imported, cookies_in_archive(file, scratch), kChromium, scratch);
  } else if (first != std::string::npos && text[first] == '{') {
    add(imported.state, State::parse(std::string_view(text).substr(first), file.string(), imported.left_out),
        imported.left_out);
  } else {
    add(imported.state, parse_cookies_txt(text, file.string(), imported.left_out), imported.left_out);
  }
}

} // namespace

Imported import_from(const fs::path& path, const fs::path& scratch) {
  Imported imported;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    take_file(imported, path, scratch);
    return imported;
  }
  bool any = false;
  for (const char* profile : kProfiles)
    for (const auto& [file, query] : kDatabases)
      if (!any && fs::is_regular_file(path / profile / file, error)) {
        take_cookies(imported, path / profile / file, query, scratch);
        any = true;
      }
  for (const char* file : kFiles)
    if (fs::is_regular_file(path / file, error)) {
      take_file(imported, path / file, scratch);
      any = true;
    }
  if (!any)
    throw Error(ErrorClass::refused, path.string() + " is not a browser profile",
                "a directory with Cookies (Chromium), cookies.sqlite (Firefox), cookies.txt or auth.json (ArchiveBox)");
  return imported;
}

} // namespace holdfast::persona
