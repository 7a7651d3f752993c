#include "simulator/device_times.h"

#include <algorithm>

#include "base/units.h"
#include "device/emulated/nand/zone_map.h"
#include "device/izg/zone_groups.h"

namespace isozone {

DeviceTimes::DeviceTimes(const Profile& profile) : profile_(profile), units_(1) {
  if (!profile_.timing) return;
  const ZoneMap map(profile_);
  width_ = map.width();
  unit_bandwidth_ = profile_.channel_bandwidth;
  if (width_ > 1) {
    unit_bandwidth_ *= profile_.channels;
    return;
  }
  units_.resize(profile_.dies);
  channels_ = profile_.channels;
  for (uint32_t zone = 0; zone < profile_.zone_count; ++zone) unit_of_zone_.push_back(map.DieOf(zone, 0));
}

std::shared_ptr<const GroupIndex> DeviceTimes::Groups() const {
  if (unit_of_zone_.empty()) return std::make_shared<GroupIndex>(profile_.zone_count, nullptr);
  ZoneGroups groups;
  for (const uint32_t unit : unit_of_zone_) groups.group_of_zone.push_back(static_cast<uint16_t>(unit));
  groups.confidence_percent.assign(unit_of_zone_.size(), 100);
  for (uint32_t unit = 0; unit < units_.size(); ++unit) {
    groups.channel_of_group.push_back(static_cast<uint16_t>(unit % channels_));
  }
  groups.zone_bandwidth = profile_.program_unit * kSecondNs / static_cast<uint64_t>(profile_.program_ns);
  return std::make_shared<GroupIndex>(profile_.zone_count, &groups);
}

int64_t DeviceTimes::ProgramTime(uint64_t bytes) const {
  return DurationOf(bytes * static_cast<uint64_t>(profile_.program_ns), profile_.program_unit * width_ * kSecondNs);
}

// Of the array and the channel, one after another.
int64_t DeviceTimes::PageTime(uint64_t bytes) const {
  const int64_t page_ns = profile_.page_read_ns + DurationOf(profile_.page_size, profile_.channel_bandwidth);
  return DurationOf(bytes * static_cast<uint64_t>(page_ns), profile_.page_size * width_ * kSecondNs);
}

int64_t DeviceTimes::ChannelTime(uint64_t bytes) const { return DurationOf(bytes, unit_bandwidth_); }

int64_t DeviceTimes::Write(int64_t now_ns, ZoneId zone, uint64_t bytes) {
  media_.written += bytes;
  if (!profile_.timing) return now_ns;
  const uint32_t unit = IndexOf(zone);
  const int64_t arrival =
      link_to_device_.Serve(now_ns, DurationOf(bytes, profile_.link_bandwidth)) + profile_.write_latency_ns;
  const int64_t admitted = all_writes_.Serve(now_ns, DurationOf(bytes, profile_.write_bandwidth)) -
                           DurationOf(profile_.write_cache, profile_.write_bandwidth);
  const int64_t transferred = ChannelIn(unit).Serve(now_ns, ChannelTime(bytes));
  const int64_t programmed = units_[unit].array.Program(now_ns, ProgramTime(bytes));
  return std::max({arrival, admitted, transferred, programmed - BufferTime()});
}

int64_t DeviceTimes::Read(int64_t now_ns, ZoneId zone, uint64_t bytes) {
  if (!profile_.timing) return now_ns;
  const uint32_t unit = IndexOf(zone);
  const int64_t read = units_[unit].array.Read(now_ns, PageTime(bytes), BufferTime());
  const int64_t transferred = ChannelOut(unit).Serve(now_ns, ChannelTime(bytes));
  const int64_t received = link_to_host_.Serve(now_ns, DurationOf(bytes, profile_.link_bandwidth));
  return std::max({read, transferred, received}) + profile_.read_latency_ns;
}

int64_t DeviceTimes::Reset(int64_t now_ns, ZoneId zone, uint64_t written) {
  const uint64_t end = PaddedByReset(profile_, written);
  const int64_t padded = end == written ? now_ns : Pad(now_ns, zone, written, end);
  if (!profile_.timing) return now_ns;
  const int64_t erased = units_[IndexOf(zone)].array.Program(now_ns, written == 0 ? 0 : profile_.erase_ns);
  return profile_.management_latency_ns + std::max({padded, erased, padded + ResetDuration(profile_, written)});
}

int64_t DeviceTimes::Finish(int64_t now_ns, ZoneId zone, uint64_t written) {
  const int64_t padded = Pad(now_ns, zone, written, PaddedByFinish(profile_, written));
  return profile_.timing ? profile_.management_latency_ns + padded : now_ns;
}

int64_t DeviceTimes::Pad(int64_t now_ns, ZoneId zone, uint64_t written, uint64_t end) {
  const uint64_t row = profile_.timing ? profile_.program_unit * width_ : 1;
  const uint64_t bytes = std::min(RoundUp(end, row), profile_.zone_capacity) - written;
  media_.written += bytes;
  media_.dummy += bytes;
  if (!profile_.timing || bytes == 0) return now_ns;
  // The die programs whole units.
  const uint64_t programmed = RoundUp(written + bytes, row) - RoundDown(written, row);
  const int64_t padded = units_[IndexOf(zone)].array.Program(now_ns, ProgramTime(programmed));
  const int64_t admitted = all_writes_.Serve(now_ns, DurationOf(bytes, profile_.write_bandwidth));
  return std::max({padded, admitted, now_ns + DurationOf(end - written, profile_.finish_bandwidth)});
}

}  // namespace isozone
