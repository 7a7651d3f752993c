#include "torture/torture.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "model/client.h"
#include "model/oracle.h"
#include "model/quiet_log.h"
#include "model/volume.h"
#include "torture/unsynced_logs.h"

namespace isozone::torture {
namespace {

using model::Client;
using model::ClientOptions;
using model::Oracle;
using model::Volume;

Status Unexpected(const Status& status, std::string_view when) {
  return Status::Corruption(fmt::format("{} with the power on: {}", when, status.ToString()));
}

FaultPlan CutAfter(uint64_t commands, uint64_t seed) {
  FaultPlan plan;
  plan.seed = seed;
  plan.power_cut_after = commands;
  return plan;
}

// One device, from its formatting on.
class Chain {
 public:
  Chain(uint64_t seed, size_t threads) : random_(seed), fills_(random_.Chance(0.25)), oracles_(threads) {
    if (!fills_ && random_.Chance(0.9)) logs_.emplace("/logs", random_.Next());
  }

  Status Run() {
    ISOZONE_RETURN_IF_ERROR(Make());
    if (random_.Chance(0.1)) ISOZONE_RETURN_IF_ERROR(CutFormat(random_.Below(24)));
    ISOZONE_RETURN_IF_ERROR(volume_->Format());
    while (report.cuts < kCutsPerChain) {
      const MountOptions options = model::RandomMountOptions(random_, /*at_leisure=*/oracles_.size() > 1);
      // Half of the cuts come early, so that mounting meets some.
      const uint64_t commands = random_.Below(random_.Chance(0.5) ? 60 : fills_ ? 6000 : 600);
      const uint64_t operations = random_.Between(20, fills_ ? 4000 : 400);
      ISOZONE_RETURN_IF_ERROR(MayLoseCopy());
      ISOZONE_RETURN_IF_ERROR(CutOnce(options, CutAfter(commands, random_.Next()), operations));
    }
    ISOZONE_RETURN_IF_ERROR(MayLoseCopy());
    return CheckFinally();
  }

  // Formatting is cut in the command after `commands`; what is left is no file system, or a sound one.
  Status CutFormat(uint64_t commands) {
    const Status cut = volume_->Format(CutAfter(commands, random_.Next()));
    if (cut.ok()) return Status::Ok();
    ++report.cuts;
    ++report.in_format;
    const Status mounted = volume_->Mount({});
    if (!mounted.ok()) {
      const bool said_so = mounted.Is(StatusCode::kNotFound) || mounted.Is(StatusCode::kCorruption);
      return said_so ? Status::Ok() : mounted.WithContext("mounting what was formatted half");
    }
    // One that formatting did not come to.
    ISOZONE_RETURN_IF_ERROR(volume_->fs().state().RestoreMetadataCopies());
    ISOZONE_RETURN_IF_ERROR(volume_->Unmount());
    return volume_->Check();
  }

  Status Make() {
    const DeviceGeometry geometry = model::RandomGeometry(random_, fills_ ? 128 * kKiB : 512 * kKiB);
    const bool timing = random_.Chance(0.1);
    const bool in_file = random_.Chance(0.3);
    auto volume = in_file ? Volume::CreateInFile(geometry) : Volume::Create(geometry, timing);
    ISOZONE_RETURN_IF_ERROR(volume.status());
    volume_ = std::make_unique<Volume>(std::move(*volume));
    return Status::Ok();
  }

  Volume& volume() { return *volume_; }

  // Mounts, checks, works, until the power goes: as `plan` says, or at the latest after `operations` of each client.
  Status CutOnce(const MountOptions& options, const FaultPlan& plan, uint64_t operations) {
    ++report.cuts;
    if (const Status mounted = volume_->Mount(options, plan); !mounted.ok()) {
      // The plan's cut, or damage? Without a cut the mount must succeed.
      ++report.in_mount;
      return CheckMountable(mounted);
    }
    // Counts from the next mount on; whether the power stays on long enough does not matter.
    if (random_.Chance(0.2)) {
      (void)volume_->fs().groups().Set(model::RandomGroups(random_, volume_->device().geometry()));
    }
    if (const Status found = CheckFound(); !found.ok()) {
      if (volume_->powered()) {
        return found.WithContext(fmt::format("cut {} of the chain, after mounting", report.cuts));
      }
      ++report.in_mount;
    } else {
      ISOZONE_RETURN_IF_ERROR(RestoreCopies());
      ISOZONE_RETURN_IF_ERROR(Work(operations));
      if (volume_->powered()) volume_->device().CutPower();
    }
    clients_.clear();
    if (logs_) logs_->Abandon();
    ISOZONE_RETURN_IF_ERROR(volume_->Unmount());
    return copy_is_lost_ ? Status::Ok() : volume_->Check();
  }

  Status CheckFinally() {
    ISOZONE_RETURN_IF_ERROR(volume_->Mount({}));
    ISOZONE_RETURN_IF_ERROR(CheckFound());
    ISOZONE_RETURN_IF_ERROR(RestoreCopies());
    ISOZONE_RETURN_IF_ERROR(volume_->Unmount());
    return volume_->Check(/*read_data=*/true);
  }

  Report report;

 private:
  std::string Directory(size_t client) const {
    return oracles_.size() == 1 && !logs_ ? "" : "/client" + std::to_string(client);
  }

  Status CheckMountable(const Status& error) {
    const Status again = volume_->Mount({});
    if (!again.ok()) return Unexpected(again, fmt::format("mounting, after a mount that gave '{}',", error.ToString()));
    return volume_->Unmount();
  }

  // A device has few zones: those that go offline stay so.
  Status MayLoseCopy() {
    constexpr uint64_t kZonesMax = 2;
    if (copy_is_lost_ || !random_.Chance(0.3)) return Status::Ok();
    const bool for_ever = zones_lost_ < kZonesMax && random_.Chance(0.5);
    const auto lost = volume_->LoseMetadataCopy(random_, for_ever, /*may_be_behind=*/both_have_all_);
    if (!lost.ok()) return lost.status().WithContext("losing a copy of the metadata");
    copy_is_lost_ = *lost;
    if (!*lost) return Status::Ok();
    ++report.copies_lost;
    zones_lost_ += for_ever ? 1 : 0;
    return Status::Ok();
  }

  // What was lost is written anew by itself; it is waited for always then, else now and then.
  Status RestoreCopies() {
    if (!copy_is_lost_ && random_.Chance(0.5)) return Status::Ok();
    const Status restored = volume_->fs().state().RestoreMetadataCopies();
    if (!volume_->powered()) return Status::Ok();
    if (!restored.ok()) return Unexpected(restored, "writing a copy of the metadata anew failed");
    const MetadataCopies copies = volume_->fs().state().Metadata();
    if (copies.whole.size() != copies.wanted) {
      return Status::Corruption(
          fmt::format("{} copies of the metadata are whole, and not {}", copies.whole.size(), copies.wanted));
    }
    copy_is_lost_ = false;
    both_have_all_ = true;
    return Status::Ok();
  }

  // What is mounted is as of some moment not before the last durable point; from here on it counts.
  Status CheckFound() {
    std::vector<model::Found> found;
    for (size_t i = 0; i < oracles_.size(); ++i) {
      ISOZONE_ASSIGN_OR_RETURN(found.emplace_back(), model::Collect(volume_->fs(), Directory(i)));
      ISOZONE_RETURN_IF_ERROR(oracles_[i].CheckAfterPowerCut(found[i]));
    }
    if (logs_) {
      ISOZONE_ASSIGN_OR_RETURN(const auto left, logs_->Left(volume_->fs()));
      const auto with_bytes = std::ranges::count_if(left, [](const auto& log) { return log.second > 0; });
      if (with_bytes > 1) ++report.several_logs;
    }
    if (!volume_->powered()) return Status::IoError("the power went while it was read back");
    for (size_t i = 0; i < oracles_.size(); ++i) oracles_[i].Adopt(found[i]);
    both_have_all_ = false;  // what was found may be in one copy only
    return Status::Ok();
  }

  Status Work(uint64_t operations) {
    const DeviceGeometry& geometry = volume_->device().geometry();
    std::vector<Status> outcomes(oracles_.size());
    for (size_t i = 0; i < oracles_.size(); ++i) {
      ClientOptions options;
      options.directory = Directory(i);
      options.max_append = geometry.zone_size / 4;
      const uint64_t capacity = geometry.zone_count * geometry.zone_capacity;
      options.live_target = (fills_ ? 2 * capacity : capacity / 3) / oracles_.size();
      options.max_writers = random_.Between(1, 6);
      options.alone = oracles_.size() == 1 && !logs_;
      clients_.push_back(std::make_unique<Client>(volume_->fs(), oracles_[i], random_.Next(), options));
    }
    const auto run = [&](size_t i) {
      if (outcomes[i].ok()) outcomes[i] = clients_[i]->Begin();
      for (uint64_t n = 0; n < operations && outcomes[i].ok(); ++n) {
        outcomes[i] = clients_[i]->Step();
        if (i == 0 && logs_ && outcomes[i].ok()) outcomes[i] = logs_->Step(volume_->fs());
      }
    };
    if (logs_) {
      ++report.unsynced;
      outcomes[0] = logs_->Begin(volume_->fs());
    }
    std::vector<std::thread> threads;
    for (size_t i = 1; i < oracles_.size(); ++i) threads.emplace_back(run, i);
    run(0);
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < oracles_.size(); ++i) {
      report.operations += clients_[i]->counters().operations;
      report.bytes_collected += clients_[i]->counters().bytes_collected;
      report.times_full += clients_[i]->counters().times_full;
      if (!outcomes[i].ok() && volume_->powered()) return Unexpected(outcomes[i], "an operation failed");
    }
    return Status::Ok();
  }

  Random random_;
  const bool fills_;  // the device runs full, again and again
  std::unique_ptr<Volume> volume_;
  std::vector<Oracle> oracles_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::optional<UnsyncedLogs> logs_;  // beside the clients; none: there are only theirs, which they sync now and then
  bool copy_is_lost_ = false;         // and may not have been written anew
  bool both_have_all_ = false;        // copies of the metadata, of what the oracles adopted
  uint64_t zones_lost_ = 0;           // that went offline
};

void Add(Report& total, const Report& part) {
  total.cuts += part.cuts;
  total.in_format += part.in_format;
  total.in_mount += part.in_mount;
  total.operations += part.operations;
  total.bytes_collected += part.bytes_collected;
  total.times_full += part.times_full;
  total.copies_lost += part.copies_lost;
  total.unsynced += part.unsynced;
  total.several_logs += part.several_logs;
}

}  // namespace

Result<Report> RunPowerCuts(const Options& options) {
  const QuietLog quiet;
  Report total;
  for (uint64_t first = options.first; first < options.first + options.cuts; first += kCutsPerChain) {
    Chain chain(Random(options.seed).Next() + first, options.threads);
    const Status status = chain.Run();
    if (!status.ok()) {
      return status.WithContext(fmt::format("isozone_torture --seed {} --first {} --cuts {} --threads {}", options.seed,
                                            first, kCutsPerChain, options.threads));
    }
    Add(total, chain.report);
    if (options.progress) options.progress(total.cuts);
  }
  return total;
}

Result<Report> CutEveryCommand(uint64_t seed) {
  const QuietLog quiet;
  Report total;
  const auto failed = [&](const Status& status, std::string_view where, uint64_t n) {
    return status.WithContext(fmt::format("seed {}, {} cut in command {}", seed, where, n));
  };
  for (uint64_t n = 0;; ++n) {
    Chain chain(seed, 1);
    ISOZONE_RETURN_IF_ERROR(chain.Make());
    Status status = chain.CutFormat(n);
    if (status.ok()) status = chain.volume().Format();
    if (status.ok()) status = chain.CheckFinally();
    if (!status.ok()) return failed(status, "formatting", n);
    Add(total, chain.report);
    if (chain.report.in_format == 0) break;
  }
  // Mounting a device that has been used, and the first operations on it.
  constexpr uint64_t kCommands = 250;
  for (uint64_t n = 0; n < kCommands; ++n) {
    Chain chain(seed, 1);
    Status status = chain.Make();
    if (status.ok()) status = chain.volume().Format();
    if (status.ok()) status = chain.CutOnce({}, {}, 100);
    if (status.ok()) status = chain.CutOnce({}, CutAfter(n, seed + n), 100);
    if (status.ok()) status = chain.CheckFinally();
    if (!status.ok()) return failed(status, "mounting", n);
    Add(total, chain.report);
  }
  return total;
}

}  // namespace isozone::torture
