#pragma once
// `mebibytes` of zeros, as gzip packs them.
#include <cstdio>
#include <memory>
#include <string>

namespace holdfast::test {

inline std::string packed_zeros(int mebibytes) {
  const auto command = "head -c " + std::to_string(mebibytes) + "M /dev/zero | gzip -9";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string packed(1u << 20, '\0');
  packed.resize(std::fread(packed.data(), 1, packed.size(), pipe.get()));
  return packed;
}

} // namespace holdfast::test
