#include "ycsb/phase.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"

namespace isozone::ycsb {
namespace {

constexpr int64_t kProgressNs = kSecondNs;
constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

Phase::Phase(std::string_view name, const Arguments& arguments, uint64_t operations)
    : name_(name), arguments_(arguments), operations_(operations), terminal_(isatty(STDERR_FILENO) != 0) {}

Result<Json> Phase::Run(rocksdb::DB& db, SeedOf values, const std::vector<Step>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    clients_.push_back(std::make_unique<Client>(db, arguments_.value_size, ClientSeed(arguments_.seed, values, i)));
  }
  {
    MutexLock lock(mutex_);
    running_ = steps.size();
  }
  start_ns_ = MonotonicNs();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto [first, last] = ShareOf(operations_, i, steps.size());
    threads.emplace_back(
        [this, &client = *clients_[i], &step = steps[i], count = last - first] { RunClient(client, step, count); });
  }
  const Status status = Watch();
  for (std::thread& thread : threads) thread.join();
  ISOZONE_RETURN_IF_ERROR(status);
  MutexLock lock(mutex_);
  if (arguments_.interval_ms > 0 && AllLatencies().count > before_interval_.count) TakeInterval(end_ns_);
  return Report(end_ns_);
}

void Phase::RunClient(Client& client, const Step& step, uint64_t operations) {
  Status status;
  for (uint64_t i = 0; i < operations && status.ok() && !stop_.load(std::memory_order_relaxed); ++i) {
    status = step(client);
  }
  Finish(status);
}

void Phase::Finish(const Status& status) {
  const int64_t now_ns = MonotonicNs();
  if (!status.ok()) stop_.store(true, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  if (error_.ok()) error_ = status;
  end_ns_ = std::max(end_ns_, now_ns);
  --running_;
  finished_.Signal();
}

Status Phase::Watch() {
  const int64_t interval_ns = static_cast<int64_t>(arguments_.interval_ms) * kMillisecondNs;
  int64_t next_progress_ns = start_ns_ + kProgressNs;
  int64_t next_interval_ns = start_ns_ + interval_ns;
  MutexLock lock(mutex_);
  while (running_ > 0) {
    finished_.WaitUntil(mutex_, interval_ns > 0 ? std::min(next_progress_ns, next_interval_ns) : next_progress_ns);
    MutexUnlock unlocked(mutex_);
    const int64_t now_ns = MonotonicNs();
    if (interval_ns > 0 && now_ns >= next_interval_ns) {
      TakeInterval(now_ns);
      while (next_interval_ns <= now_ns) next_interval_ns += interval_ns;
    }
    if (now_ns >= next_progress_ns) {
      ShowProgress(now_ns);
      next_progress_ns = now_ns + kProgressNs;
    }
  }
  if (terminal_) fmt::print(stderr, "{}", kEraseLine);
  return error_;
}

void Phase::TakeInterval(int64_t now_ns) {
  Histogram::Snapshot all = AllLatencies();
  const Histogram::Snapshot interval = Difference(all, before_interval_);
  before_interval_ = std::move(all);
  intervals_.push_back({{"t_s", SecondsAt(now_ns)},
                        {"operations", interval.count},
                        {"p50", PercentileUs(interval, 50)},
                        {"p99", PercentileUs(interval, 99)},
                        {"max", PercentileUs(interval, 100)}});
}

void Phase::ShowProgress(int64_t now_ns) const {
  if (!terminal_ && !arguments_.progress) return;
  const uint64_t done = AllLatencies().count;
  fmt::print(stderr, "{}{}: {} of {} operations, {:.0f}/s{}", terminal_ ? kEraseLine : "", name_, done, operations_,
             static_cast<double>(done) / SecondsAt(now_ns), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

Histogram::Snapshot Phase::LatenciesOf(OperationKind kind) const {
  Histogram::Snapshot sum;
  for (const auto& client : clients_) Add(client->latencies()[static_cast<size_t>(kind)].Take(), &sum);
  return sum;
}

Histogram::Snapshot Phase::AllLatencies() const {
  Histogram::Snapshot sum;
  for (const OperationKind kind : kOperationKinds) Add(LatenciesOf(kind), &sum);
  return sum;
}

Json Phase::Report(int64_t end_ns) const {
  Json latencies = Json::object();
  for (const OperationKind kind : kOperationKinds) {
    const Histogram::Snapshot snapshot = LatenciesOf(kind);
    if (snapshot.count > 0) latencies[std::string(NameOf(kind))] = LatencyJson(snapshot);
  }
  const double seconds = SecondsAt(end_ns);
  return Json{{"phase", name_},
              {"operations", operations_},
              {"seconds", seconds},
              {"throughput", static_cast<double>(operations_) / seconds},
              {"latency_us", std::move(latencies)},
              {"intervals", intervals_}};
}

}  // namespace isozone::ycsb
