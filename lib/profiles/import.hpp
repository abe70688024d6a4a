#pragma once
// Browser state that other programs have written. Blocking file work; any thread. No error quotes a value.

#include "lib/persona/state.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::profiles {

struct Imported {
  persona::State state;
  std::vector<std::string> left_out; // what could not be taken, and why, for users
};
// Imports a file: cookies.txt, storage state, or a Browsertrix profile (a tar file of a Chromium profile); or a
// directory: a profile of Chromium or Firefox, or a persona of ArchiveBox. `scratch`: a private directory for copies of
// databases that a browser may have open. Throws Error(refused) if it is none of these.
Imported import_from(const std::filesystem::path& path, const std::filesystem::path& scratch);

} // namespace holdfast::profiles
