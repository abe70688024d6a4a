#pragma once
// Writing systems that a browser on this machine can show. A character without a font is an empty box in every
// screenshot and PDF. Uses fontconfig, as Chromium does. Used by `holdfast doctor`.

#include <functional>
#include <string>
#include <vector>

namespace holdfast::cli {

struct FontNeed {
  std::string what;    // "font for Chinese"
  std::string package; // Debian's, that has one
  std::string found;   // the family that fontconfig chose; "": none
};

// Runs a program and returns what it prints, "" if it fails.
using RunProgram = std::function<std::string(const std::vector<std::string>& argv)>;

std::vector<FontNeed> font_needs(const RunProgram& run);

} // namespace holdfast::cli
