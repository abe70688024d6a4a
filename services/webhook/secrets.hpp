#pragma once
// Signs deliveries of webhooks by the Standard Webhooks specification: "v1," and the base64 of the HMAC-SHA-256 of
// "<webhook-id>.<webhook-timestamp>.<body>". Pure, but for reading the file; any thread.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::webhook {

// The secrets of webhooks.secret_file: lines "SECRET" (for every webhook without one of its own) or "NAME SECRET"; "#"
// begins a comment. "whsec_" and base64 are the bytes that they encode, anything else its own bytes. A name may stand
// in several lines: then all of them sign, so that a secret can be changed without a gap.
class Secrets {
public:
  // Throws Error(configuration), which never quotes the file.
  static Secrets read(const std::filesystem::path& file);

  // Returns the webhooks with a secret; nothing: all of them.
  std::optional<std::vector<std::string>> names() const;
  const std::vector<std::string>& of(const std::string& webhook) const;

private:
  std::map<std::string, std::vector<std::string>> keys_; // "": of those without one
};

std::string signature(const std::string& key, std::string_view message_id, std::string_view timestamp,
                      std::string_view body);

} // namespace holdfast::webhook
