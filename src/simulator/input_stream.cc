#include "simulator/input_stream.h"

#include <algorithm>
#include <map>

#include "store/zone/lane_choice.h"

namespace isozone {

void InputStream::Add(const StoredFile& file) {
  std::map<ZoneId, uint64_t> bytes_of_zone;
  for (const FilePlace& place : file.places) bytes_of_zone[place.zone] += place.length;
  File added;
  for (const auto& [zone, bytes] : bytes_of_zone) {
    added.parts.push_back({zone, bytes});
    added.bytes += bytes;
  }
  if (added.bytes == 0) return;
  const auto zones = static_cast<uint32_t>(added.parts.size());
  added.window =
      windows_.bytes > 0 ? windows_.bytes : ReadWindowOf(std::min(zones, windows_.width), windows_.unit_bytes);
  bytes_ += added.bytes;
  files_.push_back(std::move(added));
}

int64_t InputStream::Read(DeviceTimes& times, int64_t now_ns, uint64_t bytes, uint64_t& read_bytes) {
  const uint64_t wanted = bytes;
  int64_t ready_ns = now_ns;
  while (bytes > 0 && next_ < files_.size()) {
    if (pending_.empty()) StartWindow(times, windows_.ahead ? now_ns : ready_ns, read_bytes);
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
  while (windows_.ahead && (pending_.size() < 2 || asked_ - done_ < wanted)) {
    if (done_ == 0 || !StartWindow(times, now_ns, read_bytes)) break;  // a file that is not begun is not read ahead
  }
  return ready_ns;
}

bool InputStream::StartWindow(DeviceTimes& times, int64_t now_ns, uint64_t& read_bytes) {
  if (next_ == files_.size()) return false;
  const File& file = files_[next_];
  const uint64_t length = std::min(file.window, file.bytes - asked_);
  if (length == 0) return false;
  const double share = static_cast<double>(length) / static_cast<double>(file.bytes);
  int64_t ready_ns = now_ns;
  for (const Part& part : file.parts) {
    const auto bytes = static_cast<uint64_t>(share * static_cast<double>(part.bytes));
    ready_ns = std::max(ready_ns, times.Read(now_ns, part.zone, bytes));
  }
  asked_ += length;
  read_bytes += length;
  pending_.push_back({asked_, ready_ns});
  return true;
}

}  // namespace isozone
