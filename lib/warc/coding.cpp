#include "lib/warc/coding.hpp"

#include "lib/base/inflater.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"

#include <brotli/decode.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <utility>

namespace holdfast::warc {

namespace {

constexpr int kMostCodings = 4; // one within the other

using base::Inflater, base::Step, base::Unpacked;

class BrotliReader {
public:
  explicit BrotliReader(std::string_view bytes)
      : state_(::BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), &::BrotliDecoderDestroyInstance),
        left_(bytes.size()), at_(reinterpret_cast<const std::uint8_t*>(bytes.data())) {}

  Step next(std::string& piece, std::size_t& got) {
    if (!state_) return Step::damaged;
    auto* out = reinterpret_cast<std::uint8_t*>(piece.data());
    std::size_t room = piece.size();
    const auto answer = ::BrotliDecoderDecompressStream(state_.get(), &left_, &at_, &room, &out, nullptr);
    got = piece.size() - room;
    if (answer == BROTLI_DECODER_RESULT_SUCCESS) return Step::whole;
    return answer == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT ? Step::more : Step::damaged;
  }

private:
  const std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state_;
  std::size_t left_;
  const std::uint8_t* at_;
};

class ZstdReader {
public:
  explicit ZstdReader(std::string_view bytes)
      : context_(::ZSTD_createDCtx(), &::ZSTD_freeDCtx), in_{bytes.data(), bytes.size(), 0} {
    // Largest window of HTTP (RFC 9659); a larger one would only cost memory.
    if (context_) ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, 23);
  }

  Step next(std::string& piece, std::size_t& got) {
    if (!context_) return Step::damaged;
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const auto answer = ::ZSTD_decompressStream(context_.get(), &out, &in_);
    got = out.pos;
    if (::ZSTD_isError(answer) != 0) return Step::damaged;
    const bool over = in_.pos == in_.size;
    if (answer == 0) return over ? Step::whole : Step::more; // the end of a frame
    return over && got < piece.size() ? Step::damaged : Step::more;
  }

private:
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
  ZSTD_inBuffer in_;
};

Unpacked undo(std::string bytes, std::string_view coding, std::size_t most) {
  if (coding == "chunked") return undo(without_chunks(bytes), "identity", most);
  if (coding.empty() || coding == "identity") {
    const bool fits = bytes.size() <= most;
    bytes.resize(std::min(bytes.size(), most));
    return {std::move(bytes), fits};
  }
  most = base::most_unpacked(bytes.size(), most);
  if (coding == "gzip" || coding == "x-gzip") return base::unpack(Inflater(bytes, base::kGzipOrZlib), most);
  if (coding == "deflate") { // meant is zlib's format; some servers send it without its head
    auto result = base::unpack(Inflater(bytes, base::kGzipOrZlib), most);
    return result.bytes.empty() && !result.whole ? base::unpack(Inflater(bytes, base::kBareDeflate), most) : result;
  }
  if (coding == "br") return base::unpack(BrotliReader(bytes), most);
  if (coding == "zstd") return base::unpack(ZstdReader(bytes), most);
  return {};
}

} // namespace

base::Unpacked decode_body(std::string bytes, std::string_view codings, std::size_t most) {
  Unpacked result{std::move(bytes), true};
  for (int count = 0; count < kMostCodings && result.whole; ++count) {
    const auto comma = codings.rfind(',');
    const auto name = base::lower_case(base::trimmed(codings.substr(comma + 1))); // npos + 1 is 0
    result = undo(std::move(result.bytes), name, most);
    if (comma == std::string_view::npos) return result;
    codings = codings.substr(0, comma);
  }
  result.whole = false;
  return result;
}

std::string without_chunks(std::string_view bytes) {
  std::string result;
  for (auto left = bytes; !left.empty();) {
    std::size_t size = 0;
    const auto line = left.find('\n');
    const auto [end, failure] = std::from_chars(left.data(), left.data() + left.size(), size, 16);
    const auto rest = left.substr(0, line).substr(static_cast<std::size_t>(end - left.data()));
    const bool is_size = failure == std::errc{} && line != std::string_view::npos && rest.ends_with('\r') &&
                         base::trimmed(rest.substr(0, rest.find(';'))).empty();
    const auto behind = line + 1 + size; // where the chunk's own line ends
    const bool is_chunk =
        is_size && (size == 0 || behind >= left.size() || left[behind] == '\r' || left[behind] == '\n');
    if (!is_chunk && result.empty()) return std::string(bytes);
    if (!is_chunk || size == 0) break;
    left.remove_prefix(line + 1);
    result += left.substr(0, size);
    left.remove_prefix(std::min(size, left.size()));
    left.remove_prefix(left.starts_with('\n') ? 1 : std::min<std::size_t>(2, left.size()));
  }
  return result;
}

std::optional<std::string> plain_body(std::string body, Headers& headers, std::size_t most) {
  if (base::lower_case(header_of(headers, "transfer-encoding")).find("chunked") != std::string::npos)
    body = without_chunks(body);
  auto codings = base::split(header_of(headers, "content-encoding"), ", ");
  if (header_of(headers, "content-type").starts_with("text/") && body.starts_with("\x1f\x8b") &&
      (codings.empty() || codings.back().find("gzip") == std::string::npos))
    codings.emplace_back("gzip");
  for (int count = 0; count < kMostCodings && !codings.empty(); codings.pop_back(), ++count) { // the last one first
    const auto decode = [&](std::string bytes) { return decode_body(std::move(bytes), codings.back(), most); };
    auto plain = decode(body);
    if (!plain.whole && plain.bytes.empty()) plain = decode(without_chunks(body));
    if (!plain.whole && (plain.bytes.empty() || base::is_utf8(body))) continue; // it is not in this coding
    if (!plain.whole && plain.bytes.size() >= base::kUnpackedFreely) return std::nullopt;
    body = std::move(plain.bytes);
  }
  std::erase_if(headers, [](const auto& header) {
    const auto name = base::lower_case(header.first);
    return name == "transfer-encoding" || name == "content-encoding" || name == "content-length";
  });
  return body;
}

} // namespace holdfast::warc
