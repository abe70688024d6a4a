#include "services/worker/session/sign_ins.hpp"

#include "services/worker/session/sign_in.hpp"

#include <spdlog/spdlog.h>

namespace holdfast::worker {

namespace {

constexpr std::size_t kMostSignIns = 2; // of a worker at once: each is a browser

} // namespace

SignIns::SignIns(JobContext& context, Spawn spawn) : context_(context), spawn_(std::move(spawn)) {}
SignIns::~SignIns() = default;

void SignIns::heed(const std::string& notification) {
  constexpr std::string_view kOver = "sign_in_over ";
  if (notification == "sign_in") look();
  if (!notification.starts_with(kOver)) return;
  const auto found = running_.find(notification.substr(kOver.size()));
  if (found != running_.end()) found->second->end("it was cancelled");
}

void SignIns::look() {
  if (stopped_ || SignIn::hook(context_) == nullptr) return;
  again_ = true;
  if (taking_) return;
  taking_ = true;
  spawn_(take());
}

void SignIns::stop(const std::string& reason) {
  stopped_ = true;
  for (const auto& [id, one] : running_)
    one->end(reason);
}

awaitable<void> SignIns::take() {
  while (std::exchange(again_, false) && !stopped_ && running_.size() < kMostSignIns) {
    try {
      const auto taken = co_await context_.retry.repeat(
          [&](pg::Connection& connection) { return store::sign_in_take(connection, context_.worker_id); });
      if (!taken) break;
      const auto one = std::make_shared<SignIn>(context_, *taken, spawn_);
      running_[taken->id] = one;
      if (stopped_) one->end("its worker stops");
      spawn_(run(one));
      again_ = true;
    } catch (const base::Error& error) {
      spdlog::debug("no sign-in is taken: {}", error.what());
    }
  }
  taking_ = false;
}

awaitable<void> SignIns::run(std::shared_ptr<SignIn> one) {
  co_await one->run();
  running_.erase(one->id());
  look();
}

} // namespace holdfast::worker
