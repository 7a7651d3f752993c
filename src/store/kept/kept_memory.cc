#include "store/kept/kept_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/boot_id.h"
#include "base/crc32c.h"

namespace isozone {
namespace {

// A unit is at most this part of the memory that is free, so that the last of it is shared by all who need some.
constexpr uint64_t kPartOfFree = 8;
// Writers that are slowed down sleep when they owe so much. Shorter sleeps would meet more appends for the same pace,
// and a thread that sleeps wakes up late each time.
constexpr int64_t kLeastSleepNs = 1'000'000;
constexpr int64_t kMostSleepNs = 10'000'000;

// Words that other processes read.
void Store(uint64_t& word, uint64_t value) { std::atomic_ref(word).store(value, std::memory_order_release); }
uint64_t Load(uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }

void SetText(std::span<char> out, const std::string& text) {
  std::memcpy(out.data(), text.data(), std::min(text.size(), out.size() - 1));
}

KeptHeader HeaderOf(uint64_t bytes, const std::string& uuid, uint64_t mount_number, const std::string& boot_id) {
  const KeptLayout layout(bytes);
  const PageProcess self = PageProcess::Self();
  KeptHeader header{};
  header.file = {kKeptMagic, kKeptVersion, self.pid, bytes, self.started, self.pid_namespace};
  header.mount_number = mount_number;
  header.ring_bytes = layout.ring_bytes;
  header.granules = layout.granules;
  SetText(header.uuid, uuid);
  SetText(header.boot_id, boot_id);
  return header;
}

}  // namespace

PageOwner KeptMemoryOwner(PageOwner device) {
  device.page_name += "-kept";
  return device;
}

uint32_t KeptSeed(uint32_t uuid_seed, uint64_t inode, uint64_t file_offset) {
  return Crc32c(&file_offset, sizeof(file_offset), Crc32c(&inode, sizeof(inode), uuid_seed));
}

uint32_t KeptRecordSeed(uint64_t mount_number, uint64_t sequence) {
  return Crc32c(&sequence, sizeof(sequence), Crc32c(&mount_number, sizeof(mount_number)));
}

// ---------------------------------------------------------------------------------------------------------------------
// The memory of one unit
// ---------------------------------------------------------------------------------------------------------------------

KeptUnitMemory::KeptUnitMemory(KeptUnitMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      granule_(other.granule_),
      full_(other.full_),
      span_(std::exchange(other.span_, {})) {}

KeptUnitMemory& KeptUnitMemory::operator=(KeptUnitMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(granule_, other.granule_);
  std::swap(full_, other.full_);
  std::swap(span_, other.span_);
  return *this;
}

KeptUnitMemory::~KeptUnitMemory() {
  if (memory_ != nullptr) memory_->GiveUp(granule_, span_.size(), full_);
}

void KeptUnitMemory::NoteFull() {
  if (memory_ == nullptr || std::exchange(full_, true)) return;
  memory_->NoteFull(span_.size());
}

void KeptUnitMemory::Publish(uint64_t length, uint32_t crc) {
  Store(memory_->UnitAt(granule_).published, PackPublished(length, crc));
}

// ---------------------------------------------------------------------------------------------------------------------
// Units
// ---------------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<KeptMemory>> KeptMemory::Make(const PageOwner& device, const std::string& directory,
                                                     uint64_t bytes, const std::string& uuid, uint64_t mount_number,
                                                     Clock& clock) {
  ISOZONE_ASSIGN_OR_RETURN(const std::string boot_id, BootId());
  bytes = RoundDown(std::clamp(bytes, kKeptMemoryMin, kKeptMemoryMax), 4 * kKiB);
  ISOZONE_ASSIGN_OR_RETURN(auto file, PageFile::Make(KeptMemoryOwner(device), bytes, directory));
  return std::unique_ptr<KeptMemory>(
      new KeptMemory(std::move(file), HeaderOf(bytes, uuid, mount_number, boot_id), clock));
}

KeptMemory::KeptMemory(std::unique_ptr<PageFile> file, const KeptHeader& header, Clock& clock)
    : file_(std::move(file)),
      bytes_(reinterpret_cast<std::byte*>(file_->words().data())),
      layout_(header.file.bytes),
      mount_number_(header.mount_number),
      free_of_pace_(layout_.granules * kKeptGranule / 2),
      clock_(clock),
      taken_(layout_.granules) {
  std::memcpy(bytes_, &header, sizeof(header));
}

KeptMemory::~KeptMemory() { file_->LeaveName(); }

bool KeptMemory::Prepare() {
#ifdef MADV_POPULATE_WRITE
  const uint64_t all = file_->words().size_bytes();
  const uint64_t bytes = std::min<uint64_t>(kMiB, all - prepared_);
  if (bytes == 0 || ::madvise(bytes_ + prepared_, bytes, MADV_POPULATE_WRITE) != 0) return false;
  prepared_ += bytes;
  return prepared_ < all;
#else
  return false;
#endif
}

KeptUnit& KeptMemory::UnitAt(size_t granule) const {
  return *reinterpret_cast<KeptUnit*>(bytes_ + KeptLayout::kUnits + granule * sizeof(KeptUnit));
}

std::span<std::byte> KeptMemory::MemoryOf(size_t granule, size_t bytes) const {
  return {bytes_ + layout_.memory + granule * kKeptGranule, bytes};
}

std::optional<size_t> KeptMemory::FindFree(size_t granules) const {
  size_t run = 0;
  for (size_t i = 0; i < taken_.size(); ++i) {
    run = taken_[i] ? 0 : run + 1;
    if (run == granules) return i + 1 - granules;
  }
  return std::nullopt;
}

std::optional<KeptUnitMemory> KeptMemory::TakeLocked(uint64_t inode, uint64_t file_offset, size_t header, size_t most) {
  const uint64_t free = memory_bytes() - used_.load(std::memory_order_relaxed);
  size_t bytes = std::max(std::min<uint64_t>(most, RoundDown(free / kPartOfFree, kKeptGranule)),
                          std::min<uint64_t>(most, kKeptGranule));
  // The lowest place that fits, so that the same memory is used again while it is in the processor's caches.
  std::optional<size_t> first = FindFree(RoundUp(bytes, kKeptGranule) / kKeptGranule);
  while (!first && bytes > kKeptGranule) {
    bytes = RoundUp(bytes / 2, kKeptGranule);
    first = FindFree(bytes / kKeptGranule);
  }
  if (!first) return std::nullopt;
  const size_t granules = RoundUp(bytes, kKeptGranule) / kKeptGranule;
  std::fill_n(taken_.begin() + static_cast<ptrdiff_t>(*first), granules, true);
  used_.fetch_add(granules * kKeptGranule, std::memory_order_relaxed);

  KeptUnit& unit = UnitAt(*first);
  const uint64_t sequence = unit.sequence;
  Store(unit.sequence, sequence + 1);
  Store(unit.inode, inode);
  Store(unit.file_offset, file_offset);
  Store(unit.payload_at, header);
  Store(unit.bytes, bytes);
  Store(unit.published, 0);
  Store(unit.sequence, sequence + 2);
  KeptUnitMemory memory;
  memory.memory_ = this;
  memory.granule_ = *first;
  memory.span_ = MemoryOf(*first, bytes);
  return memory;
}

std::optional<KeptUnitMemory> KeptMemory::TryTake(uint64_t inode, uint64_t file_offset, size_t header, size_t most) {
  const MutexLock lock(mu_);
  return TakeLocked(inode, file_offset, header, most);
}

KeptUnitMemory KeptMemory::Take(uint64_t inode, uint64_t file_offset, size_t header, size_t most) {
  awaiting_.fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mu_);
  std::optional<KeptUnitMemory> memory;
  while (!(memory = TakeLocked(inode, file_offset, header, most))) {
    const uint64_t given_up = given_up_count_;
    if (on_awaited_) {
      const MutexUnlock unlock(mu_);
      on_awaited_();
    }
    while (given_up_count_ == given_up) given_up_.Wait(mu_);
  }
  awaiting_.fetch_sub(1, std::memory_order_relaxed);
  waits_.fetch_add(1, std::memory_order_relaxed);
  return *std::move(memory);
}

void KeptMemory::NoteFull(size_t bytes) {
  const uint64_t added = RoundUp(bytes, kKeptGranule);
  const MutexLock lock(mu_);
  const uint64_t full = full_.fetch_add(added, std::memory_order_relaxed) + added;
  if (full > free_of_pace_ && short_since_ns_ == 0) short_since_ns_ = clock_.NowNs();
}

void KeptMemory::GiveUp(size_t granule, size_t bytes, bool full) {
  const size_t granules = RoundUp(bytes, kKeptGranule) / kKeptGranule;
  const MutexLock lock(mu_);
  KeptUnit& unit = UnitAt(granule);
  const uint64_t sequence = unit.sequence;
  Store(unit.sequence, sequence + 1);
  Store(unit.inode, 0);
  Store(unit.published, 0);
  Store(unit.sequence, sequence + 2);
  std::fill_n(taken_.begin() + static_cast<ptrdiff_t>(granule), granules, false);
  used_.fetch_sub(granules * kKeptGranule, std::memory_order_relaxed);
  ++given_up_count_;
  given_up_.SignalAll();
  if (!full) return;
  given_up_since_ += granules * kKeptGranule;
  const uint64_t left = full_.fetch_sub(granules * kKeptGranule, std::memory_order_relaxed) - granules * kKeptGranule;
  if (left <= free_of_pace_) short_since_ns_ = static_cast<int64_t>(given_up_since_ = 0);
}

// Between half and all of the memory, a writer pays for each byte a part of the time that the device takes for it: none
// of it at half, and all of it where nothing is left. So the pace of writers meets that of the device in between.
void KeptMemory::SlowDown(uint64_t bytes) {
  const MutexLock lock(mu_);
  const uint64_t full = full_.load(std::memory_order_relaxed);
  if (full <= free_of_pace_ || given_up_since_ == 0) return;
  const double part = static_cast<double>(full - free_of_pace_) / static_cast<double>(memory_bytes() - free_of_pace_);
  const int64_t now = clock_.NowNs();
  const double ns_per_byte = static_cast<double>(now - short_since_ns_) / static_cast<double>(given_up_since_);
  owed_ns_ += static_cast<int64_t>(part * ns_per_byte * static_cast<double>(bytes));
  if (owed_ns_ < kLeastSleepNs) return;
  const int64_t until = now + std::min(std::exchange(owed_ns_, 0), kMostSleepNs);
  while (clock_.NowNs() < until) clock_.WaitUntil(given_up_, mu_, until);
  waits_.fetch_add(1, std::memory_order_relaxed);
}

KeptMemoryStats KeptMemory::Stats() const {
  return {memory_bytes(), used_.load(std::memory_order_relaxed), waits_.load(std::memory_order_relaxed)};
}

// ---------------------------------------------------------------------------------------------------------------------
// Records
// ---------------------------------------------------------------------------------------------------------------------

void KeptMemory::CopyIntoRing(uint64_t position, std::span<const std::byte> bytes) {
  const uint64_t at = position % layout_.ring_bytes;
  const size_t first = std::min<uint64_t>(bytes.size(), layout_.ring_bytes - at);
  std::memcpy(bytes_ + layout_.ring + at, bytes.data(), first);
  std::memcpy(bytes_ + layout_.ring, bytes.data() + first, bytes.size() - first);
}

bool KeptMemory::KeepRecord(uint64_t sequence, std::span<const std::byte> body) {
  const MutexLock lock(ring_mu_);
  if (kept_sequence_.load(std::memory_order_relaxed) + 1 != sequence) {
    // There was no room for one before it: until that is durable, nothing can be kept.
    wants_records_durable_.store(true, std::memory_order_relaxed);
    return false;
  }
  auto& journal = *reinterpret_cast<KeptJournal*>(bytes_ + KeptLayout::kJournal);
  const uint64_t end = RoundUp(ring_end_ + sizeof(KeptRecord) + body.size(), sizeof(uint64_t));
  const uint64_t used = end - Load(journal.begin);
  if (used > layout_.ring_bytes / 2) wants_records_durable_.store(true, std::memory_order_relaxed);
  if (used > layout_.ring_bytes) return false;
  const KeptRecord record{sequence, static_cast<uint32_t>(body.size()),
                          Crc32c(body, KeptRecordSeed(mount_number_, sequence))};
  CopyIntoRing(ring_end_, std::as_bytes(std::span(&record, 1)));
  CopyIntoRing(ring_end_ + sizeof(record), body);
  ring_end_ = end;
  Store(journal.end, end);
  records_.push_back({sequence, end});
  kept_sequence_.store(sequence, std::memory_order_release);
  return true;
}

void KeptMemory::ForgetRecords(uint64_t sequence) {
  const MutexLock lock(ring_mu_);
  auto& journal = *reinterpret_cast<KeptJournal*>(bytes_ + KeptLayout::kJournal);
  while (!records_.empty() && records_.front().sequence <= sequence) {
    Store(journal.begin, records_.front().end);
    records_.pop_front();
  }
  if (Load(journal.durable) < sequence) Store(journal.durable, sequence);
  if (ring_end_ - Load(journal.begin) <= layout_.ring_bytes / 2) {
    wants_records_durable_.store(false, std::memory_order_relaxed);
  }
  if (kept_sequence_.load(std::memory_order_relaxed) < sequence) {
    kept_sequence_.store(sequence, std::memory_order_release);
  }
}

}  // namespace isozone
