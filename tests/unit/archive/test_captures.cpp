#include "lib/archive/captures.hpp"
#include "lib/base/file.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>

using namespace holdfast;
using test::TempDir;

namespace {

// Kilobytes of a line of /proc/self/status.
long own_memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stol(line.substr(name.size() + 1));
  return 0;
}

std::string bytes_at(const std::filesystem::path& path, std::streamoff at, std::size_t count) {
  std::string bytes(count, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(at);
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  return bytes;
}

} // namespace

TEST_CASE("a large record gets a file of its own, and is not held in memory") {
  constexpr off_t kRecord = 128 << 20, kBefore = 50;
  const TempDir dir;
  const auto root = archive::Root::open(dir / "archive", "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21", true);
  const auto source = dir / "archive/page.warc.gz";
  const holdfast::base::Fd file(::open(source.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::ftruncate(file.get(), kBefore + kRecord) == 0);
  REQUIRE(::pwrite(file.get(), "begin", 5, kBefore) == 5);
  REQUIRE(::pwrite(file.get(), "end", 3, kBefore + kRecord - 3) == 3);

  std::ofstream("/proc/self/clear_refs") << "5"; // VmHWM begins again
  const auto before = own_memory("VmRSS");
  CHECK(archive::keep_record(root, "page.warc.gz", kBefore, kRecord, "kept/record.warc.gz"));
  CHECK(own_memory("VmHWM") - before < 32 << 10);

  const auto kept = dir / "archive/kept/record.warc.gz";
  CHECK(std::filesystem::file_size(kept) == kRecord);
  CHECK(bytes_at(kept, 0, 6) == std::string("begin\0", 6));
  CHECK(bytes_at(kept, kRecord - 4, 4) == std::string("\0end", 4));

  CHECK_FALSE(archive::keep_record(root, "page.warc.gz", kBefore + 1, kRecord, "kept/other.warc.gz"));
  CHECK_FALSE(archive::keep_record(root, "page.warc.gz", ~0ull, 2, "kept/other.warc.gz"));
  CHECK_FALSE(archive::keep_record(root, "none.warc.gz", 0, 1, "kept/other.warc.gz"));
  CHECK(!std::filesystem::exists(dir / "archive/kept/other.warc.gz"));
}
