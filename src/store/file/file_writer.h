// BufferedWriter: the writer behind FileWriter, with units of memory in front of a WriteSink. Appends fill a unit. When
// it is full, or at a Sync, the sink is given it and writes it to the device, and another unit is filled. The sink
// limits how many units it has before they are finished.
//
//   file    [ on the device ][ given | given | full | full | filling )
//             extents          pieces of memory, until all before them are finished
//
// Appended data is readable at once through every handle, because OpenFile knows the pieces of memory.
//
// A unit in kept memory (store/kept) publishes each append, which so outlives the process. When it is full, it is left
// to the thread of DataPath::writers, so an Append waits only if that memory is short. A unit in other memory is
// given to the sink when it is full, and the Append waits if the sink has as many as it takes. Units of logs and small
// files lie in kept memory, if the mount has any. So do those of other files that are appended to in small pieces, as
// long as there is room: the records of a program, but not a table that RocksDB writes. If the mount has none, a Flush
// of a log writes to the device.
//
// Whoever uses the sink does so without mu_, one thread at a time; a completion only reports that it came. Errors
// latch: after a failed write, every call returns that error, and data that was not written stays readable from memory
// until the writer is destroyed.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/file/open_writers.h"
#include "store/file/write_sink.h"
#include "store/file_system.h"

namespace isozone {

class BufferedWriter final : public FileWriter, public OpenWriter {
 public:
  struct Options {
    size_t unit_size = 0;                // bytes, whole blocks
    bool kept = false;                   // all its units lie in the kept memory of the mount
    std::optional<InodeId> directory{};  // of a log: its directory; of others none
  };
  // The caller must have set has_writer of `file`, under the namespace lock. `data` is the class of the sink.
  BufferedWriter(std::shared_ptr<DataPath> data_path, std::shared_ptr<Catalog> catalog, std::shared_ptr<OpenFile> file,
                 std::unique_ptr<WriteSink> sink, DataClass data, const Options& options);
  ~BufferedWriter() override;

  Status Append(std::span<const std::byte> data) override;
  Status Flush() override;
  Status Sync() override;
  Status WriteOut() override;
  Status Truncate(uint64_t size) override;
  Status Close() override;
  uint64_t size() const override { return file_->size(); }
  void SetLifetime(Lifetime lifetime) override;
  void SetLevel(int8_t level) override;
  void SetIoClass(IoClass io_class) override;

  // --- OpenWriter ---
  bool is_durable() const override;
  Status SaveAll() override;
  void Advance(bool all) override;

 private:
  // Longest append that counts as small: RocksDB gathers more before it appends to a table.
  static constexpr size_t kSmallAppend = 16 * kKiB;

  // The point until which a call waits for the data that it writes out: until the sink has been given it, has started
  // to write it, has written it, or has made it durable.
  enum class Wait : uint8_t { kForPlace, kForStart, kForDevice, kForDurability };

  Status CheckUsable() const ISOZONE_REQUIRES(mu_);
  void WaitForSink() ISOZONE_REQUIRES(mu_);
  // Runs `use`, which uses sink_, without mu_, after all earlier uses have ended. Its error latches.
  Status WithSink(const std::function<Status()>& use) ISOZONE_REQUIRES(mu_);
  // Gives the sink all units, the one that is being filled included, and waits as `wait` says.
  Status WriteOutLocked(Wait wait) ISOZONE_REQUIRES(mu_);
  Status Extend(uint64_t size);
  // Cuts off what is on the device, but could not be told to the metadata: it would not be there after a mount. (The
  // end of a log is found in its frames.)
  void DropUnknown() ISOZONE_REQUIRES(catalog_->namespace_mutex);
  // Returns `status`. If it is an error, every later call returns it.
  Status Latched(Status status) ISOZONE_REQUIRES(mu_);

  // --- Units ---
  // Begins a unit at the end of the file, for an append of `bytes`. If it must be in kept memory, and that is short,
  // waits without mu_.
  Status BeginUnit(size_t bytes) ISOZONE_REQUIRES(mu_);
  // Takes kept memory for the unit. If there is none, waits for it, or, if the unit can be without, leaves it without.
  Status TakeKeptMemory() ISOZONE_REQUIRES(mu_);
  // Returns whether an append of `bytes` begins a unit in kept memory.
  bool IsKept(size_t bytes) const {
    return options_.kept || (bytes <= kSmallAppend && data_path_->kept != nullptr && !options_.directory);
  }
  // Appends `data`, which must fit, to the unit.
  void Fill(std::span<const std::byte> data) ISOZONE_REQUIRES(mu_);
  // Queues the unit that is being filled for the sink, if it is not empty.
  void EndUnit() ISOZONE_REQUIRES(mu_);
  // Tells the file where its bytes are: `written` on the device, the rest in units.
  void ShowPieces(std::span<const FileExtent> written) ISOZONE_REQUIRES(mu_);
  // Moves units out of kept memory after an error, so that others find room there.
  void GiveUpKept() ISOZONE_REQUIRES(mu_);

  // --- Called by the thread that uses the sink, without mu_ ---
  // Gives the sink the next `units`, and finishes as far as `wait` says.
  Status GiveAll(size_t units, Wait wait) ISOZONE_EXCLUDES(mu_);
  // Gives the sink as many units as it takes without waiting, and finishes those that are done.
  Status GiveSome(bool start) ISOZONE_EXCLUDES(mu_);
  Status GiveNext(bool durable) ISOZONE_EXCLUDES(mu_);
  bool HasToGive() ISOZONE_EXCLUDES(mu_);
  Status FinishOldest() ISOZONE_EXCLUDES(mu_);
  // Makes what was finished known to the metadata, so that a kill does not take it any more. Gives up its memory.
  Status MakeKnown() ISOZONE_EXCLUDES(mu_);

  // The mount lives as long as either of these.
  const std::shared_ptr<DataPath> data_path_;
  const std::shared_ptr<Catalog> catalog_;
  std::shared_ptr<OpenFile> file_;
  const size_t header_size_;
  const Options options_;
  OpenWriters::Place place_;  // of a log, or of a file that has had a unit in kept memory; until it is closed
  std::atomic<bool> is_user_log_{false};   // its appends are paced
  std::atomic<uint64_t> durable_size_{0};  // bytes of the file that are known to be durable

  Mutex mu_;
  CondVar sink_free_;
  bool sink_used_ ISOZONE_GUARDED_BY(mu_) = false;  // a thread uses sink_ without mu_
  bool closed_ ISOZONE_GUARDED_BY(mu_) = false;
  Status failure_ ISOZONE_GUARDED_BY(mu_);
  // Units that the sink was given, and behind them full ones; in file order, addresses stay.
  std::deque<WriteUnit> units_ ISOZONE_GUARDED_BY(mu_);
  std::atomic<size_t> given_{0};  // so many units_ the sink has; changed under mu_ by the thread that uses the sink
  WriteUnit filling_ ISOZONE_GUARDED_BY(mu_);
  size_t unit_size_ ISOZONE_GUARDED_BY(mu_);  // bytes; of the next unit
  // The sink is told these when it is used next.
  DataClass data_ ISOZONE_GUARDED_BY(mu_);
  IoClass io_class_ ISOZONE_GUARDED_BY(mu_) = IoClass::kOther;

  // Used by the thread that set sink_used_, or by one that holds mu_ while it is not set.
  std::unique_ptr<WriteSink> sink_;
  std::vector<WriteUnit> finished_;  // on the device, with memory that MakeKnown gives up
};

}  // namespace isozone
