#include "lib/store/import.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/store/call.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace holdfast::store {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ImportPage, id, crawl_id, url, directory)

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

ImportPlace place_of(const std::string& text) {
  if (text == "new") return ImportPlace::fresh;
  if (text == "known") return ImportPlace::known;
  if (text == "taken") return ImportPlace::taken;
  if (text == "removed") return ImportPlace::removed;
  throw base::Error(base::ErrorClass::bug, "a page to import was answered with \"" + text + "\"");
}

std::vector<ImportPlace> places_of(const pg::Result& rows) {
  std::vector<ImportPlace> places;
  for (const auto row : rows)
    places.push_back(place_of(row.text("place")));
  return places;
}

} // namespace

std::string import_id(const ImportName& name, std::chrono::system_clock::time_point at) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
  const auto time = static_cast<std::uint64_t>(std::clamp<std::int64_t>(since, 0, (std::int64_t{1} << 48) - 1));
  std::string id;
  for (int shift = 44; shift >= 0; shift -= 4)
    id += kDigits[time >> shift & 0xF];
  id += base::sha256_hex(name.kind + '\0' + name.source + '\0' + name.key).substr(0, 20);
  id[12] = '7';                                     // version
  id[16] = kDigits[8 | (kDigits.find(id[16]) & 3)]; // variant
  for (const std::size_t hyphen : {8U, 13U, 18U, 23U})
    id.insert(hyphen, 1, '-');
  return id;
}

std::vector<ImportPlace> import_check(pg::Connection& connection, const std::vector<ImportPage>& pages) {
  return places_of(connection.call("select place from holdfast.import_check($1::jsonb) order by n", json_text(pages)));
}

std::vector<ImportPlace> import_pages(pg::Connection& connection, const nlohmann::json& pages) {
  return places_of(connection.call("select place from holdfast.import_pages($1::jsonb) order by n", json_text(pages)));
}

} // namespace holdfast::store
