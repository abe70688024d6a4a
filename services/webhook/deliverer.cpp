#include "services/webhook/deliverer.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/http/client.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/call.hpp"
#include "lib/store/webhook.hpp"

#include <spdlog/spdlog.h>

#include <nettle/hmac.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <deque>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

namespace holdfast::webhook {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kRoom = 16; // attempts under way at once
constexpr milliseconds kFarewell{1000};
constexpr std::size_t kAnswerLimit = 256 * 1024; // its body is of no interest, and one without an end is not waited for

struct Outcome {
  store::Delivery delivery;
  int status{0}; // 0: there was no answer
  std::string error;
};

} // namespace

struct Deliverer::Impl {
  explicit Impl(DelivererOptions given)
      : options(std::move(given)), secrets(Secrets::read(options.secret_file)), thread([this] { serve(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    sender.wake();
    thread.join();
  }

  bool told_to_stop() {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  void set_idle(bool value) {
    const std::lock_guard lock(mutex);
    if (std::exchange(idle, value) != value) changed.notify_all();
  }

  // A changed file is seen at once; one that has become unusable is not used.
  bool reread_secrets() {
    std::error_code error;
    const auto time = std::filesystem::last_write_time(options.secret_file, error);
    if (!error && time == secrets_time) return secrets_good;
    secrets_time = time;
    try {
      secrets = Secrets::read(options.secret_file);
      secrets_good = true;
    } catch (const base::Error& problem) {
      if (std::exchange(secrets_good, false)) spdlog::error("webhooks are disabled: {}", problem.what());
    }
    return secrets_good;
  }

  void connect() {
    pg::ConnectionOptions connection_options;
    connection_options.application_name = options.label + " webhooks";
    connection = std::make_unique<pg::Connection>(options.dsn, connection_options);
    connection->listen(store::kWebhookChannel);
  }

  void start(store::Delivery delivery) {
    const auto timestamp = std::to_string(std::time(nullptr));
    std::string signatures;
    for (const auto& key : secrets.of(delivery.webhook))
      signatures += (signatures.empty() ? "" : " ") + signature(key, delivery.message_id, timestamp, delivery.payload);
    http::Request request;
    request.method = "POST";
    request.url = delivery.url;
    request.user_agent = "holdfast/" + options.version;
    request.headers = {"Content-Type: application/json", "webhook-id: " + delivery.message_id,
                       "webhook-timestamp: " + timestamp, "webhook-signature: " + signatures,
                       "Expect:"}; // no waiting for "100 Continue"
    request.allow_private = options.allow_private;
    request.use_proxy = false; // else the guard would judge the proxy's address
    request.timeout = options.timeout;
    request.connect_timeout = options.timeout / 2;
    request.most_bytes = kAnswerLimit;
    under_way.push_back(delivery);
    auto payload = delivery.payload;
    sender.start(std::move(request), std::move(payload), [this, delivery = std::move(delivery)](const auto& answer) {
      std::erase_if(under_way, [&](const auto& one) { return one.id == delivery.id && one.fence == delivery.fence; });
      outcomes.push_back({delivery, answer.status,
                          answer.refused.empty()
                              ? answer.error
                              : "its address " + answer.refused + " is not public (urls.allow_private)"});
    });
  }

  void report(const Outcome& outcome) {
    const auto& delivery = outcome.delivery;
    const int status = outcome.status;
    const bool good = status >= 200 && status < 300;
    const std::string error = good ? "" : status != 0 ? "it answered HTTP " + std::to_string(status) : outcome.error;
    base::test_point("before_webhook_report");
    base::count("holdfast_worker_webhook_attempts_total", {{"outcome", good ? "delivered" : "failed"}});
    const bool ours = store::webhook_report(*connection, delivery, status, error, status == 410);
    if (!ours)
      spdlog::debug("webhook {}: {} has been claimed by another meanwhile", delivery.webhook, delivery.message_id);
    else if (good)
      spdlog::debug("webhook {}: delivered {} ({})", delivery.webhook, delivery.event, delivery.message_id);
    else
      spdlog::warn("webhook {}: {} ({}) failed, attempt {}: {}", delivery.webhook, delivery.event, delivery.message_id,
                   delivery.attempts, error);
  }

  void round() {
    if (!connection || connection->broken()) connect();
    connection->notifications();
    while (!outcomes.empty()) {
      report(outcomes.front()); // stays in line if the database becomes unreachable
      outcomes.pop_front();
    }
    auto wait = options.poll;
    const int room = kRoom - static_cast<int>(sender.under_way());
    if (reread_secrets() && room > 0) {
      auto claimed = store::webhook_claim(*connection, options.label, secrets.names(), options.lease, room);
      for (auto& delivery : claimed)
        start(std::move(delivery));
      if (claimed.empty())
        if (const auto next = store::webhook_wait(*connection, secrets.names()))
          wait = std::clamp(*next, milliseconds(50), wait);
      set_idle(claimed.empty() && sender.under_way() == 0 && wait > milliseconds(50));
    } else {
      set_idle(!secrets_good);
    }
    sender.step(connection->descriptor(), wait);
  }

  void serve() {
    pthread_setname_np(pthread_self(), "hf-webhook");
    base::Backoff backoff(milliseconds(200), milliseconds(10000));
    bool lost = false;
    while (!told_to_stop()) {
      try {
        round();
        if (std::exchange(lost, false)) spdlog::info("webhooks: the database is back");
        backoff.reset();
      } catch (const std::exception& error) {
        if (!std::exchange(lost, true)) spdlog::warn("webhooks: {}", error.what());
        connection.reset();
        const auto until = steady_clock::now() + backoff.next();
        for (auto now = steady_clock::now(); now < until && !told_to_stop(); now = steady_clock::now())
          sender.step(-1, std::chrono::ceil<milliseconds>(until - now));
      }
    }
    farewell();
  }

  // Waits a moment for deliveries under way, reports those that have ended, and releases the others.
  void farewell() {
    try {
      const auto until = steady_clock::now() + kFarewell;
      for (auto now = steady_clock::now(); now < until && sender.under_way() > 0; now = steady_clock::now())
        sender.step(-1, std::chrono::ceil<milliseconds>(until - now));
      if (!connection) return;
      for (const auto& outcome : outcomes)
        report(outcome);
      for (const auto& delivery : under_way)
        store::call(*connection, "webhook_release", delivery.id, delivery.fence);
    } catch (const std::exception& error) {
      spdlog::debug("webhooks: {}", error.what()); // their claims end by themselves
    }
  }

  DelivererOptions options;
  Secrets secrets;
  std::filesystem::file_time_type secrets_time{};
  bool secrets_good{true};
  http::Batch sender;
  std::unique_ptr<pg::Connection> connection;
  std::vector<store::Delivery> under_way;
  std::deque<Outcome> outcomes;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping{false};
  bool idle{false};
  std::thread thread; // last: it uses the rest
};

Deliverer::Deliverer(DelivererOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Deliverer::~Deliverer() = default;

void Deliverer::flush(milliseconds at_most) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->idle = false;
  }
  impl_->sender.wake();
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait_for(lock, at_most, [this] { return impl_->idle; });
}

namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr std::size_t kLeastKey = 16;

[[noreturn]] void refuse(const std::filesystem::path& file, int line, const std::string& what) {
  throw base::Error(base::ErrorClass::configuration,
                    "webhooks.secret_file: " + file.string() + ":" + std::to_string(line) + ": " + what,
                    "lines SECRET or NAME SECRET, the secret at least 16 characters: "
                    "echo whsec_$(head -c 32 /dev/urandom | base64)");
}

// Empty: not base64.
std::string decoded(const std::string& text) {
  auto bytes = base::base64_decode(text);
  return base::base64_encode(bytes) == text ? bytes : "";
}

} // namespace

Secrets Secrets::read(const std::filesystem::path& file) {
  std::istringstream stream(base::secret_text(file, "webhooks.secret_file"));
  Secrets secrets;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, key, more;
    if (!(words >> name)) continue;
    if (!(words >> key)) std::swap(name, key);
    if (words >> more) refuse(file, number, "more than two words");
    if (key.starts_with(kPrefix)) {
      key = decoded(key.substr(kPrefix.size()));
      if (key.empty()) refuse(file, number, "the text after whsec_ is not base64");
    }
    if (key.size() < kLeastKey) refuse(file, number, "the secret is too short");
    secrets.keys_[name].push_back(key);
  }
  if (secrets.keys_.empty()) refuse(file, number, "no secret found");
  return secrets;
}

std::optional<std::vector<std::string>> Secrets::names() const {
  if (keys_.contains("")) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, keys] : keys_)
    names.push_back(name);
  return names;
}

const std::vector<std::string>& Secrets::of(const std::string& webhook) const {
  static const std::vector<std::string> none;
  auto found = keys_.find(webhook);
  if (found == keys_.end()) found = keys_.find("");
  return found == keys_.end() ? none : found->second;
}

std::string signature(const std::string& key, std::string_view message_id, std::string_view timestamp,
                      std::string_view body) {
  std::string text(message_id);
  ((text += '.') += timestamp) += '.';
  text += body;
  hmac_sha256_ctx context{};
  hmac_sha256_set_key(&context, key.size(), reinterpret_cast<const std::uint8_t*>(key.data()));
  hmac_sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return "v1," + base::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

} // namespace holdfast::webhook
