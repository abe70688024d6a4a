// How browsers sign in to the pages and out again: by a link, by the name and password of an account, or by a token.
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/account.hpp"
#include "lib/store/call.hpp"
#include "lib/store/token.hpp"
#include "services/serve/routes.hpp"
#include "services/serve/site.hpp"

#include <optional>

namespace holdfast::serve {

namespace {

constexpr std::string_view kLinkToken = "link-", kLoginToken = "login-"; // before the names of sessions

std::string session_name(std::string_view kind) {
  return std::string(kind) + base::utc_timestamp().substr(0, 10) + "-" + base::random_hex32().substr(0, 6);
}

} // namespace

bool Site::has_accounts() {
  return !options_.dsn_to_change.empty() && connections_.with([](pg::Connection& connection) {
    return store::call_for<bool>(connection, "accounts_exist");
  });
}

std::string Site::sign_in_link() { return options_.dsn_to_change.empty() ? "" : "sign-in?link=" + access_.make_link(); }

// A browser that only prefetches the link does not use it up: that takes the form behind it.
Response Site::sign_in_by_link(const Request& request, const std::string& secret) {
  if (!access_.use_link(secret))
    return sign_in_page(401, "/", "This link has been used or is too old, or the server has been started again since.",
                        "", has_accounts());
  const auto token = changing_.with([](pg::Connection& connection) {
    return store::token_add(connection, session_name(kLinkToken), "operator", kSignedIn, "a sign-in link");
  });
  return see_other("/").with("Set-Cookie", access_.cookie(request, token));
}

Response Site::sign_in_by_password(const Request& request, const std::string& name, const std::string& password,
                                   const std::string& next) {
  const auto asked =
      changing_.with([&](pg::Connection& connection) { return store::account_ask(connection, name, request.peer); });
  if (asked.wait.count() > 0)
    return sign_in_page(429, next, "Too many wrong passwords. Try again in a few minutes.", "", true)
        .with("Retry-After", std::to_string(asked.wait.count()));
  std::optional<std::string> token;
  if (store::password_fits(asked.hash, password)) // without a connection: it takes its time
    token = changing_.with([&](pg::Connection& connection) {
      return store::account_enter(connection, name, request.peer, asked.hash, session_name(kLoginToken), kSignedIn,
                                  "account " + name);
    });
  if (!token) return sign_in_page(401, next, "This name or password is wrong.", "", true);
  return see_other(next).with("Set-Cookie", access_.cookie(request, *token));
}

// Takes the session of an account: a token that was given away does not change the password.
Response Site::change_password(const Request& request, const Caller& caller) {
  Form form;
  if (!read_form(request, form)) return plain(400, "not a form\n");
  std::string old, chosen;
  for (const auto& [name, value] : form)
    if (name == "old" || name == "new") (name == "old" ? old : chosen) = value;
  const auto refuse = [&](int status, std::string why) {
    return problem_page(status, {"The password has not been changed", std::move(why), "", "/tokens"}, request, caller);
  };
  if (caller.account.empty() || !caller.name.starts_with(kLoginToken) || options_.dsn_to_change.empty())
    return refuse(403, "Sign in with a name and a password first.");
  const auto asked = changing_.with(
      [&](pg::Connection& connection) { return store::account_ask(connection, caller.account, request.peer); });
  if (asked.wait.count() > 0) return refuse(429, "Too many wrong passwords. Try again in a few minutes.");
  if (!store::password_fits(asked.hash, old)) return refuse(403, "The current password is wrong.");
  try {
    if (!changing_.with([&](pg::Connection& connection) {
          return store::account_change(connection, caller.account, asked.hash, chosen, caller.by());
        }))
      return refuse(409, "It was changed meanwhile: sign in again.");
  } catch (const base::Error& error) {
    if (error.error_class() != base::ErrorClass::usage) throw;
    return refuse(400, error.what());
  }
  return sign_in_page(200, "/tokens", "The password has been changed. Sign in with the new one.", "", true);
}

Response Site::sign_in(const Request& request) {
  if (!request.changes())
    return sign_in_page(200, request.parameter("next"), "", request.parameter("link"), has_accounts());
  Form form;
  if (request.method != "POST" || !read_form(request, form)) return plain(400, "not a form\n");
  std::string token, link, user, password, next = "/";
  for (const auto& [name, value] : form)
    (name == "token"      ? token
     : name == "link"     ? link
     : name == "name"     ? user
     : name == "password" ? password
                          : next) = value;
  if (!link.empty()) return sign_in_by_link(request, link);
  if (!user.empty() && request.path == "/sign-in" && has_accounts())
    return sign_in_by_password(request, base::lower_case(base::trimmed(user)), password, next);
  token = base::trimmed(token);
  if (request.path == "/sign-out") {
    token.clear();
    // The token of a session is this browser's alone.
    const auto caller =
        connections_.with([&](pg::Connection& connection) { return access_.caller(request, connection); });
    const bool session = caller.name.starts_with(kLinkToken) || caller.name.starts_with(kLoginToken);
    if (session && !options_.dsn_to_change.empty())
      changing_.with([&](pg::Connection& connection) {
        return store::call_for<int>(connection, "token_revoke", caller.name, caller.by());
      });
  } else {
    auto asking = request;
    asking.cookie.clear();
    asking.user.clear();
    asking.authorization = "Bearer " + token;
    if (const auto wait = access_.wait(asking); wait.count() > 0)
      return sign_in_page(429, next, "Too many wrong tokens. Try again in a moment.", "", has_accounts())
          .with("Retry-After", std::to_string(wait.count()));
    const auto caller =
        connections_.with([&](pg::Connection& connection) { return access_.caller(asking, connection); });
    if (caller.name.empty()) return sign_in_page(401, next, "This token is not valid.", "", has_accounts());
  }
  return see_other(next).with("Set-Cookie", access_.cookie(request, token));
}

} // namespace holdfast::serve
