#include "sim/input_stream.h"

#include <algorithm>
#include <set>

namespace isozone {

void InputStream::Add(const StoredFile& file) {
  File& added = files_.emplace_back();
  added.places = file.places;
  std::set<ZoneId> zones;
  for (const FilePlace& place : file.places) {
    added.bytes += place.length;
    zones.insert(place.zone);
  }
  added.window = window_.bytes + window_.bytes_of_zone * zones.size();
  bytes_ += added.bytes;
}

int64_t InputStream::Read(DeviceTimes& times, int64_t now_ns, uint64_t bytes, uint64_t& read_bytes) {
  int64_t ready_ns = now_ns;
  while (bytes > 0 && next_ < files_.size()) {
    if (pending_.empty()) StartWindow(times, now_ns, read_bytes);
    if (pending_.size() == 1 && window_.ahead) StartWindow(times, now_ns, read_bytes);
    const Pending& front = pending_.front();
    const uint64_t part = std::min(bytes, front.end - done_);
    ready_ns = std::max(ready_ns, front.ready_ns);
    bytes -= part;
    done_ += part;
    if (done_ == front.end) pending_.pop_front();
    if (done_ < files_[next_].bytes) continue;
    ++next_;
    done_ = asked_ = 0;
  }
  return ready_ns;
}

void InputStream::StartWindow(DeviceTimes& times, int64_t now_ns, uint64_t& read_bytes) {
  const File& file = files_[next_];
  const uint64_t length = std::min(file.window, file.bytes - asked_);
  if (length == 0) return;
  const double share = static_cast<double>(length) / static_cast<double>(file.bytes);
  int64_t ready_ns = now_ns;
  for (const FilePlace& place : file.places) {
    const auto part = static_cast<uint64_t>(share * static_cast<double>(place.length));
    ready_ns = std::max(ready_ns, times.Read(now_ns, place.zone, part));
  }
  asked_ += length;
  read_bytes += length;
  pending_.push_back({asked_, ready_ns});
}

}  // namespace isozone
