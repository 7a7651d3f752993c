#include "store/io/class_queues.h"

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
  Queue& queue = QueueOf(request);
  (queue.first == nullptr ? queue.first : queue.last->behind) = &request;
  queue.last = &request;
}

void ClassQueues::PushFront(Waiting& request) {
  Queue& queue = QueueOf(request);
  request.behind = queue.first;
  if (queue.first == nullptr) queue.last = &request;
  queue.first = &request;
}

IoClassSet ClassQueues::KeepingGaps() const {
  IoClassSet keeping;
  for (size_t c = 0; c < classes_.size(); ++c) keeping[c] = classes_[c].keeping_gap.first != nullptr;
  return keeping;
}

ClassQueues::Queue* ClassQueues::OfClass::Next(bool gap) {
  if (at_once.first != nullptr) return &at_once;
  return gap || keeping_gap.first == nullptr ? nullptr : &keeping_gap;
}

ClassQueues::Waiting* ClassQueues::Next(bool background_too, IoClassSet gaps) {
  OfClass* next = nullptr;
  Queue* queue = nullptr;
  for (int c = 0; c < kIoClassCount; ++c) {
    if (!background_too && IsBackground(static_cast<IoClass>(c))) break;
    OfClass& candidate = classes_[static_cast<size_t>(c)];
    Queue* const first = candidate.Next(gaps[static_cast<size_t>(c)]);
    if (first == nullptr) continue;
    const bool saved_enough = candidate.saved >= first->first->cost * 100;
    if (next != nullptr && !saved_enough) continue;
    next = &candidate;
    queue = first;
    if (saved_enough) break;
  }
  if (next == nullptr) return nullptr;
  Waiting& request = *queue->first;
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (classes_[c].Next(gaps[c]) != nullptr) classes_[c].saved += request.cost * shares_.percent[c];
  }
  next->saved -= std::min(next->saved, request.cost * 100);
  queue->first = request.behind;
  return &request;
}

}  // namespace isozone
