#pragma once
// The verbs for looking: why, top, events, serve, completion. add_look_verbs() hangs them into the command line; each
// sets `verb` to what is to be done, as the others in main.

#include "services/cli/context.hpp"

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace holdfast::cli {

using Verb = std::function<int(Context&)>;
void add_look_verbs(CLI::App& app, Verb& verb);

int why(Context& context, const std::vector<std::string>& names);

struct EventOptions {
  bool follow{false};
  int limit{20};
  std::string crawl;
};
int events(Context& context, const EventOptions& options);

// `level`: a log level, or "default". `worker` empty: all.
int log_level(Context& context, const std::string& level, const std::string& worker);

int top(Context& context, double interval);
int serve(Context& context);

// A completion script for bash, zsh or fish, made from the verbs and options of `app`.
int completion(const CLI::App& app, const std::string& shell);
// A manual page in the language of man(7), made from the same.
int manual(const CLI::App& app);

// True once SIGINT, SIGTERM or SIGHUP has come; calling it the first time begins to note them.
bool told_to_end();

} // namespace holdfast::cli
