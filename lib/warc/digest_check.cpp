#include "lib/warc/digest_check.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/coding.hpp"

#include <nettle/nettle-meta.h>

#include <algorithm>

namespace holdfast::warc {

namespace {

constexpr std::size_t kMostChunks = 32u << 20; // a longer payload in chunks is not compared

const nettle_hash* hash_named(const std::string& name) {
  for (const auto* one = nettle_get_hashes(); *one != nullptr; ++one)
    if (name == (*one)->name) return *one;
  return nullptr;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

const nettle_hash& row(const void* hash) { return *static_cast<const nettle_hash*>(hash); }

} // namespace

std::optional<DigestCheck> DigestCheck::of(std::string_view named) {
  const auto colon = named.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  auto name = base::lower_case(named.substr(0, colon));
  std::erase(name, '-');
  DigestCheck check;
  check.hash_ = hash_named(name);
  check.expected_ = base::trimmed(named.substr(colon + 1));
  while (check.expected_.ends_with('='))
    check.expected_.pop_back();
  if (check.hash_ == nullptr) return std::nullopt;
  const auto& hash = row(check.hash_);
  const auto length = check.expected_.size();
  if (length != hash.digest_size * 2 && length != (hash.digest_size * 8 + 4) / 5) return std::nullopt;
  check.state_.resize(hash.context_size / sizeof(std::uint64_t) + 1);
  check.start_over();
  return check;
}

void DigestCheck::start_over() { row(hash_).init(state_.data()); }

void DigestCheck::add(std::string_view bytes) {
  row(hash_).update(state_.data(), bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

bool DigestCheck::matches() const {
  auto state = state_;
  const auto& hash = row(hash_);
  std::string digest(hash.digest_size, '\0');
  hash.digest(state.data(), digest.size(), reinterpret_cast<std::uint8_t*>(digest.data()));
  const auto expected = base::lower_case(expected_);
  auto base32 = base::lower_case(base::base32_encode(digest));
  while (base32.ends_with('='))
    base32.pop_back();
  return expected == hex_of(digest) || expected == base32;
}

RecordDigests::RecordDigests(const Headers& headers, bool http) {
  const bool cut = !header_of(headers, "warc-truncated").empty() || !header_of(headers, "warc-segment-number").empty();
  if (cut) return;
  block_ = DigestCheck::of(header_of(headers, "warc-block-digest"));
  if (base::lower_case(header_of(headers, "warc-type")) != "revisit")
    payload_ = DigestCheck::of(header_of(headers, "warc-payload-digest"));
  in_payload_ = !http;
}

void RecordDigests::begin_payload(const Headers& of_http) {
  in_payload_ = true;
  in_chunks_ = base::lower_case(header_of(of_http, "transfer-encoding")).find("chunked") != std::string::npos;
}

void RecordDigests::add(std::string_view bytes) {
  if (block_) block_->add(bytes);
  if (!payload_ || !in_payload_) return;
  payload_->add(bytes);
  if (in_chunks_ && chunks_.size() <= kMostChunks) chunks_ += bytes;
}

std::string_view RecordDigests::differs() const {
  if (block_ && !block_->matches()) return "WARC-Block-Digest";
  if (!payload_ || !in_payload_ || payload_->matches()) return {};
  if (!in_chunks_) return "WARC-Payload-Digest";
  if (chunks_.size() > kMostChunks) return {};
  auto plain = *payload_;
  plain.start_over();
  plain.add(without_chunks(chunks_));
  return plain.matches() ? std::string_view() : "WARC-Payload-Digest";
}

} // namespace holdfast::warc
