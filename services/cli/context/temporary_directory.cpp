#include "services/cli/context/temporary_directory.hpp"

#include "lib/base/error.hpp"

#include <cerrno>
#include <cstdlib>

namespace holdfast::cli {

TemporaryDirectory::TemporaryDirectory(const std::string& purpose, std::filesystem::path parent) {
  std::filesystem::create_directories(parent);
  std::string name = (parent / ("holdfast-" + purpose + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr)
    throw base::Error(base::ErrorClass::cannot_create,
                      "cannot create a directory in " + parent.string() + ": " + base::errno_text(errno));
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace holdfast::cli
