#include "services/capture/browser/logins.hpp"

#include "services/capture/fetch/egress.hpp"

namespace holdfast::capture {

namespace {

constexpr std::size_t kMostKnown = 100;

}

// A known answer is tried first, and dropped if it was wrong.
Json Logins::take(const std::string& session, const Json& parameters, bool may_ask) {
  const auto& challenge = parameters["authChallenge"];
  const auto request = text_at(parameters, "requestId"), origin = text_at(challenge, "origin");
  const bool again = answered_.contains(request), proxy = text_at(challenge, "source") == "Proxy";
  if (again) known_.erase(origin);
  Json asked = {{"origin", origin},
                {"realm", one_line(text_at(challenge, "realm"), 200)},
                {"again", again},
                {"request", request},
                {"session", session},
                {"frame", text_at(parameters, "frameId")},
                {"document", text_at(parameters, "resourceType") == "Document"}};
  if (!proxy && may_ask && !known_.contains(origin)) return asked;
  answer(asked, proxy && !again ? proxy_login(origin) : Json());
  return nullptr;
}

void Logins::give(std::vector<Json>& asked, const Json& login) {
  if (asked.empty()) return;
  const auto origin = text_at(asked.front(), "origin");
  if (login.value("accept", Json()) == true && known_.size() < kMostKnown)
    known_[origin] = {text_at(login, "user"), text_at(login, "password")};
  std::erase_if(asked, [&](const Json& one) {
    const bool own = one["origin"] == origin;
    if (own) answer(one, {});
    return own;
  });
}

void Logins::save(Json& state) const {
  for (const auto& [origin, login] : known_)
    state["httpCredentials"].push_back({{"origin", origin}, {"username", login.first}, {"password", login.second}});
}

void Logins::answer(const Json& asked, Json answer) {
  const auto known = known_.find(text_at(asked, "origin"));
  if (answer.is_null() && known != known_.end())
    answer = {
        {"response", "ProvideCredentials"}, {"username", known->second.first}, {"password", known->second.second}};
  if (answer.is_null()) answer = {{"response", "CancelAuth"}};
  answered_.insert(text_at(asked, "request"));
  browser_.send("Fetch.continueWithAuth", {{"requestId", asked["request"]}, {"authChallengeResponse", answer}},
                text_at(asked, "session"));
}

} // namespace holdfast::capture
