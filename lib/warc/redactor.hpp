#pragma once
// Takes secrets out of texts: each is replaced by a marker of the same length and kind, so that lengths, offsets and
// the syntax around it hold. A text is read in each way of escape.hpp, and what that gives again, three times over. A
// secret in compressed data cannot be replaced: then the text is unsure. Used from one thread.

#include <bitset>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace holdfast::warc {

// Result for a text.
struct FoundSecrets {
  bool any{false};    // secrets, which were replaced
  bool unsure{false}; // one in compressed data, or the text is nested so deeply that not all of it was read
};

class Redactor {
public:
  // Shorter than 4 bytes: it is not looked for, as it would be found everywhere. A short or ordinary word is replaced
  // in heads, in requests and under the names of secrets only: elsewhere it may be a word of the page.
  void add(std::string_view secret);
  // Exempts all words of this text.
  void except(std::string_view text);
  bool empty() const noexcept { return patterns_.empty() && ordinary_.empty(); }

  // Redacts a text, also the values of password fields in HTML. `all_places`: ordinary words, too.
  FoundSecrets apply(std::string& text, bool all_places = false) const;
  // Redacts a text in pieces; the last one with `last`. Compressed data is held whole, up to a limit.
  class Stream {
  public:
    explicit Stream(const Redactor& redactor, bool all_places = false) : redactor_(redactor), all_places_(all_places) {}
    void add(std::string_view piece, const std::function<void(std::string_view)>& put, bool last = false);
    const FoundSecrets& found() const noexcept { return found_; }

  private:
    const Redactor& redactor_;
    const bool all_places_;
    std::string held_; // what may be the beginning of a secret
    FoundSecrets found_{};
  };

private:
  class Search;
  void add_pattern(std::string_view pattern);

  std::unordered_multimap<std::uint32_t, std::string> patterns_; // by their first four bytes
  std::bitset<65536> starts_;
  std::size_t shortest_{SIZE_MAX}; // of them, and of the ordinary words
  std::set<std::string> ordinary_;
};

// Writes a marker over [begin, end): a digit for a digit, and letters for letters, escapes and non-ASCII. Other
// characters and tags may be of the syntax around it, and stay.
void mark(std::string& text, std::size_t begin, std::size_t end);
// Marks the values of fields with names of secrets, in forms (urlencoded, multipart) and JSON. `only`: of these values;
// null: all. Returns true if something was marked.
bool mark_named(std::string& text, const std::set<std::string>* only);
// Returns true if the name has a word like "password" or "token" in it.
bool names_secret(std::string_view name);

} // namespace holdfast::warc
