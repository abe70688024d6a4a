#include "services/capture/extract/doubt.hpp"

#include <regex>

namespace holdfast::capture {

namespace {

// Titles and words of pages that stand in front of others.
const std::regex& challenge() {
  static const std::regex pattern(
      "just a moment\\.\\.\\.|attention required!|checking (if the site connection|your browser)|"
      "verify(ing)? (that )?you are (a )?human|are you a (human|robot)|not a robot|security check|ddos.guard|"
      "pardon our interruption|access (to this page )?(has been |is )?(denied|blocked)|unusual traffic|"
      "request (was |has been )?blocked|you have been blocked|robot check|captcha|enable javascript and cookies|"
      "bot (detection|protection)|please turn javascript on",
      std::regex::icase);
  return pattern;
}
const std::regex& loading() {
  static const std::regex pattern(
      "^\\W*(page |please |is |now |still )*((loading|wait|one moment|wird geladen|chargement|"
      "cargando|caricamento|laden|carregando)\\b|загрузка|読み込み中|加载中|로딩 중|جار التحميل).{0,40}$",
      std::regex::icase);
  return pattern;
}
const std::regex& checking() { // a challenge that may end by itself
  static const std::regex pattern("just a moment|checking (if|your)|verifying|ddos.guard|enable javascript and cookies",
                                  std::regex::icase);
  return pattern;
}
// The part of an address that names a page: "example.org/a" for "https://www.example.org/a/?b".
std::string place_of(const std::string& url) {
  static const std::regex pattern("^https?://(?:www\\.)?([^?#]*?)/*(?:[?#].*)?$", std::regex::icase);
  return std::regex_replace(url, pattern, "$1");
}
// Returns true if an address asks for a login form: it is the page then.
bool names_login(const std::string& url) {
  static const std::regex pattern("log[-_]?[io]n|sign[-_]?(in|on|up)|auth|sso\\b|account|password|register|"
                                  "anmeld|connexion|inloggen|acceso|accedi|session",
                                  std::regex::icase);
  return std::regex_search(place_of(url), pattern);
}
constexpr std::size_t kShortPage = 1500, kNearlyEmpty = 60; // characters

} // namespace

bool looks_unfinished(const Shown& now) {
  if (now.pictures || !now.scripts) return false;
  if (now.size < kShortPage && std::regex_search(now.title + "\n" + now.words, checking())) return true;
  return now.words.empty() || (now.words.size() < kNearlyEmpty && std::regex_search(now.words, loading()));
}

bool announces_more(const std::string& text) {
  return text.size() < kNearlyEmpty && std::regex_search(text, loading());
}

std::string doubt_about(const Shown& now, std::size_t shown_at_first) {
  const bool elsewhere = place_of(now.url) != place_of(now.asked);
  if (now.login && now.size < kShortPage && !now.asked.empty() &&
      (elsewhere || (now.login_alone && !names_login(now.asked))))
    return "the site asks to sign in, at " + now.url;
  std::smatch found;
  const auto all = now.title + "\n" + now.words;
  if (now.size < kShortPage && std::regex_search(all, found, challenge()))
    return std::string(kChallenge) + " (\"" + found.str() + "\"), not the page";
  if (now.size >= kNearlyEmpty || now.pictures) return {};
  if (shown_at_first > 5 * kNearlyEmpty) return "the page hid what it had shown when it was read";
  if (!now.scripts || (now.size > 0 && !std::regex_search(now.words, loading()))) return {};
  return now.size == 0 ? "the page stayed empty" : "the page shows only \"" + now.words + "\"";
}

} // namespace holdfast::capture
