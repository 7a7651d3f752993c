// The requests that bench/passthrough_path times: those of a ZNS namespace, by block device and by NVMe passthrough.
//
//   isozone_passthrough_path WAY read|write|append LENGTH DEPTH ZONES COUNT DEVICE
//
// DEVICE is the block device, such as /dev/nvme0n1. WAY is how a request reaches it:
//
//   ring         io_uring and the block device, with direct I/O
//   call         pread and pwrite of the block device, with direct I/O; DEPTH is 1
//   passthrough  io_uring and the character device beside it, /dev/ng0n1, with commands of NVMe (Linux 5.19)
//   ioctl        the same commands by an ioctl of the character device; DEPTH is 1
//
// Resets the device and writes what is to be read. Then it makes COUNT requests of LENGTH bytes, DEPTH of them at a
// time and each by a system call of its own: reads at random, or writes and appends in ZONES zones at a time. Writes
// have one in flight in each zone, so ZONES is DEPTH; only passthrough appends. Prints the nanoseconds of a request in
// which the only processor was not idle. Destroys what is on the device.
#include <fcntl.h>
#include <liburing.h>
#include <linux/blkzoned.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/random.h"
#include "base/status.h"
#include "idle_filler.h"

namespace isozone {
namespace {

constexpr uint64_t kReadRange = 64 * kMiB;  // bytes at the beginning of the device, from which is read
constexpr uint64_t kKernelSector = 512;     // bytes
constexpr uint64_t kLargePage = 2 * kMiB;
constexpr int kTheFile = 0;  // the number of the one registered file

// NVM and Zoned Namespace Command Sets: opcodes.
enum class Opcode : uint8_t { kWrite = 0x01, kRead = 0x02, kAppend = 0x7D };

struct Wanted {
  std::string way;
  Opcode op = Opcode::kRead;
  uint64_t length = 0;  // bytes
  uint64_t depth = 0;   // requests in flight
  uint64_t zones = 0;   // that are written at a time
  uint64_t count = 0;   // requests
  std::string device;

  bool passes_through() const { return way == "passthrough" || way == "ioctl"; }
  bool rings() const { return way == "ring" || way == "passthrough"; }
};

Status Failed(const std::string& what, int error) { return Status::FromErrno(error, what); }

class Measurement {
 public:
  explicit Measurement(Wanted wanted) : wanted_(std::move(wanted)), next_(wanted_.zones) {}
  ~Measurement() {
    if (ring_.ring_fd >= 0) ::io_uring_queue_exit(&ring_);
  }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  Status Prepare() {
    ISOZONE_RETURN_IF_ERROR(PrepareDevice());
    // In large pages, so that it is not by chance how many segments a request has.
    memory_ = AlignedBuffer(kLargePage + RoundUp(wanted_.depth * wanted_.length, kLargePage));
    const auto address = reinterpret_cast<uint64_t>(memory_.data());
    places_ = memory_.data() + (RoundUp(address, kLargePage) - address);
    (void)::madvise(places_, memory_.size() - kLargePage, MADV_HUGEPAGE);
    std::memset(memory_.data(), 1, memory_.size());
    for (size_t lane = 0; lane < next_.size(); ++lane) next_[lane] = lane * zone_size_;
    if (wanted_.passes_through()) {
      std::string path = wanted_.device;
      file_ = FileDescriptor(::open(path.replace(path.find("nvme"), 4, "ng").c_str(), O_RDWR | O_CLOEXEC));
      if (file_.get() < 0) return Failed(path, errno);
      const int id = ::ioctl(file_.get(), NVME_IOCTL_ID);
      if (id < 0) return Failed("the number of the namespace", errno);
      namespace_ = static_cast<uint32_t>(id);
    }
    return wanted_.rings() ? PrepareRing() : Status::Ok();
  }

  // Makes all requests. Returns the nanoseconds in which the processor was not idle.
  Result<int64_t> Take() {
    const int64_t filled_ns = filler_.FilledNs();
    const int64_t begin_ns = MonotonicNs();
    ISOZONE_RETURN_IF_ERROR(wanted_.rings() ? RunRing() : RunCalls());
    return MonotonicNs() - begin_ns - (filler_.FilledNs() - filled_ns);
  }

 private:
  Status PrepareDevice() {
    file_ = FileDescriptor(::open(wanted_.device.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    if (file_.get() < 0) return Failed(wanted_.device, errno);
    uint32_t sectors = 0;
    uint64_t bytes = 0;
    int block = 0;
    if (::ioctl(file_.get(), BLKGETZONESZ, &sectors) != 0 || ::ioctl(file_.get(), BLKGETSIZE64, &bytes) != 0 ||
        ::ioctl(file_.get(), BLKSSZGET, &block) != 0) {
      return Failed("its geometry", errno);
    }
    zone_size_ = sectors * kKernelSector;
    block_size_ = static_cast<uint64_t>(block);
    blk_zone_range all{0, bytes / kKernelSector};
    if (::ioctl(file_.get(), BLKRESETZONE, &all) != 0) return Failed("its reset", errno);
    AlignedBuffer piece(128 * kKiB);
    std::memset(piece.data(), 1, piece.size());
    for (uint64_t at = 0; wanted_.op == Opcode::kRead && at < kReadRange; at += piece.size()) {
      if (::pwrite(file_.get(), piece.data(), piece.size(), static_cast<off_t>(at)) < 0) return Failed("write", errno);
    }
    return Status::Ok();
  }

  Status PrepareRing() {
    const unsigned flags = wanted_.passes_through() ? IORING_SETUP_SQE128 | IORING_SETUP_CQE32 : 0;
    if (const int error = -::io_uring_queue_init(256, &ring_, flags); error != 0) {
      ring_.ring_fd = -1;
      return Failed("io_uring", error);
    }
    const int file = file_.get();
    if (const int error = -::io_uring_register_files(&ring_, &file, 1); error != 0) return Failed("its file", error);
    return Status::Ok();
  }

  // The byte of the device for the next request in this place. Zones hold as much as they are long.
  uint64_t Next(size_t place) {
    if (wanted_.op == Opcode::kRead) return random_.Below(kReadRange / wanted_.length) * wanted_.length;
    uint64_t& next = next_[place % next_.size()];
    const uint64_t at = next;
    next += wanted_.length;
    if (next % zone_size_ == 0) next += (next_.size() - 1) * zone_size_;
    return at;
  }

  std::byte* MemoryOf(size_t place) const { return places_ + place * wanted_.length; }

  // Fills in a command of NVMe, which is a nvme_uring_cmd or a nvme_passthru_cmd64, zeroed.
  template <typename Command>
  void Fill(Command& command, size_t place, uint64_t at) {
    if (wanted_.op == Opcode::kAppend) at -= at % zone_size_;
    const uint64_t block = at / block_size_;
    command.opcode = static_cast<uint8_t>(wanted_.op);
    command.nsid = namespace_;
    command.addr = reinterpret_cast<uint64_t>(MemoryOf(place));
    command.data_len = static_cast<uint32_t>(wanted_.length);
    command.cdw10 = static_cast<uint32_t>(block);
    command.cdw11 = static_cast<uint32_t>(block >> 32);
    command.cdw12 = static_cast<uint32_t>(wanted_.length / block_size_ - 1);
  }

  Status Start(size_t place) {
    const uint64_t at = Next(place);
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
    const auto length = static_cast<unsigned>(wanted_.length);
    if (wanted_.passes_through()) {
      std::memset(static_cast<void*>(entry), 0, 2 * sizeof(*entry));
      entry->opcode = IORING_OP_URING_CMD;
      entry->fd = kTheFile;
      entry->cmd_op = NVME_URING_CMD_IO;
      Fill(*reinterpret_cast<nvme_uring_cmd*>(entry->cmd), place, at);
    } else if (wanted_.op == Opcode::kRead) {
      ::io_uring_prep_read(entry, kTheFile, MemoryOf(place), length, at);
    } else {
      ::io_uring_prep_write(entry, kTheFile, MemoryOf(place), length, at);
    }
    ::io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
    ::io_uring_sqe_set_data64(entry, place);
    const int submitted = ::io_uring_submit(&ring_);
    return submitted == 1 ? Status::Ok() : Failed("submission", submitted < 0 ? -submitted : EIO);
  }

  Status RunRing() {
    uint64_t left = wanted_.count;
    for (size_t place = 0; place < wanted_.depth; ++place, --left) ISOZONE_RETURN_IF_ERROR(Start(place));
    for (uint64_t to_complete = wanted_.count; to_complete > 0; --to_complete) {
      io_uring_cqe* entry = nullptr;
      if (const int error = -::io_uring_wait_cqe(&ring_, &entry); error != 0) return Failed("completion", error);
      const int result = entry->res;
      const auto place = static_cast<size_t>(::io_uring_cqe_get_data64(entry));
      ::io_uring_cqe_seen(&ring_, entry);
      // A command has the status of NVMe, and 0 is success; a transfer has its bytes.
      if (result != (wanted_.passes_through() ? 0 : static_cast<int>(wanted_.length))) {
        return Status::IoError(fmt::format("a request ended with {}", result));
      }
      if (left == 0) continue;
      --left;
      ISOZONE_RETURN_IF_ERROR(Start(place));
    }
    return Status::Ok();
  }

  Status RunCalls() {
    for (uint64_t i = 0; i < wanted_.count; ++i) {
      const uint64_t at = Next(0);
      ssize_t moved = 0;
      if (wanted_.passes_through()) {
        nvme_passthru_cmd64 command{};
        Fill(command, 0, at);
        moved = ::ioctl(file_.get(), NVME_IOCTL_IO64_CMD, &command);
        if (moved > 0) return Status::IoError(fmt::format("a command ended with {:x}h", moved));
      } else if (wanted_.op == Opcode::kRead) {
        moved = ::pread(file_.get(), places_, wanted_.length, static_cast<off_t>(at));
      } else {
        moved = ::pwrite(file_.get(), places_, wanted_.length, static_cast<off_t>(at));
      }
      if (moved < 0) return Failed("a request", errno);
    }
    return Status::Ok();
  }

  const Wanted wanted_;
  FileDescriptor file_;
  uint32_t namespace_ = 0;
  uint64_t zone_size_ = 0;   // bytes
  uint64_t block_size_ = 0;  // bytes
  AlignedBuffer memory_;
  std::byte* places_ = nullptr;  // in it, one behind the other
  std::vector<uint64_t> next_;   // of each zone that is written, the byte of the device for the next request
  io_uring ring_ = [] {
    io_uring none{};
    none.ring_fd = -1;
    return none;
  }();
  Random random_{1};
  IdleFiller filler_;
};

Status Print(const Wanted& wanted) {
  Measurement measurement(wanted);
  ISOZONE_RETURN_IF_ERROR(measurement.Prepare());
  ISOZONE_ASSIGN_OR_RETURN(const int64_t busy_ns, measurement.Take());
  fmt::print("{:.1f}\n", static_cast<double>(busy_ns) / static_cast<double>(wanted.count));
  return Status::Ok();
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  isozone::Wanted wanted;
  const std::string what = argc == 8 ? argv[2] : "";
  if (what != "read" && what != "write" && what != "append") {
    fmt::print(stderr, "usage: {} WAY read|write|append LENGTH DEPTH ZONES COUNT DEVICE\n", argv[0]);
    return 1;
  }
  wanted.way = argv[1];
  wanted.op = what == "read"    ? isozone::Opcode::kRead
              : what == "write" ? isozone::Opcode::kWrite
                                : isozone::Opcode::kAppend;
  wanted.length = std::strtoull(argv[3], nullptr, 10);
  wanted.depth = std::strtoull(argv[4], nullptr, 10);
  wanted.zones = std::strtoull(argv[5], nullptr, 10);
  wanted.count = std::strtoull(argv[6], nullptr, 10);
  wanted.device = argv[7];
  const isozone::Status status = isozone::Print(wanted);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.ToString());
  return status.ok() ? 0 : 1;
}
