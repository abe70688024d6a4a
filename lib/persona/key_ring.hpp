#pragma once
// The keys that seal personas: AES-256-GCM. A sealed text can be opened only under the name and version that it was
// sealed for. Immutable; any thread. The key file has a key of 32 bytes a line, as 64 hexadecimal digits or as base64;
// "#" begins a comment. The first key seals, all of them open: to change the key, put the new one first, then run
// `holdfast persona rotate`.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::persona {

class KeyRing {
public:
  KeyRing() = default; // without keys
  // Throws Error(configuration), which never quotes the file.
  static KeyRing open(const std::filesystem::path& key_file);
  // Makes the file with a new key, mode 0600, unless it is there. Throws Error(cannot_create).
  static void make(const std::filesystem::path& key_file);

  bool empty() const { return keys_.empty(); }
  std::vector<std::string> key_ids() const; // the first seals
  // Throws Error(configuration) if there is no key.
  std::string seal(const std::string& name, std::int64_t version, std::string_view plain) const;
  // Throws Error(configuration) if there is no such key, or the text is not what was sealed.
  std::string open(const std::string& name, std::int64_t version, const std::string& key_id,
                   std::string_view sealed) const;

private:
  struct Key {
    std::string id, bytes;
  };
  std::vector<Key> keys_;
};

} // namespace holdfast::persona
