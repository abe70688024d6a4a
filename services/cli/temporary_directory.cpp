#include "services/cli/temporary_directory.hpp"

#include "lib/base/error.hpp"

#include <cstdlib>

namespace holdfast::cli {

TemporaryDirectory::TemporaryDirectory(const std::string& purpose) {
  const auto parent = std::filesystem::temp_directory_path();
  std::string name = (parent / ("holdfast-" + purpose + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr)
    throw base::Error(base::ErrorClass::cannot_create, "cannot create a directory in " + parent.string());
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace holdfast::cli
