#include "services/worker/session/sign_in.hpp"

#include "lib/base/error.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/on_thread.hpp"
#include "lib/base/text.hpp"
#include "lib/base/url.hpp"
#include "lib/store/persona.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/prepare_hook.hpp"
#include "services/worker/machine/browser_watch.hpp"
#include "services/worker/machine/capabilities.hpp"
#include "services/worker/machine/try_browser.hpp"
#include "services/worker/session/session_persona.hpp"
#include "services/worker/turn/failure.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>

#include <algorithm>
#include <array>

namespace holdfast::worker {

namespace {

namespace local = asio::local;

constexpr std::chrono::seconds kStart{60};  // of the browser, on a machine that is busy
constexpr std::chrono::seconds kAlone{60};  // without a view: it may be opened again meanwhile
constexpr std::chrono::seconds kGoodBye{5}; // for the last messages
constexpr std::chrono::seconds kLeaveIt{1}; // for the browser to end by itself
constexpr std::size_t kPassed = 1 << 16;
constexpr std::size_t kLargestState = 64u << 20;

std::string with_nul(const nlohmann::json& message) { return base::json_text(message) + '\0'; }

void close(View& view) {
  boost::system::error_code ignored;
  boost::beast::get_lowest_layer(view).socket().close(ignored);
}

} // namespace

SignIn::SignIn(JobContext& context, store::SignIn asked, Listen listen)
    : context_(context), asked_(std::move(asked)), listen_(std::move(listen)), deadline_(Clock::now() + asked_.left),
      directory_(context, asked_.id, asked_.id, asked_.persona), door_(context.executor), browser_(context.executor),
      limit_(context.executor) {}

const hooks::Hook* SignIn::hook(const JobContext& context) {
  const auto hooks = context.options.catalog->hooks_for(hooks::Event::crawl_setup, {std::string(kBrowserPlugin)});
  return hooks.empty() ? nullptr : hooks.front();
}

void SignIn::end(const std::string& why) {
  if (why_.empty()) why_ = why;
  if (child_) child_->terminate(kLeaveIt);
  boost::system::error_code ignored;
  door_.close(ignored);
}

// Replaces the limit before.
void SignIn::end_at(Clock::time_point at, const std::string& why) {
  limit_.expires_at(std::min(at, deadline_));
  limit_.async_wait([self = shared_from_this(), why](const boost::system::error_code& error) {
    if (!error) self->end(why);
  });
}

awaitable<void> SignIn::run() {
  spdlog::info("a person signs in to persona {} ({}), for {}", asked_.persona, asked_.id, asked_.asked_by);
  try {
    co_await work();
  } catch (const Failure& failure) { // its persona is gone, or cannot be opened
    end(failure.reason);
  } catch (const std::exception& error) {
    end(error.what());
  }
  limit_.cancel();
  // Who has no view yet is told by the page why there will be none.
  const auto problem = ready_ ? "" : why_;
  try {
    co_await context_.retry.repeat(
        [&](pg::Connection& connection) { store::sign_in_end(connection, context_.worker_id, asked_.id, problem); });
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

// Starts the browser, which connects to a socket in its directory.
awaitable<void> SignIn::start() {
  const auto* const hook = SignIn::hook(context_);
  co_await directory_.make();
  network_ = context_.networks.enter();
  const auto url = base::parse_url(asked_.url);
  route_ = context_.networks.route(network_, {url.host, url.port}, 0);
  auto hook_context = machine_context(context_);
  directory_.describe(hook_context);
  // The browser says of itself what that of a crawl will say.
  const auto persona = co_await SessionPersona::open(context_, asked_.persona);
  auto options = context_.options.hook_options;
  for (const auto& [name, value] : persona->options())
    options[name] = value;
  auto prepared = prepare_hook(context_, *hook, options, hook_context);
  if (!prepared.missing.empty()) throw base::Error(base::ErrorClass::unavailable, prepared.missing);
  auto& command = prepared.command;
  confine(context_, directory_.sandbox(), command, {directory_.path()}, directory_.temporary());
  if (route_) route_->apply(command);
  command.argv = {process::executable_directory() / "holdfast-capture", "sign-in"};
  command.directory = directory_.path();
  command.stdout_path = directory_.path() / "stdout";
  command.stderr_path = directory_.path() / "stderr";
  const auto place = directory_.path() / "browser";
  std::filesystem::create_directories(place);
  // A path of a socket has 107 bytes at most.
  const base::Fd near(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const local::stream_protocol::endpoint socket("/proc/self/fd/" + std::to_string(near.get()) + "/view.sock");
  door_.open();
  door_.bind(socket);
  door_.listen();
  give_to_hooks(directory_.sandbox(), directory_.path());
  if (!why_.empty()) throw base::Error(base::ErrorClass::unavailable, why_);
  child_ = context_.launcher.start(command);
}

awaitable<process::Exit> SignIn::browser_ended() {
  const auto exit = co_await child_->wait();
  over_ = true;
  boost::system::error_code ignored;
  door_.close(ignored);
  limit_.expires_after(kGoodBye); // a view that takes nothing would hold up pass_on()
  limit_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->view_) close(*self->view_);
  });
  co_return exit;
}

// What the browser shows. Without a view it is lost: a new one has all shown again.
awaitable<void> SignIn::pass_on() {
  auto [error] = co_await door_.async_accept(browser_, asio::as_tuple(asio::use_awaitable));
  if (error) co_return;
  try {
    const auto place = listen_();
    const auto first = with_nul({{"type", "open"}, {"url", asked_.url}});
    co_await to_browser(first);
    ready_ = co_await context_.retry.repeat([&](pg::Connection& connection) {
      return store::sign_in_ready(connection, context_.worker_id, asked_.id, place);
    });
    if (!ready_) end("it was cancelled");
  } catch (const base::Error& problem) {
    end(problem.what());
  }
  if (!over_ && !view_) end_at(Clock::now() + kAlone, "its view was closed");
  std::array<char, kPassed> piece;
  for (std::size_t count = 0; !error;) {
    std::tie(error, count) =
        co_await browser_.async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
    const auto view = view_;
    if (view) co_await asio::async_write(*view, asio::buffer(piece.data(), count), asio::as_tuple(asio::use_awaitable));
  }
}

awaitable<void> SignIn::show(std::shared_ptr<View> view, std::string said) {
  if (over_) co_return;
  next_ = {std::move(view), std::move(said)};
  if (view_) co_return close(*view_); // the loop of that view goes on with this one
  std::array<char, kPassed> piece;
  while (!over_ && next_.first) {
    const auto [shown, first] = std::exchange(next_, {});
    view_ = shown;
    end_at(deadline_, "its time was over");
    // Ends what the view before has left half sent.
    bool passed = co_await to_browser(std::string_view("\0", 1)) && co_await to_browser(first), gone = false;
    while (passed) {
      const auto [error, count] =
          co_await shown->async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
      gone = error.failed();
      passed = !gone && co_await to_browser(std::string_view(piece.data(), count));
    }
    if (over_ || !gone) co_return; // the browser ends: the view gets the last message
    view_.reset();
  }
  if (!over_) end_at(Clock::now() + kAlone, "its view was closed");
}

awaitable<bool> SignIn::to_browser(std::string_view bytes) {
  const auto [error, count] = co_await asio::async_write(browser_, asio::buffer(bytes.data(), bytes.size()),
                                                         asio::as_tuple(asio::use_awaitable));
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
  const auto& vault = context_.options.vault;
  for (std::optional<std::int64_t> saved; !saved;)
    saved = co_await context_.retry.repeat([&](pg::Connection& connection) {
      auto persona = store::persona_load(connection, vault, asked_.persona);
      if (!persona)
        throw base::Error(base::ErrorClass::refused, "the persona \"" + asked_.persona + "\" was removed meanwhile");
      renew(persona->state, fresh);
      return store::persona_keep(connection, vault, {context_.worker_id, asked_.id}, *persona);
    });
  kept_ = true;
}

// Says how it ended, if there is a view.
awaitable<void> SignIn::say_good_bye() {
  const auto view = std::exchange(view_, nullptr);
  if (!view) co_return;
  boost::beast::get_lowest_layer(*view).expires_after(kGoodBye);
  const auto text = with_nul({{"type", "over"}, {"kept", kept_}, {"text", why_}});
  co_await asio::async_write(*view, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
  close(*view);
}

} // namespace holdfast::worker
