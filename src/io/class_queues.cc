#include "io/class_queues.h"

#include <charconv>
#include <numeric>

#include <fmt/format.h>

namespace isozone {
namespace {

Result<int> ClassNamed(std::string_view name) {
  std::string known;
  for (int c = 0; c < kIoClassCount; ++c) {
    const std::string_view candidate = IoClassName(static_cast<IoClass>(c));
    if (candidate == name) return c;
    known += fmt::format("{}{}", c == 0 ? "" : ", ", candidate);
  }
  return Status::InvalidArgument(fmt::format("unknown I/O class \"{}\"; known: {}", name, known));
}

}  // namespace

Result<IoShares> IoShares::Parse(std::string_view text) {
  IoShares shares;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t colon = item.find(':');
    const std::string_view number = colon == std::string_view::npos ? std::string_view() : item.substr(colon + 1);
    ISOZONE_ASSIGN_OR_RETURN(const int c, ClassNamed(item.substr(0, colon)));
    uint8_t percent = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
    if (number.empty() || error != std::errc() || end != number.data() + number.size() || percent > 100) {
      return Status::InvalidArgument(fmt::format("\"{}\" is not a share; write CLASS:PERCENT, such as flush:30", item));
    }
    shares.percent[static_cast<size_t>(c)] = percent;
  }
  const int sum = std::accumulate(shares.percent.begin(), shares.percent.end(), 0);
  if (sum > 100) {
    return Status::InvalidArgument(fmt::format(
        "the shares of all I/O classes, the unnamed ones' defaults included, are {} percent; at most 100", sum));
  }
  return shares;
}

std::string IoShares::ToString() const {
  std::string text;
  for (int c = 0; c < kIoClassCount; ++c) {
    text += fmt::format("{}{}:{}", c == 0 ? "" : ",", IoClassName(static_cast<IoClass>(c)),
                        percent[static_cast<size_t>(c)]);
  }
  return text;
}

void ClassQueues::PushBack(Waiting& request) {
  request.behind = nullptr;
  Queue& queue = QueueOf(request.io_class);
  (queue.first == nullptr ? queue.first : queue.last->behind) = &request;
  queue.last = &request;
  if (request.keeps_gap) ++keeping_gap_;
}

void ClassQueues::PushFront(Waiting& request) {
  Queue& queue = QueueOf(request.io_class);
  request.behind = queue.first;
  if (queue.first == nullptr) queue.last = &request;
  queue.first = &request;
  if (request.keeps_gap) ++keeping_gap_;
}

IoClassSet ClassQueues::KeepingGaps() const {
  IoClassSet keeping;
  if (keeping_gap_ == 0) return keeping;
  for (size_t c = 0; c < queues_.size(); ++c) keeping[c] = queues_[c].first != nullptr && queues_[c].first->keeps_gap;
  return keeping;
}

ClassQueues::Waiting* ClassQueues::Next(bool background_too, IoClassSet gaps) {
  const IoClassSet left_out = gaps.none() ? gaps : gaps & KeepingGaps();
  Queue* next = nullptr;
  for (int c = 0; c < kIoClassCount; ++c) {
    if (!background_too && IsBackground(static_cast<IoClass>(c))) break;
    Queue& queue = queues_[static_cast<size_t>(c)];
    if (queue.first == nullptr || left_out[static_cast<size_t>(c)]) continue;
    if (next == nullptr) next = &queue;
    if (queue.saved < queue.first->cost * 100) continue;
    next = &queue;
    break;
  }
  if (next == nullptr) return nullptr;
  Waiting& request = *next->first;
  for (size_t c = 0; c < queues_.size(); ++c) {
    if (queues_[c].first != nullptr && !left_out[c]) queues_[c].saved += request.cost * shares_.percent[c];
  }
  next->saved -= std::min(next->saved, request.cost * 100);
  next->first = request.behind;
  if (request.keeps_gap) --keeping_gap_;
  return &request;
}

}  // namespace isozone
