#include "store/file/file_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "store/zone/lane_choice.h"

namespace isozone {
namespace {

// Where the bytes of a range are.
struct Whereabouts {
  size_t bytes = 0;  // that exist
  std::vector<FileExtent> pieces;
  bool operator==(const Whereabouts&) const = default;
};

Whereabouts FindRange(const OpenFile& file, uint64_t offset, std::span<std::byte> buffer) {
  Whereabouts found;
  std::shared_ptr<const ReadPin> pin;
  found.bytes = file.Locate(
      offset, buffer, [&](const FileExtent& piece) { found.pieces.push_back(piece); }, pin);
  return found;
}

// One device request of a read.
struct Piece {
  IoRequest io;
  AlignedBuffer bounce;         // empty: the device reads into the caller's buffer
  std::byte* target = nullptr;  // where the wanted bytes go
  uint64_t skip = 0;            // bytes of the bounce buffer in front of them
  uint64_t length = 0;
};

}  // namespace

// A read in flight, which completes when its last piece does. A thread that waits for it owns it. Any other read owns
// itself, and lives on until the submitter has what lies in bounce buffers. It has room for the one piece of a small
// read, so that such a read allocates nothing else.
class PiecewiseReader::ReadInFlight final : public FileRead::Bounced {
 public:
  ReadInFlight(DataPath& data_path, FileRead& read) : data_path_(data_path), read_(read) {}

  // Looks up where the bytes are, anew at every call, and copies those that are in memory. Returns how many bytes there
  // are.
  size_t Locate(const OpenFile& file) {
    if (count_ > 0) first_.bounce = AlignedBuffer();
    count_ = 0;
    others_.clear();
    return file.Locate(
        read_.offset, read_.buffer, [this](const FileExtent& extent) { Add(extent); }, pin_);
  }
  bool touches_device() const { return count_ > 0; }

  void Copy() override {
    VisitPieces([](const Piece& piece) {
      if (piece.bounce.size() > 0) std::memcpy(piece.target, piece.bounce.data() + piece.skip, piece.length);
    });
  }

  // From here on the read owns itself, until it completes.
  static void StartAlone(std::unique_ptr<ReadInFlight> flight) {
    flight->owns_itself_ = true;
    flight.release()->Start();
  }
  // The caller owns the read, and keeps it until it has completed.
  void Start() {
    pending_.store(count_ + 1, std::memory_order_relaxed);
    (others_.empty() ? first_ : others_.back()).io.device.may_block = read_.may_block;
    VisitPieces([this](Piece& piece) { data_path_.engine.Submit(piece.io); });
    OnPieceDone();  // the one added above: pieces may have completed while others were being submitted
  }

 private:
  // Calls `visit` with each piece, in file order.
  template <typename Visit>
  void VisitPieces(Visit visit) {
    visit(first_);
    for (Piece& piece : others_) visit(piece);
  }

  // Cuts an extent into device requests of at most the transfer limit.
  void Add(FileExtent extent) {
    const DeviceGeometry& geometry = data_path_.geometry();
    const uint64_t block = geometry.block_size;
    const uint64_t limit = geometry.max_transfer == 0 ? UINT64_MAX : geometry.max_transfer;
    while (extent.length > 0) {
      const uint64_t begin = RoundDown(extent.device_offset.value(), block);
      const uint64_t skip = extent.device_offset.value() - begin;
      const uint64_t length = std::min(extent.length, limit == UINT64_MAX ? limit : limit - skip);
      AddPiece(begin, skip, RoundUp(skip + length, block), read_.buffer.data() + extent.file_offset, length);
      extent.file_offset += length;
      extent.device_offset = DeviceOffset(extent.device_offset.value() + length);
      extent.length -= length;
    }
  }

  void AddPiece(uint64_t begin, uint64_t skip, uint64_t device_length, std::byte* target, uint64_t length) {
    Piece& piece = count_++ == 0 ? first_ : others_.emplace_back();
    const bool direct = skip == 0 && device_length == length &&
                        IsAligned(reinterpret_cast<uintptr_t>(target), data_path_.geometry().buffer_alignment);
    if (!direct) piece.bounce = AlignedBuffer(device_length);
    piece.target = target;
    piece.skip = skip;
    piece.length = length;
    piece.io.io_class = read_.io_class;
    piece.io.context = this;
    piece.io.done = [](IoRequest& io) { static_cast<ReadInFlight*>(io.context)->OnPieceDone(); };
    piece.io.device.op = DeviceOp::kRead;
    piece.io.device.offset = DeviceOffset(begin);
    piece.io.device.data = direct ? target : piece.bounce.data();
    piece.io.device.length = device_length;
  }

  void OnPieceDone() {
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) Finish();
  }

  void Finish() {
    FileRead& read = read_;
    bool bounced = false;
    VisitPieces([&](const Piece& piece) {
      if (read.status.ok()) read.status = ToStatus(data_path_.geometry(), piece.io.device);
      bounced |= piece.bounce.size() > 0;
    });
    if (!read.status.ok()) read.bytes_read = 0;
    pin_.reset();
    if (owns_itself_) {
      std::unique_ptr<ReadInFlight> own(this);
      if (read.status.ok() && bounced) read.bounced = std::move(own);
    }
    read.done(read);
  }

  DataPath& data_path_;
  FileRead& read_;
  std::shared_ptr<const ReadPin> pin_;
  bool owns_itself_ = false;
  size_t count_ = 0;         // pieces
  Piece first_;              // if there are any
  std::list<Piece> others_;  // addresses stay
  std::atomic<uint64_t> pending_{0};
};

void PiecewiseReader::Submit(FileRead& read) {
  if (hooks_.after_read) {
    // What was read has to be checked afterwards, and that takes I/O of its own.
    auto bytes = Read(read.offset, read.buffer, read.io_class);
    read.status = bytes.status();
    read.bytes_read = bytes.ok() ? *bytes : 0;
  } else {
    auto flight = std::make_unique<ReadInFlight>(*data_path_, read);
    if (Prepare(*flight, read)) return ReadInFlight::StartAlone(std::move(flight));
  }
  read.done(read);  // the flight has released its pin: the caller may release the file
}

bool PiecewiseReader::Prepare(ReadInFlight& flight, FileRead& read) const {
  read.status = Status::Ok();
  read.bytes_read = flight.Locate(*file_);
  if (read.bytes_read < read.buffer.size()) {
    if (hooks_.before_end) {
      read.status = hooks_.before_end();
      read.bytes_read = flight.Locate(*file_);
    }
    // Behind the last good byte of a damaged log there is an error and no end of file. A short read would hide the
    // error.
    if (read.status.ok()) read.status = file_->damage();
    if (!read.status.ok()) read.bytes_read = 0;
  }
  return read.status.ok() && flight.touches_device();
}

PiecewiseReader::~PiecewiseReader() {
  ahead_.Stop();  // its reads are of file_
  catalog_->Release(std::move(file_));
}

uint64_t PiecewiseReader::Window() const {
  const MountOptions& options = data_path_->options;
  return RoundUp(ReadWindowOf(file_->CountZones(options.stripe_width), options.stripe_unit),
                 data_path_->geometry().block_size);
}

Result<size_t> PiecewiseReader::Read(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) {
  if (!reads_ahead_ || io_class != IoClass::kCompactionRead) return ReadAtOnce(offset, buffer, io_class);
  const uint64_t generation = file_->generation();
  const size_t done = ahead_.TryRead(offset, buffer, io_class, size(), generation);
  if (done == buffer.size()) return done;
  ISOZONE_ASSIGN_OR_RETURN(const size_t rest, ReadAtOnce(offset + done, buffer.subspan(done), io_class));
  return done + rest;
}

Result<size_t> PiecewiseReader::ReadAtOnce(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) {
  for (;;) {
    const uint64_t generation = file_->generation();
    Whereabouts before;
    if (hooks_.after_read) before = FindRange(*file_, offset, buffer);
    FileRead read;
    read.offset = offset;
    read.buffer = buffer;
    read.io_class = io_class;
    read.may_block = true;
    ReadInFlight flight(*data_path_, read);
    Latch latch;
    const bool on_device = Prepare(flight, read);
    if (on_device) {
      latch.Expect(read);
      flight.Start();
    }
    const bool was_before = file_->generation() == generation;  // what was read is where `before` says
    if (on_device) {
      latch.Wait();
      if (read.status.ok()) flight.Copy();
    }
    if (!hooks_.after_read) {
      ISOZONE_RETURN_IF_ERROR(read.status);
      return read.bytes_read;
    }
    ISOZONE_RETURN_IF_ERROR(hooks_.after_read());
    // If the writer has moved this range of the file, it may have reset the old place, so the read begins again.
    if (file_->generation() != generation && (!was_before || FindRange(*file_, offset, buffer) != before)) continue;
    ISOZONE_RETURN_IF_ERROR(read.status);
    return read.bytes_read;
  }
}

}  // namespace isozone
