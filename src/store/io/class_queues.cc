#include "store/io/class_queues.h"

namespace isozone {

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
