// OpenWriters: the writers of a mount that have memory which outlives the process, and the logs that are open for
// writing. It does two things for them.
//
// Order. Logs of one directory and lifetime, such as the WALs of a database, reach the device in the order in which
// they were made: nothing of a log goes there before the ends of those made before it are durable. So what a power cut
// leaves of them is a prefix of what was appended, and never the end of one log without that of the log before it.
//
//   log 1   [ durable ........ )[ not durable )
//   log 2                                      [ stays in memory until log 1 is durable )
//
// Writing. A thread gives the units that appends have filled to the device, so that nobody who appends waits for it. It
// begins when it is woken: by a full unit, by the end of a write, or because memory is short, which makes it write out
// units that are not full as well. What nobody syncs, names included, is made durable once it is between kWriteBackNs
// and twice that old, because kept memory does not outlive the boot.
//
// Lock order: mu_ is taken alone; the writers are called without it. A writer that is being used by another thread is
// not taken out of the list before that thread is done with it.
//
// Thread safety: any thread may call any method.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "store/metadata/inode_id.h"
#include "store/zone/lifetime.h"

namespace isozone {

// OpenWriter: a writer, as OpenWriters sees it.
class OpenWriter {
 public:
  virtual ~OpenWriter() = default;
  // Returns whether everything appended so far is durable.
  virtual bool is_durable() const = 0;
  // Makes everything appended so far durable.
  virtual Status SaveAll() = 0;
  // Gives full units, and with `all` also the others, to the device as far as it takes them. Gives up the memory of
  // units that the device has.
  virtual void Advance(bool all) = 0;
};

class OpenWriters {
 public:
  // The time for which Linux leaves dirty pages in memory before it writes them back, by default.
  static constexpr int64_t kWriteBackNs = 5'000'000'000;

  // Logs with equal values reach the device in the order in which they were made. A writer of no log has none.
  struct Order {
    InodeId directory;
    Lifetime lifetime = Lifetime::kNotSet;
    auto operator<=>(const Order&) const = default;
  };

  OpenWriters() = default;
  ~OpenWriters() { Stop(); }
  OpenWriters(const OpenWriters&) = delete;
  OpenWriters& operator=(const OpenWriters&) = delete;

  // The work of the thread for the memory that outlives the process, and for the metadata.
  struct Work {
    std::function<bool()> is_memory_short;  // returns whether somebody waits for memory
    std::function<bool()> prepare_memory;   // makes some memory ready for use; returns false if all of it is
    std::function<void()> save_metadata;    // begins to make the metadata durable as it is
  };
  // Starts the thread. Fails with kIoError if the system has none.
  Status Start(Clock& clock, Work work);
  // Ends the thread, if it was started. After that nothing is written unless somebody asks for it.
  void Stop();

  struct Entry {
    OpenWriter* writer = nullptr;
    std::optional<Order> order;  // empty: it is no log
    InodeId inode;
    int users = 0;
    bool was_pending = false;  // at its last look, the thread found something that is not durable
  };
  // The place of a writer that was added; empty: none was.
  using Place = std::optional<std::list<Entry>::iterator>;

  // Adds `writer` of the file `inode`, until Remove. `order` is null if the file is no log.
  Place Add(OpenWriter& writer, InodeId inode, const Order* order);
  // Takes the writer out. Waits until no thread uses it here.
  void Remove(Place& place);

  // Makes durable what was appended to the logs that come before this one. After an error, nothing of this log may go
  // to the device.
  Status SaveEarlier(const Place& place);
  // Returns whether some log comes after this one.
  bool HasLater(const Place& place);

  // Makes the thread look after all writers.
  void Wake();

 private:
  void Run();
  // Calls every writer; earlier logs come before later ones.
  void AdvanceAll(bool all) ISOZONE_REQUIRES(mu_);
  void SaveOverdue() ISOZONE_REQUIRES(mu_);
  template <typename Call>
  auto Use(Entry& entry, Call call) ISOZONE_REQUIRES(mu_);

  Mutex mu_;
  CondVar wake_;                                      // wakes the thread
  CondVar released_;                                  // signalled when a writer is no longer used
  std::list<Entry> entries_ ISOZONE_GUARDED_BY(mu_);  // by order, then by inode
  bool woken_ ISOZONE_GUARDED_BY(mu_) = false;
  bool stopping_ ISOZONE_GUARDED_BY(mu_) = false;
  // Set by Start.
  Clock* clock_ = nullptr;
  Work work_;
  std::thread thread_;
};

}  // namespace isozone
