#include "services/worker/session/sign_in.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/call.hpp"
#include "services/worker/hook/browser_watch.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/prepare_hook.hpp"
#include "services/worker/session/session_persona.hpp"
#include "services/worker/turn/failure.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kStart{60};  // of the browser, on a machine that is busy
constexpr std::chrono::seconds kAlone{60};  // without a view: it may be opened again meanwhile
constexpr std::chrono::seconds kGoodBye{5}; // for the last messages
constexpr std::chrono::seconds kLeaveIt{1}; // for the browser to end by itself
constexpr std::size_t kPassed = 1 << 16;
constexpr std::size_t kLargestState = 64u << 20;

void close(SignIn::View& view) {
  boost::system::error_code ignored;
  boost::beast::get_lowest_layer(view).socket().close(ignored);
}

} // namespace

const hooks::Hook* sign_in_hook(const HookServices& context) {
  const auto hooks = context.options.plugin_set->hooks_for(hooks::Event::crawl_setup, {std::string(kBrowserPlugin)});
  return hooks.empty() ? nullptr : hooks.front();
}

void SignIn::end(const std::string& why) {
  if (why_.empty()) why_ = why;
  if (child_) child_->terminate(kLeaveIt);
}

// Replaces the limit before.
void SignIn::end_at(Clock::time_point at, const std::string& why) {
  limit_.expires_at(std::min(at, deadline_));
  limit_.async_wait([self = shared_from_this(), why](const boost::system::error_code& error) {
    if (!error) self->end(why);
  });
}

awaitable<void> SignIn::run() {
  spdlog::info("sign-in to persona {} ({}) by {}", asked_.persona, asked_.id, asked_.asked_by);
  try {
    co_await work();
  } catch (const Failure& failure) { // its persona was removed, or cannot be decrypted
    end(failure.reason);
  } catch (const std::exception& error) {
    end(error.what());
  }
  limit_.cancel();
  // A user without a view yet reads the reason on the page.
  const auto problem = ready_ ? "" : why_;
  try {
    co_await context_.retry.repeat("sign_in_end", context_.worker_id, asked_.id, problem);
  } catch (const base::Error& error) { // it ends in the database with its deadline
    spdlog::debug("sign-in {} is not recorded as ended: {}", asked_.id, error.what());
  }
  co_await say_good_bye();
  route_.reset();
  network_.reset();
  co_await directory_.remove();
  spdlog::log(ready_ ? spdlog::level::info : spdlog::level::warn, "the sign-in to persona {} has ended: {}",
              asked_.persona, kept_ ? "its state is kept" : why_);
}

awaitable<void> SignIn::work() {
  using namespace asio::experimental::awaitable_operators;
  co_await start();
  end_at(Clock::now() + kStart, "its browser did not start in time");
  const auto exit = co_await (browser_ended() && pass_on());
  limit_.cancel();
  if (!why_.empty()) co_return;
  if (exit.clean()) co_return co_await keep();
  const auto words = last_line(directory_.path() / "stderr");
  end(words.empty() ? "its browser ended" : words);
}

// Starts the browser, with a socket as its input, for both directions.
awaitable<void> SignIn::start() {
  const auto* const hook = sign_in_hook(context_);
  co_await directory_.make();
  network_ = context_.networks.enter();
  const auto url = base::parse_url(asked_.url);
  route_ = context_.networks.route(network_, {url.host, url.port}, 0);
  auto hook_context = machine_context(context_);
  directory_.describe(hook_context);
  // The browser identifies itself like that of a crawl.
  const auto persona = co_await SessionPersona::open(context_, asked_.persona);
  auto options = context_.options.hook_options;
  for (const auto& [name, value] : persona->options())
    options[name] = value;
  auto prepared = prepare_hook(context_, *hook, options, hook_context);
  if (!prepared.missing.empty()) throw base::Error(base::ErrorClass::unavailable, prepared.missing);
  auto& command = prepared.command;
  confine(context_, directory_.sandbox(), command, {directory_.path()}, directory_.temporary());
  if (route_) route_->apply(command);
  command.argv = {process::executable_directory() / "holdfast-capture", "sign-in", asked_.url};
  command.limits = prepared.limits.process;
  command.directory = directory_.path();
  command.stdout_path = directory_.path() / "stdout";
  command.stderr_path = directory_.path() / "stderr";
  asio::local::stream_protocol::socket input(context_.executor);
  asio::local::connect_pair(browser_, input);
  command.stdin_file = input.native_handle();
  give_to_hooks(directory_.sandbox(), directory_.path());
  if (!why_.empty()) throw base::Error(base::ErrorClass::unavailable, why_);
  child_ = context_.launcher.start(command);
}

awaitable<process::Exit> SignIn::browser_ended() {
  const auto exit = co_await child_->wait();
  over_ = true;
  limit_.expires_after(kGoodBye); // a view that takes nothing would hold up pass_on()
  limit_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->view_) close(*self->view_);
  });
  co_return exit;
}

// Passes on the screen of the browser. Without a view it is dropped: a new view gets a full one.
awaitable<void> SignIn::pass_on() {
  std::array<char, kPassed> piece;
  for (;;) {
    const auto [error, count] = co_await browser_.async_read_some(asio::buffer(piece), kAsTuple);
    if (error) co_return;
    if (!ready_ && why_.empty()) co_await let_views_in();
    const auto view = view_;
    if (view) co_await asio::async_write(*view, asio::buffer(piece.data(), count), kAsTuple);
  }
}

awaitable<void> SignIn::let_views_in() {
  try {
    const auto place = listen_(asked_.seen_at);
    ready_ = co_await context_.retry.repeat(&store::sign_in_ready, context_.worker_id, asked_.id, place);
    if (!ready_) end("it was cancelled");
  } catch (const base::Error& problem) {
    end(problem.what());
  }
  if (!over_ && !view_) end_at(Clock::now() + kAlone, "its view was closed");
}

awaitable<void> SignIn::show(std::shared_ptr<View> view) {
  if (over_) co_return;
  next_ = std::move(view);
  if (view_) co_return close(*view_); // the loop of that view goes on with this one
  std::array<char, kPassed> piece;
  while (!over_ && next_) {
    const auto shown = view_ = std::exchange(next_, nullptr);
    end_at(deadline_, "its time was over");
    // Ends what the view before has left half sent.
    bool passed = co_await to_browser(std::string_view("\0", 1)), gone = false;
    while (passed) {
      const auto [error, count] = co_await shown->async_read_some(asio::buffer(piece), kAsTuple);
      gone = error.failed();
      passed = !gone && co_await to_browser(std::string_view(piece.data(), count));
    }
    if (over_ || !gone) co_return; // the browser ends: the view gets the last message
    view_.reset();
  }
  if (!over_) end_at(Clock::now() + kAlone, "its view was closed");
}

awaitable<bool> SignIn::to_browser(std::string_view bytes) {
  const auto [error, count] = co_await asio::async_write(browser_, asio::buffer(bytes.data(), bytes.size()), kAsTuple);
  co_return !error;
}

// Puts what the browser had into the persona, whatever happens to that meanwhile.
awaitable<void> SignIn::keep() {
  const auto file = directory_.path() / "browser/state.json";
  const auto text = co_await base::on_thread(context_.files, [&] { return base::tail_of(file, kLargestState + 1); });
  if (text.empty() || text.size() > kLargestState)
    throw base::Error(base::ErrorClass::refused,
                      text.empty() ? "the browser has left no state" : "the browser's state is larger than 64 MiB");
  std::vector<std::string> left_out;
  const auto fresh = persona::State::parse(text, "the browser's state", left_out);
  for (const auto& one : left_out)
    spdlog::warn("sign-in to persona {}: left out: {}", asked_.persona, one);
  co_await context_.retry.repeat([&](pg::Connection& connection) {
    return store::persona_keep(connection, context_.options.key_ring, {context_.worker_id, asked_.id}, asked_.persona,
                               [&](persona::State& state) {
                                 renew(state, fresh);
                                 return true;
                               });
  });
  kept_ = true;
}

// Says how it ended, if there is a view.
awaitable<void> SignIn::say_good_bye() {
  const auto view = std::exchange(view_, nullptr);
  if (!view) co_return;
  boost::beast::get_lowest_layer(*view).expires_after(kGoodBye);
  const auto text = base::json_text(nlohmann::json{{"type", "over"}, {"kept", kept_}, {"text", why_}}) + '\0';
  co_await asio::async_write(*view, asio::buffer(text), kAsTuple);
  close(*view);
}

} // namespace holdfast::worker
