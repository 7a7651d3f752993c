#include "store/file/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/latch.h"

namespace isozone {

// Thread safety: any thread may call any method.
class ReadAhead::Window {
 public:
  // `memory` was taken from DataPath::read_ahead already.
  Window(DataPath& data_path, AlignedBuffer memory, uint64_t offset, size_t length, IoClass io_class)
      : data_path_(data_path), memory_(std::move(memory)) {
    read_.offset = offset;
    read_.buffer = memory_.span().first(length);
    read_.io_class = io_class;
    latch_.Expect(read_);
  }
  // Waits until it is read.
  ~Window() {
    latch_.Wait();
    data_path_.read_ahead.Give(memory_.size());
    data_path_.buffers.Give(std::move(memory_));
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  uint64_t begin() const { return read_.offset; }
  uint64_t end() const { return read_.offset + read_.buffer.size(); }
  bool has(uint64_t offset) const { return read_.offset <= offset && offset < end(); }
  FileRead& read() { return read_; }

  // Waits until it is read. Returns how much was copied: nothing after an error, or behind the end of the file.
  size_t Copy(uint64_t offset, std::span<std::byte> buffer) {
    if (!is_read_.load(std::memory_order_acquire)) WaitUntilRead();
    const size_t skip = offset - read_.offset;
    if (!read_.status.ok() || read_.bytes_read <= skip) return 0;
    const size_t piece = std::min(buffer.size(), read_.bytes_read - skip);
    std::memcpy(buffer.data(), memory_.data() + skip, piece);
    return piece;
  }

  // Whether all of it was taken, with these bytes, or the callers read for themselves what it could not.
  bool TakeAll(size_t bytes) {
    return taken_.fetch_add(bytes, std::memory_order_relaxed) + bytes >= read_.buffer.size();
  }

 private:
  void WaitUntilRead() {
    const MutexLock lock(mu_);
    latch_.Wait();
    read_.Take();
    is_read_.store(true, std::memory_order_release);
  }

  DataPath& data_path_;
  AlignedBuffer memory_;
  FileRead read_;  // its result may be looked at once is_read_ is set
  std::atomic<bool> is_read_{false};
  std::atomic<size_t> taken_{0};  // bytes
  Mutex mu_;
  Latch latch_ ISOZONE_GUARDED_BY(mu_);
};

ReadAhead::ReadAhead(DataPath& data_path, std::function<void(FileRead&)> read, std::function<uint64_t()> window)
    : data_path_(data_path), read_(std::move(read)), window_(std::move(window)) {}

ReadAhead::~ReadAhead() {
  data_path_.read_ahead.Remove(*this);
  Stop();
}

std::vector<std::shared_ptr<void>> ReadAhead::GiveUp() {
  const MutexLock lock(mu_);
  std::vector<std::shared_ptr<void>> gone(windows_.begin(), windows_.end());
  windows_.clear();
  return gone;
}

size_t ReadAhead::TryRead(uint64_t offset, std::span<std::byte> buffer, IoClass io_class, uint64_t size,
                          uint64_t generation) {
  size_t done = 0;
  while (done < buffer.size()) {
    const uint64_t at = offset + done;
    const std::shared_ptr<Window> window = WindowAt(at, io_class, {size, generation});
    if (window == nullptr) break;
    const auto wanted = buffer.subspan(done, std::min<uint64_t>(buffer.size() - done, window->end() - at));
    const size_t piece = window->Copy(at, wanted);
    if (window->TakeAll(wanted.size())) Drop(window);
    done += piece;
    if (piece < wanted.size()) break;
  }
  data_path_.read_ahead.NoteRead(buffer.size());
  if (done > 0) data_path_.read_ahead.NoteUse(*this);
  if (done < buffer.size()) NoteMiss(offset + buffer.size(), buffer.size() - done);
  return done;
}

std::shared_ptr<ReadAhead::Window> ReadAhead::WindowAt(uint64_t offset, IoClass io_class, const FileState& file) {
  Work work;
  std::shared_ptr<Window> window;
  {
    const MutexLock lock(mu_);
    const bool changed = std::exchange(generation_, file.generation) != file.generation;  // it was cut or overwritten
    if (changed) position_ = kNowhere;  // a file that changes all the time is not read ahead all the time
    window = changed ? nullptr : Find(offset);
    if (changed || (window == nullptr && offset == 0)) work.gone.swap(windows_);
    if (window == nullptr && GoesOnAt(offset)) {
      Add(offset, io_class, file.size, work);
      window = Find(offset);
    }
    if (window != nullptr) missed_ = 0;
    if (window != nullptr && window == windows_.back()) Add(window->end(), io_class, file.size, work);
  }
  for (const std::shared_ptr<Window>& one : work.to_read) read_(one->read());
  if (!work.to_read.empty()) data_path_.read_ahead.Add(*this);
  if (work.found_no_memory) data_path_.read_ahead.Reclaim();
  return window;
}

std::shared_ptr<ReadAhead::Window> ReadAhead::Find(uint64_t offset) const {
  const auto found = std::ranges::find_if(windows_, [&](const auto& window) { return window->has(offset); });
  return found == windows_.end() ? nullptr : *found;
}

bool ReadAhead::GoesOnAt(uint64_t offset) const {
  if (windows_.empty()) return offset == 0 || offset == position_;
  return offset == windows_.back()->end();
}

void ReadAhead::Add(uint64_t offset, IoClass io_class, uint64_t size, Work& work) {
  if (offset >= size) return;
  if (windows_.size() == kMostWindows) {
    work.gone.push_back(std::move(windows_.front()));
    windows_.erase(windows_.begin());
  }
  const uint64_t window = window_();
  if (!data_path_.read_ahead.Take(window)) {
    work.found_no_memory = true;
    return;
  }
  const size_t length = std::min(window, size - offset);
  windows_.push_back(std::make_shared<Window>(data_path_, data_path_.buffers.Take(window), offset, length, io_class));
  work.to_read.push_back(windows_.back());
}

void ReadAhead::Drop(const std::shared_ptr<Window>& window) {
  const MutexLock lock(mu_);
  if (std::erase(windows_, window) > 0 && windows_.empty()) position_ = window->end();
}

void ReadAhead::NoteMiss(uint64_t end, size_t bytes) {
  std::vector<std::shared_ptr<Window>> gone;  // their destructors wait
  const MutexLock lock(mu_);
  position_ = end;
  missed_ += bytes;
  if (windows_.empty()) return;
  const uint64_t held = windows_.back()->end() - windows_.front()->begin();
  if (missed_ >= ReadAheadMemory::kPatience * held) gone.swap(windows_);
}

}  // namespace isozone
