#include "services/webhook/deliverer.hpp"

#include "lib/archive/root.hpp"
#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/test_point.hpp"
#include "lib/http/client.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/webhook.hpp"
#include "services/webhook/apprise.hpp"
#include "services/webhook/mail.hpp"
#include "services/webhook/notice.hpp"
#include "services/webhook/secrets.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
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

constexpr std::string_view kMail = "mailto:", kApprise = "apprise:";
constexpr int kDelivered = 200; // for a program that ended well

// Outcomes of programs, which may outlive the deliverer.
struct Programs {
  std::mutex mutex;
  std::deque<Outcome> outcomes;
  std::function<void()> wake; // empty: the deliverer has ended
};

} // namespace

struct Deliverer::Impl {
  explicit Impl(DelivererOptions given) : options(std::move(given)) {
    if (!options.secret_file.empty()) secrets = Secrets::read(options.secret_file);
    programs->wake = [this] { sender.wake(); };
    thread = std::thread([this] { serve(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    sender.wake();
    thread.join();
    const std::lock_guard lock(programs->mutex);
    programs->wake = nullptr;
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
    if (!options.apprise.empty()) found.schemes.emplace_back("apprise");
    return found;
  }

  void start(store::Delivery delivery) {
    http::Request request;
    request.user_agent = "holdfast/" + options.version;
    request.use_proxy = false; // else the guard would judge the proxy's address
    request.timeout = options.timeout;
    request.connect_timeout = options.timeout / 2;
    request.most_bytes = kAnswerLimit;
    if (delivery.url.starts_with(kApprise)) return run_apprise(std::move(delivery));
    if (delivery.url.starts_with(kMail)) {
      try {
        set_mail(request, options.mail, delivery.url.substr(kMail.size()), delivery.message_id, notice_of(delivery));
      } catch (const std::exception& error) {
        outcomes.push_back({std::move(delivery), 0, error.what()});
        return;
      }
    } else {
      sign(request, delivery);
    }
    under_way.push_back(delivery);
    sender.start(std::move(request), delivery.payload, [this, delivery](const auto& answer) {
      end({delivery, answer.status,
           answer.refused.empty() ? answer.error
                                  : "its address " + answer.refused + " is not public (urls.allow_private)"});
    });
  }

  void end(Outcome outcome) {
    std::erase_if(under_way, [&](const auto& one) {
      return one.id == outcome.delivery.id && one.fence == outcome.delivery.fence;
    });
    outcomes.push_back(std::move(outcome));
  }

  // Runs the program in a thread of its own, which ends with the program's deadline, if need be after this object.
  void run_apprise(store::Delivery delivery) {
    under_way.push_back(delivery);
    std::thread([ended = programs, delivery, notice = notice_of(delivery), program = options.apprise,
                 config = options.apprise_config, limit = options.timeout] {
      pthread_setname_np(pthread_self(), "hf-apprise");
      const auto error = send_by_apprise(program, config, delivery.url.substr(kApprise.size()), notice, limit);
      const std::lock_guard lock(ended->mutex);
      ended->outcomes.push_back({delivery, error.empty() ? kDelivered : 0, error});
      if (ended->wake) ended->wake();
    }).detach();
  }

  void collect_programs() {
    const std::lock_guard lock(programs->mutex);
    for (auto& outcome : std::exchange(programs->outcomes, {}))
      end(std::move(outcome));
  }

  // Reads the files of both captures. An archive that hangs keeps its thread, and later messages are sent without words
  // and pictures.
  Notice notice_of(const store::Delivery& delivery) {
    const auto event = nlohmann::json::parse(delivery.payload, nullptr, false);
    const auto data = event.value("data", nlohmann::json::object());
    const auto before = data.value("directory_before", ""), now = data.value("directory", "");
    Comparison comparison;
    const bool busy = reading.valid() && reading.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    if (!options.archive_root.empty() && !before.empty() && !now.empty() && !busy) {
      std::packaged_task<Comparison()> task(
          [root_path = options.archive_root, collection = store::collection_id(*connection), before, now] {
            const auto root = archive::Root::open(root_path, collection, false);
            return compare([&root](const std::string& path) { return root.open_file(path); }, before, now);
          });
      reading = task.get_future();
      std::thread([task = std::move(task)]() mutable {
        pthread_setname_np(pthread_self(), "hf-words");
        task();
      }).detach();
      try {
        if (reading.wait_for(options.timeout / 2) == std::future_status::ready) comparison = reading.get();
      } catch (const std::exception& error) {
        spdlog::debug("{}: neither words nor pictures: {}", delivery.message_id, error.what());
      }
    }
    return webhook::notice_of(event, options.page, comparison);
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
    collect_programs();
    while (!outcomes.empty()) {
      report(outcomes.front()); // stays in line if the database becomes unreachable
      outcomes.pop_front();
    }
    auto wait = options.poll;
    const int room = kRoom - static_cast<int>(under_way.size());
    const auto reached = reach(reread_secrets());
    if (!reached.schemes.empty() && room > 0) {
      auto claimed = store::webhook_claim(*connection, options.label, reached, options.lease, room);
      for (auto& delivery : claimed)
        start(std::move(delivery));
      if (claimed.empty())
        if (const auto next = store::webhook_wait(*connection, reached))
          wait = std::clamp(*next, milliseconds(50), wait);
      set_idle(claimed.empty() && under_way.empty() && wait > milliseconds(50));
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
      for (auto now = steady_clock::now(); now < until && !under_way.empty(); now = steady_clock::now()) {
        sender.step(-1, std::chrono::ceil<milliseconds>(until - now));
        collect_programs();
      }
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
  std::future<Comparison> reading; // of the archive, which may hang
  std::shared_ptr<Programs> programs = std::make_shared<Programs>();
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

} // namespace holdfast::webhook
