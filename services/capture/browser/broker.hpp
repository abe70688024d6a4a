#pragma once
// Traffic between Chromium and the clients of the browser's host: commands that a client may give, under numbers of the
// host's own, and the answers and events of the sessions that it opened. One thread.

#include "services/capture/browser/chromium.hpp"
#include "services/capture/browser/devtools.hpp"

#include <list>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace holdfast::capture {

struct Client {
  int socket{-1};
  std::string incoming;
  Outgoing outgoing;
  std::set<std::string> contexts, targets; // that it has made
  bool gone{false};
};
using Clients = std::list<Client>;

class Broker {
public:
  Broker(Outgoing& browser, Clients& clients) : browser_(browser), clients_(clients) {}

  // Prepares a browser that has just been started. `for_one`: for a single client, which may do everything.
  void begin(bool for_one);
  void forget(); // a browser that has ended
  void take_command(Client& client, std::string_view message);
  void take_message(std::string_view message); // of the browser
  // Ends what the client has opened.
  void drop(Client& client, bool browser_runs);
  int pages() const { return pages_; } // that this browser has had

private:
  struct Pending {
    Client* client{nullptr}; // null: of the host itself
    int id{0};
    std::string method, target;
  };
  struct Session {
    Client* client{nullptr};
    bool of_others{false}; // of a page that another client has opened
  };

  bool may(const Client& client, const std::string& method, const Json& parameters, const std::string& session) const;
  void take_answer(std::string_view message);
  void take_event(std::string_view message);
  void take_attached(const Json& parameters, std::string_view message);
  void command(const std::string& method, const Json& parameters, const std::string& session = {});
  void give(Client& client, std::string_view message);

  Outgoing& browser_;
  Clients& clients_;
  bool for_one_{false};
  int pages_{0}, last_id_{0};
  std::unordered_map<int, Pending> pending_;
  std::unordered_map<std::string, Session> sessions_;
};

} // namespace holdfast::capture
