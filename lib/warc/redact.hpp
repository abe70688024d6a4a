#pragma once
// Takes secrets out of what is archived: each is replaced by a marker of the same length and kind, so that lengths,
// offsets and the syntax around it hold. Found as they are, in base64 and hexadecimal digits, and in percent, JSON and
// HTML escapes, also twice over. Used from one thread.

#include <bitset>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace holdfast::warc {

class Redactor {
public:
  // Shorter than 4 bytes: it is not looked for, as it would be found everywhere. A short or ordinary word is replaced
  // in heads, in requests and under the names of secrets only: elsewhere it may be a word of the page.
  void add(std::string_view secret);
  // Exempts all words of this text.
  void except(std::string_view text);
  bool empty() const noexcept { return patterns_.empty() && ordinary_.empty(); }

  // Redacts a text, also the values of password fields in HTML. `all_places`: ordinary words, too. Returns true if
  // something was replaced.
  bool apply(std::string& text, bool all_places = false) const;
  // Redacts a text in pieces; the last one with `last`.
  class Stream {
  public:
    explicit Stream(const Redactor& redactor, bool all_places = false) : redactor_(redactor), all_places_(all_places) {}
    bool add(std::string_view piece, const std::function<void(std::string_view)>& put, bool last = false);

  private:
    const Redactor& redactor_;
    const bool all_places_;
    std::string held_; // what may be the beginning of a secret
  };

private:
  void add_pattern(std::string_view pattern);

  std::unordered_multimap<std::uint32_t, std::string> patterns_; // by their first four bytes
  std::bitset<65536> starts_;
  std::set<std::string> ordinary_;
};

// Writes the records of `from`, plain or packed, to `to`, one gzip member each. Beside the secrets of `redactor` they
// lose the values of Set-Cookie, and of the passwords and tokens that a form sent. Bodies lose their codings, in which
// secrets could hide; a body that cannot be decoded is left out. First adds to `redactor` the cookies that the
// responses set, and the tokens that they gave in JSON. Throws std::runtime_error; a record that cannot be read is left
// out.
void redact(int from, std::uint64_t size, int to, Redactor& redactor);

} // namespace holdfast::warc
