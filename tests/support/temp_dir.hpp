#pragma once
// A directory of a test's own. Removed by the destructor, unless the test case has failed: then it stays and its path
// is printed, so that one can look.

#include <doctest/doctest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::test {

class TempDir {
public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + name);
    path_ = name;
  }
  ~TempDir() {
    if (doctest::getContextOptions()->no_run || !failed()) {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    } else {
      std::cerr << "kept for inspection: " << path_.string() << '\n';
    }
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  std::filesystem::path write(std::string_view name, std::string_view text, bool executable = false) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    if (executable) {
      using std::filesystem::perms;
      std::filesystem::permissions(file, perms::owner_all | perms::group_read | perms::group_exec | perms::others_read |
                                             perms::others_exec);
    }
    return file;
  }
  // Writes a file that its owner alone can read.
  std::filesystem::path secret(std::string_view name, std::string_view text) const {
    const auto file = write(name, text);
    using std::filesystem::perms;
    std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
    return file;
  }

private:
  static bool failed() { return std::uncaught_exceptions() > 0; }
  std::filesystem::path path_;
};

} // namespace holdfast::test
