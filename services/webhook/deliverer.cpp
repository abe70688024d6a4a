#include "services/webhook/deliverer.hpp"

#include "lib/archive/diff_page.hpp"
#include "lib/archive/root.hpp"
#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/http/client.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/webhook.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <nettle/hmac.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <deque>
#include <future>
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
  explicit Impl(DelivererOptions given) : options(std::move(given)) {
    if (!options.secret_file.empty()) secrets = Secrets::read(options.secret_file);
    thread = std::thread([this] { serve(); });
  }

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
    if (options.secret_file.empty()) return false;
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

  store::Reach reach(bool secrets_usable) const {
    store::Reach found{secrets.names(), {}};
    if (secrets_usable) found.schemes = {"http", "https"};
    if (!options.mail.server.empty()) found.schemes.emplace_back("mailto");
    return found;
  }

  void start(store::Delivery delivery) {
    http::Request request;
    request.user_agent = "holdfast/" + options.version;
    request.use_proxy = false; // else the guard would judge the proxy's address
    request.timeout = options.timeout;
    request.connect_timeout = options.timeout / 2;
    request.most_bytes = kAnswerLimit;
    constexpr std::string_view kMail = "mailto:";
    auto body = delivery.payload;
    if (delivery.url.starts_with(kMail)) {
      const auto& mail = options.mail;
      const auto to = delivery.url.substr(kMail.size());
      std::string password;
      try {
        if (!mail.password_file.empty())
          password = base::split(base::secret_text(mail.password_file, "mail.password_file"), "\r\n").at(0);
      } catch (const std::exception& error) {
        outcomes.push_back({std::move(delivery), 0, error.what()});
        return;
      }
      request.url = mail.server;
      request.mail = http::Mail{mail.from, to, mail.user, password, mail.without_tls, mail.ca_file};
      body = mail_message(mail, to, delivery.message_id, delivery.payload, words_of(delivery));
    } else {
      sign(request, delivery);
    }
    under_way.push_back(delivery);
    sender.start(std::move(request), std::move(body), [this, delivery = std::move(delivery)](const auto& answer) {
      std::erase_if(under_way, [&](const auto& one) { return one.id == delivery.id && one.fence == delivery.fence; });
      outcomes.push_back({delivery, answer.status,
                          answer.refused.empty()
                              ? answer.error
                              : "its address " + answer.refused + " is not public (urls.allow_private)"});
    });
  }

  // Returns what has changed in words, from the files of both captures; empty: they cannot be read. An archive that
  // hangs keeps its thread, and later messages are sent without words.
  std::string words_of(const store::Delivery& delivery) {
    constexpr std::size_t kMost = 20'000;
    const auto event = nlohmann::json::parse(delivery.payload, nullptr, false);
    const auto data = event.value("data", nlohmann::json::object());
    const auto before = data.value("directory_before", ""), now = data.value("directory", "");
    if (options.archive_root.empty() || before.empty() || now.empty()) return "";
    if (reading.valid() && reading.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return "";
    std::packaged_task<std::string()> task(
        [root_path = options.archive_root, collection = store::collection_id(*connection), before, now] {
          const auto root = archive::Root::open(root_path, collection, false);
          const auto open = [&root](const std::string& path) { return root.open_file(path); };
          return change::to_text(archive::difference(open, before, now), &change::word_mark);
        });
    reading = task.get_future();
    std::thread([task = std::move(task)]() mutable {
      pthread_setname_np(pthread_self(), "hf-words");
      task();
    }).detach();
    if (reading.wait_for(options.timeout / 2) != std::future_status::ready) return "";
    try {
      auto words = reading.get();
      if (words.size() > kMost) words = words.substr(0, words.rfind('\n', kMost)) + "\n...\n";
      return words;
    } catch (const std::exception& error) {
      spdlog::debug("{}: no words: {}", delivery.message_id, error.what());
      return "";
    }
  }

  void sign(http::Request& request, const store::Delivery& delivery) {
    const auto timestamp = std::to_string(std::time(nullptr));
    std::string signatures;
    for (const auto& key : secrets.of(delivery.webhook))
      signatures += (signatures.empty() ? "" : " ") + signature(key, delivery.message_id, timestamp, delivery.payload);
    request.method = "POST";
    request.url = delivery.url;
    request.headers = {"Content-Type: application/json", "webhook-id: " + delivery.message_id,
                       "webhook-timestamp: " + timestamp, "webhook-signature: " + signatures,
                       "Expect:"}; // no waiting for "100 Continue"
    request.allow_private = options.allow_private;
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
    const auto reached = reach(reread_secrets());
    if (!reached.schemes.empty() && room > 0) {
      auto claimed = store::webhook_claim(*connection, options.label, reached, options.lease, room);
      for (auto& delivery : claimed)
        start(std::move(delivery));
      if (claimed.empty())
        if (const auto next = store::webhook_wait(*connection, reached))
          wait = std::clamp(*next, milliseconds(50), wait);
      set_idle(claimed.empty() && sender.under_way() == 0 && wait > milliseconds(50));
    } else {
      set_idle(reached.schemes.empty());
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
  std::future<std::string> reading; // words_of() that may hang
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
