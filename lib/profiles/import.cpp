#include "lib/profiles/import.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/text.hpp"
#include "lib/sqlite/untrusted.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <nettle/aes.h>
#include <nettle/cbc.h>
#include <nettle/pbkdf2.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

namespace holdfast::profiles {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;
using persona::add_cookie;
using persona::Cookie;
using persona::State;

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
struct Browser {
  const char *file, *table, *query;
};
constexpr Browser kBrowsers[] = {{"cookies.sqlite", "moz_cookies", kFirefox},
                                 {"Network/Cookies", "cookies", kChromium},
                                 {"Cookies", "cookies", kChromium}};
constexpr const char* kFiles[] = {"cookies.txt", "auth.json"};

// Reads all of a file, which may be a pipe if the user named it.
std::string read_whole(const fs::path& file, const base::Fd& opened) {
  std::string text, piece(1u << 16, '\0');
  for (ssize_t got = 0; (got = opened ? ::read(opened.get(), piece.data(), piece.size()) : -1) != 0;) {
    if (got < 0 && opened && errno == EINTR) continue;
    if (got < 0) throw Error(ErrorClass::refused, "cannot read " + file.string() + ": " + base::errno_text(errno));
    if (text.append(piece, 0, static_cast<std::size_t>(got)).size() > kLargestFile)
      throw Error(ErrorClass::refused, file.string() + " is larger than 64 MB");
  }
  return text;
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

void take_cookies(Imported& imported, const fs::path& directory, const fs::path& name, const Browser& browser,
                  const fs::path& scratch) {
  std::map<std::string, int> closed; // by host
  const sqlite::UntrustedDatabase database(directory, name, scratch, {kLargestFile, kLongestRow});
  if (!database.has_table(browser.table))
    throw Error(ErrorClass::refused, (directory / name).string() + " cannot be read: no table " + browser.table);
  for (sqlite::Query row(database, browser.query); row.next();) {
    Cookie cookie;
    cookie.domain = row.bytes(0);
    cookie.name = row.bytes(1);
    cookie.value = row.bytes(2);
    cookie.path = row.bytes(3);
    cookie.expires = static_cast<double>(row.number(4));
    cookie.secure = row.number(5) != 0;
    cookie.httpOnly = row.number(6) != 0;
    cookie.sameSite = row.bytes(7);
    const auto sealed = row.bytes(8);
    const auto plain = sealed.empty() ? std::optional(cookie.value) : decrypted(sealed, cookie.domain);
    if (!plain) {
      ++closed[cookie.domain];
      continue;
    }
    cookie.value = *plain;
    add_cookie(imported.state, std::move(cookie), imported.left_out);
  }
  for (const auto& [host, count] : closed)
    imported.left_out.push_back(std::to_string(count) + (count == 1 ? " cookie" : " cookies") + " of " + host +
                                ", encrypted with a key of the desktop's keyring");
  imported.left_out.emplace_back(kStorage);
}

// Unpacks the cookies of a Chromium profile in a tar file to `scratch`. Formats that libarchive leaves to another
// program are not read.
void unpack_cookies(const fs::path& file, const std::string& bytes, const fs::path& scratch) {
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), &archive_read_free);
  for (const auto support :
       {&archive_read_support_filter_gzip, &archive_read_support_filter_bzip2, &archive_read_support_filter_xz,
        &archive_read_support_filter_zstd, &archive_read_support_format_tar})
    if (support(reader.get()) != ARCHIVE_OK)
      throw Error(ErrorClass::bug, "this libarchive unpacks a format by another program");
  const auto wrong = [&](const std::string& what) {
    throw Error(ErrorClass::refused, file.string() + ": " + what,
                "cookies.txt, Playwright's storage state, or a profile of a browser");
  };
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    wrong("nothing that browser state can be read from");
  archive_entry* entry = nullptr;
  std::uintmax_t unpacked = 0; // also what is passed over: a small file may unpack to very much
  while (archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    const fs::path name = archive_entry_pathname(entry) == nullptr ? "" : archive_entry_pathname(entry);
    const bool wanted = name.filename() == "Cookies" && archive_entry_filetype(entry) == AE_IFREG;
    std::ofstream stream(wanted ? scratch / "Cookies" : "/dev/null", std::ios::binary);
    std::array<char, 1u << 16> piece;
    const auto most = wanted ? unpacked + kLargestFile : kMostUnpacked;
    for (la_ssize_t got = 0; (got = archive_read_data(reader.get(), piece.data(), piece.size())) != 0;) {
      if (got < 0 || (unpacked += static_cast<std::uintmax_t>(got)) > most) wrong("it cannot be unpacked");
      stream.write(piece.data(), got);
    }
    if (static_cast<std::uintmax_t>(archive_filter_bytes(reader.get(), 0)) > kMostUnpacked)
      wrong("it cannot be unpacked"); // very many entries without content
    if (wanted) return;
  }
  wrong("has no Cookies of a Chromium profile in it");
}

void add(State& state, State more, std::vector<std::string>& left_out) {
  for (auto& cookie : more.cookies)
    add_cookie(state, std::move(cookie), left_out);
  more.cookies = std::move(state.cookies);
  more.origins.insert(more.origins.end(), state.origins.begin(), state.origins.end());
  state = std::move(more);
}

void take_file(Imported& imported, const fs::path& file, const base::Fd& opened, const fs::path& scratch) {
  const auto text = read_whole(file, opened);
  const auto first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (text.find('\0') != std::string::npos || text.starts_with("\x1F\x8B")) {
    unpack_cookies(file, text, scratch);
    take_cookies(imported, scratch, "Cookies", kBrowsers[2], scratch);
  } else if (first != std::string::npos && text[first] == '{') {
    add(imported.state, State::parse(std::string_view(text).substr(first), file.string(), imported.left_out),
        imported.left_out);
  } else {
    add(imported.state, persona::parse_cookies_txt(text, file.string(), imported.left_out), imported.left_out);
  }
}

} // namespace

Imported import_from(const fs::path& path, const fs::path& scratch) {
  Imported imported;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    take_file(imported, path, base::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), scratch);
    return imported;
  }
  // The directory may be another's: links in it could lead to files of the user.
  const auto directory = fs::canonical(path);
  const auto is_file = [&](const fs::path& name) {
    struct stat about {};
    return base::stat_no_links(directory / name, about) && S_ISREG(about.st_mode);
  };
  bool any = false;
  for (const char* profile : kProfiles)
    for (auto browser : kBrowsers)
      if (const auto name = fs::path(profile) / browser.file; !any && is_file(name)) {
        take_cookies(imported, path, name, browser, scratch);
        any = true;
      }
  for (const char* name : kFiles)
    if (is_file(name)) {
      take_file(imported, path / name, base::open_no_links(directory / name, O_RDONLY | O_NONBLOCK), scratch);
      any = true;
    }
  if (!any)
    throw Error(ErrorClass::refused, path.string() + " is not a browser profile",
                "a directory with Cookies (Chromium), cookies.sqlite (Firefox), cookies.txt or auth.json (ArchiveBox)");
  return imported;
}

} // namespace holdfast::profiles
