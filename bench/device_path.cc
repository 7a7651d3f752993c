// The requests that bench/device_path times: those of a zoned block device, from ZonedDevice::Submit to `done`.
//
//   isozone_device_path URI read|write LENGTH DEPTH COUNT
//
// Resets the device and writes what is to be read. Then it reads LENGTH bytes COUNT times at random, or writes them,
// one zone after another in each of DEPTH places. At depth 1 the thread that submits a request waits for it; at a
// larger depth, a completion submits the next request of its place. Prints the nanoseconds of a request in which the
// only processor was not idle. Destroys what is on the device.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "base/latch.h"
#include "base/random.h"
#include "device/open_device.h"
#include "idle_filler.h"

namespace isozone {
namespace {

constexpr uint64_t kReadRange = 64 * kMiB;  // bytes at the beginning of the device, from which is read

struct Wanted {
  DeviceOp op = DeviceOp::kRead;
  uint64_t length = 0;  // bytes
  uint64_t depth = 0;   // requests in flight
  uint64_t count = 0;   // requests
};

class Measurement {
 public:
  // The zones of the device hold as much as they are long.
  Measurement(ZonedDevice& device, const Wanted& wanted)
      : device_(device), geometry_(device.geometry()), wanted_(wanted), places_(wanted.depth), left_(wanted.count) {
    for (uint64_t i = 0; i < places_.size(); ++i) {
      places_[i].owner = this;
      places_[i].next = i * geometry_.zone_size;
      places_[i].memory = AlignedBuffer(wanted.length);
      std::memset(places_[i].memory.data(), 1, wanted.length);
    }
  }

  Status Prepare() {
    for (uint32_t zone = 0; zone < geometry_.zone_count; ++zone) {
      ISOZONE_RETURN_IF_ERROR(Run(DeviceOp::kReset, geometry_.ZoneStart(ZoneId(zone)), {}));
    }
    AlignedBuffer piece(128 * kKiB);
    std::memset(piece.data(), 1, piece.size());
    for (uint64_t at = 0; wanted_.op == DeviceOp::kRead && at < kReadRange; at += piece.size()) {
      ISOZONE_RETURN_IF_ERROR(Run(DeviceOp::kWrite, DeviceOffset(at), piece.span()));
    }
    return Status::Ok();
  }

  // Makes all requests. Returns the nanoseconds in which the processor was not idle.
  Result<int64_t> Take() {
    const int64_t filled_ns = filler_.FilledNs();
    const int64_t begin_ns = MonotonicNs();
    if (wanted_.depth == 1) {
      DeviceRequest& request = places_.front().request;
      while (Next(places_.front()) && SubmitAndWait(device_, request) == DeviceStatus::kSuccess) continue;
    } else {
      for (size_t i = 0; i < places_.size(); ++i) done_.Add();
      for (Place& place : places_) Continue(place);
      done_.Wait();
    }
    const int64_t taken_ns = MonotonicNs() - begin_ns - (filler_.FilledNs() - filled_ns);
    for (const Place& place : places_) ISOZONE_RETURN_IF_ERROR(ToStatus(geometry_, place.request));
    return taken_ns;
  }

 private:
  struct Place {
    Measurement* owner = nullptr;
    AlignedBuffer memory;
    DeviceRequest request;
    uint64_t next = 0;  // the byte of the device that is written next
  };

  Status Run(DeviceOp op, DeviceOffset offset, std::span<std::byte> data) {
    DeviceRequest request;
    request.op = op;
    request.offset = offset;
    request.data = data.data();
    request.length = data.size();
    (void)SubmitAndWait(device_, request);
    return ToStatus(geometry_, request);
  }

  // Makes the next request of a place. False: all have been made.
  bool Next(Place& place) {
    const MutexLock lock(mu_);
    if (left_ == 0) return false;
    --left_;
    DeviceRequest& request = place.request;
    request.op = wanted_.op;
    request.data = place.memory.data();
    request.length = wanted_.length;
    if (wanted_.op == DeviceOp::kRead) {
      request.offset = DeviceOffset(random_.Below(kReadRange / wanted_.length) * wanted_.length);
      return true;
    }
    request.offset = DeviceOffset(place.next);
    place.next += wanted_.length;
    if (place.next % geometry_.zone_size == 0) place.next += (wanted_.depth - 1) * geometry_.zone_size;
    return true;
  }

  static void Continue(Place& place) {
    if (!place.owner->Next(place)) return place.owner->done_.CountDown();
    place.request.context = &place;
    place.request.done = [](DeviceRequest& request) {
      Place& completed = *static_cast<Place*>(request.context);
      if (request.status != DeviceStatus::kSuccess) return completed.owner->done_.CountDown();
      Continue(completed);
    };
    place.owner->device_.Submit(place.request);
  }

  ZonedDevice& device_;
  const DeviceGeometry geometry_;
  const Wanted wanted_;
  std::vector<Place> places_;
  Mutex mu_;
  Random random_ ISOZONE_GUARDED_BY(mu_){1};
  uint64_t left_ ISOZONE_GUARDED_BY(mu_);  // requests that are still to be made
  IdleFiller filler_;
  Latch done_;
};

Status Print(const std::string& text, const Wanted& wanted) {
  ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(text));
  ISOZONE_ASSIGN_OR_RETURN(const auto device, OpenDevice(uri, OpenMode::kReadWrite));
  Measurement measurement(*device, wanted);
  ISOZONE_RETURN_IF_ERROR(measurement.Prepare());
  ISOZONE_ASSIGN_OR_RETURN(const int64_t ns, measurement.Take());
  fmt::print("{:.1f}\n", static_cast<double>(ns) / static_cast<double>(wanted.count));
  return Status::Ok();
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  const std::string what = argc == 6 ? argv[2] : "";
  if (what != "read" && what != "write") {
    fmt::print(stderr, "usage: {} URI read|write LENGTH DEPTH COUNT\n", argv[0]);
    return 1;
  }
  isozone::Wanted wanted;
  wanted.op = what == "read" ? isozone::DeviceOp::kRead : isozone::DeviceOp::kWrite;
  wanted.length = std::strtoull(argv[3], nullptr, 10);
  wanted.depth = std::strtoull(argv[4], nullptr, 10);
  wanted.count = std::strtoull(argv[5], nullptr, 10);
  const isozone::Status status = isozone::Print(argv[1], wanted);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.ToString());
  return status.ok() ? 0 : 1;
}
