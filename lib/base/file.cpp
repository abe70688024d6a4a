#include "lib/base/file.hpp"

#include "lib/base/no_links.hpp"

namespace holdfast::base {

namespace {

std::uint64_t size_of_regular(const Fd& file) {
  struct stat status {};
  return file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)
             ? static_cast<std::uint64_t>(status.st_size)
             : 0;
}

// Less, if the file is cut meanwhile.
std::string bytes_between(const Fd& file, std::uint64_t begin, std::uint64_t end) {
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(end - begin));
  (void)each_piece(file.get(), begin, end, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

} // namespace

std::string read_file(const std::filesystem::path& path, std::size_t most, int flags) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
  return bytes_between(file, 0, std::min<std::uint64_t>(size_of_regular(file), most));
}

std::string tail_of(const std::filesystem::path& path, std::size_t most) {
  const Fd file = open_no_links(path, O_RDONLY | O_NONBLOCK);
  const auto size = size_of_regular(file);
  return bytes_between(file, size - std::min<std::uint64_t>(size, most), size);
}

} // namespace holdfast::base
