#include "lib/base/characters.hpp"
#include "lib/base/log.hpp"

#include <algorithm>
#include <string>

namespace holdfast::base {

namespace {

constexpr std::string_view kHidden = "***";
constexpr std::string_view kBlanks = " \t\r\n\f\v";

// "password", "sslpassword", "oauth_client_secret": libpq decodes names of parameters, so "pass%77ord" is one too.
bool is_secret_name(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const int byte = percent_decoded(name, i);
    plain += to_lower(byte < 0 ? name[i] : static_cast<char>(byte));
    if (byte >= 0) i += 2;
  }
  return plain.find("password") != std::string::npos || plain.find("secret") != std::string::npos;
}

// Hides the value of every secret parameter of "a=1&password=x".
std::string redact_query(std::string_view query) {
  std::string redacted;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos && is_secret_name(pair.substr(0, equals))) {
      redacted.append(pair.substr(0, equals + 1)).append(kHidden);
    } else {
      redacted += pair;
    }
    if (!query.empty()) redacted += '&';
  }
  return redacted;
}

bool all_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

// People put "/", "?" and "@" into passwords without encoding them, so the password is taken to end at the last "@"
// before the query; or, if there is none, at the last "@" of all, unless what follows ":" is plainly a port.
std::string redact_uri(std::string_view dsn, std::size_t authority) {
  const auto colon = dsn.find(':', authority);
  auto question = dsn.find('?', authority);
  std::string redacted;
  if (colon != std::string_view::npos && colon < question) {
    auto at = dsn.substr(0, question).rfind('@');
    if (at == std::string_view::npos || at < colon) {
      const auto end_of_port = std::min(dsn.find_first_of(",/?", colon), dsn.size());
      const bool port = all_digits(dsn.substr(colon + 1, end_of_port - colon - 1));
      at = port || at < colon ? std::string_view::npos : dsn.rfind('@');
    }
    if (at != std::string_view::npos && at > colon) {
      redacted.append(dsn.substr(0, colon + 1)).append(kHidden);
      dsn.remove_prefix(at);
      question = dsn.find('?');
    }
  }
  if (question == std::string_view::npos) return redacted.append(dsn);
  return redacted.append(dsn.substr(0, question + 1)).append(redact_query(dsn.substr(question + 1)));
}

// Where the value that begins at `start` ends, by the rules of libpq: quoted with backslashes, or up to a blank.
std::size_t end_of_value(std::string_view dsn, std::size_t start) {
  const bool quoted = start < dsn.size() && dsn[start] == '\'';
  for (std::size_t i = start + (quoted ? 1 : 0); i < dsn.size(); ++i) {
    if (dsn[i] == '\\') {
      ++i;
    } else if (quoted ? dsn[i] == '\'' : kBlanks.find(dsn[i]) != std::string_view::npos) {
      return quoted ? i + 1 : i;
    }
  }
  return dsn.size(); // an unfinished quote hides the rest
}

std::string redact_keywords(std::string_view dsn) {
  std::string redacted;
  std::size_t position = 0;
  while (position < dsn.size()) {
    const auto equals = dsn.find('=', position);
    if (equals == std::string_view::npos) break;
    const auto value = std::min(dsn.find_first_not_of(kBlanks, equals + 1), dsn.size());
    const auto end = end_of_value(dsn, value);
    redacted += dsn.substr(position, value - position);
    if (is_secret_name(dsn.substr(position, equals - position))) {
      redacted += kHidden;
    } else {
      redacted += dsn.substr(value, end - value);
    }
    position = end;
  }
  return redacted.append(dsn.substr(position));
}

} // namespace

std::string redact_dsn(std::string_view dsn) {
  const auto scheme_end = dsn.find("://");
  const auto equals = dsn.find('=');
  // A keyword string may hold "://" in a value; a URI has no "=" before its "://".
  if (scheme_end != std::string_view::npos && scheme_end < equals) return redact_uri(dsn, scheme_end + 3);
  return redact_keywords(dsn);
}

} // namespace holdfast::base
