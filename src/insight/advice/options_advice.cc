#include "insight/advice/options_advice.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/uri.h"
#include "store/zone/allocator/active_budget.h"

namespace isozone {
namespace {

constexpr std::array<std::string_view, 3> kWorkloads = {"write", "read", "mixed"};

// Tables of this size are few enough to be opened and listed, and small enough to be compacted a few at a time.
constexpr uint64_t kUsualTable = 64 * kMiB;
constexpr uint64_t kLeastTable = 4 * kMiB;
constexpr uint64_t kLargestTable = 512 * kMiB;
constexpr uint64_t kTablesWanted = 20'000;      // of a large database, at most
constexpr uint64_t kTablesLeast = 64;           // so that compactions are small beside the database
constexpr uint64_t kUsualMemtable = 64 * kMiB;  // RocksDB's write_buffer_size
constexpr uint64_t kLeastMemtable = 2 * kMiB;
constexpr uint64_t kLargestMemtable = 256 * kMiB;
constexpr uint32_t kMostJobs = 16;
constexpr uint64_t kLevel0Usual = 4;  // RocksDB's level0_file_num_compaction_trigger
// Each doubling of what level 0 gives at once saves a good part of all writing (docs/measurements/advice.md), and
// look-ups ask the filters of so many tables more.
constexpr uint64_t kLevel0Most = 16;
// With few jobs, steered compaction is faster than RocksDB's own and writes less. With more, RocksDB's own is faster,
// since steered compactions leave room to each other; but it can fill the device once the database takes the
// percentages below. The lower one holds for small memtables, beside which compactions are larger, and for four jobs
// on a small database, which keep up less well. Above them, RocksDB's own was seen to fit up to kMostPercentUnsteered
// where level 0 is small (Adviser::Level0MostUnsteered, docs/measurements/advice.md).
constexpr uint64_t kFewJobs = 3;
constexpr uint64_t kManyJobs = 5;
constexpr uint64_t kFewMemtables = 50;  // of a small database
constexpr uint64_t kCrowdedPercent = 45;
constexpr uint64_t kCrowdedPercentOfManyJobs = 50;
constexpr uint64_t kCrowdedPercentOfSlowJobs = 40;
constexpr uint64_t kMostPercentUnsteered = 60;
// Of the room that the database leaves (Adviser::Room). Steered compaction was found not to fill the device with so
// much of level 0, level 1 and logs (bench/advise_ratio --simulate --rounds 6).
constexpr uint64_t kSteeredPercentOfRoom = 180;
constexpr uint64_t kLevel0Least = 8;     // compacted at once, as far as memtables can be made small enough
constexpr uint64_t kUsualSlowdown = 20;  // RocksDB's level0_slowdown_writes_trigger
constexpr uint64_t kUsualStop = 36;      // RocksDB's level0_stop_writes_trigger
constexpr uint64_t kUsualSoftLimit = 64 * kGiB;
constexpr uint64_t kUsualHardLimit = 256 * kGiB;
constexpr uint64_t kTinyZone = 1 * kMiB;
constexpr uint32_t kFewZones = 64;
constexpr uint32_t kFewActive = 20;  // fewer than two stripe sets beside the reserves
constexpr std::string_view kDatabase = "DBOptions";
constexpr std::string_view kFamily = "CFOptions \"default\"";
constexpr std::string_view kTable = "TableOptions/BlockBasedTable \"default\"";

// The value between the bounds, and which of them it met, in words that continue a sentence.
struct Bounded {
  uint64_t value = 0;
  std::string why;

  void AtMost(uint64_t bound, std::string_view reason) {
    if (value <= bound) return;
    value = bound;
    why = fmt::format("; not more, {}", reason);
  }
  void AtLeast(uint64_t bound, std::string_view reason) {
    if (value >= bound) return;
    value = bound;
    why = fmt::format("; not less, {}", reason);
  }
};

std::string Plural(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "4M" for a URI, where it is whole.
std::string UriSize(uint64_t bytes) {
  return bytes % kMiB == 0 ? fmt::format("{}M", bytes / kMiB) : std::to_string(bytes);
}

class Adviser {
 public:
  explicit Adviser(const AdviceFacts& facts) : facts_(facts) {}

  OptionsAdvice Advise() {
    Summarise();
    PlanStripes();
    NoteLimits();
    AdviseJobs();
    PlanTables();
    PlanMemory();
    PlanSteering();
    AdviseSteering();
    AdviseFamily();
    AdviseTables();
    return std::move(advice_);
  }
  // Bytes that RocksDB may put on the device before it has compacted anything into level 2. After Advise.
  uint64_t least_room() const { return std::max(memtables_ * memtable_, level_base_); }

 private:
  bool writes() const { return facts_.workload != Workload::kRead; }
  // Zones that writers of data may have active; all of the device where it has no limit.
  uint64_t data_zones() const {
    if (facts_.max_active == 0) return facts_.zones;
    constexpr uint32_t kOthers = ActiveBudget::kReserveTotal - ActiveBudget::ReserveOf(BudgetClass::kData);
    return facts_.max_active - std::min(facts_.max_active, kOthers);
  }
  void Set(std::string_view section, std::string_view key, std::string value, std::string reason) {
    advice_.settings.push_back({section, key, std::move(value), std::move(reason)});
  }
  void Note(std::string line) { advice_.notes.push_back(std::move(line)); }

  void Summarise() {
    database_ = facts_.database != 0 ? facts_.database : (facts_.capacity() * 3 + 4) / 5;
    advice_.summary = fmt::format(
        "For {}: {} zones of {}, {}; {} workload, {} of memory, {}, a database of {}{}.", facts_.device, facts_.zones,
        FormatSize(facts_.zone_capacity),
        facts_.max_active == 0 ? "any number active" : fmt::format("{} active at once", facts_.max_active),
        WorkloadName(facts_.workload), FormatSize(facts_.memory), Plural(facts_.cores, "core"), FormatSize(database_),
        facts_.database != 0 ? "" : " (60 % of the device, since --database is not given)");
  }

  void NoteLimits() {
    if (database_ > facts_.usable() / 100 * 70) {
      Note(fmt::format("The database takes {} % of the device: GC and compaction will slow writers down.", filled()));
    }
    if (facts_.zone_capacity < kTinyZone) {
      Note(fmt::format("Zones of {} are tiny: each table takes many, and every zone costs a reset.",
                       FormatSize(facts_.zone_capacity)));
    }
    if (facts_.zones < kFewZones) {
      Note(fmt::format("The device has only {} zones: metadata, logs and the collector keep a good part of them.",
                       facts_.zones));
    }
    if (facts_.max_active != 0 && facts_.max_active < kFewActive) {
      Note(
          fmt::format("Only {} zones can be active: {} are left to tables, so {}zones are finished early.",
                      facts_.max_active, data_zones(),
                      width_ < facts_.stripe_width ? fmt::format("stripes have {} and ", Plural(width_, "zone")) : ""));
    }
    if (!facts_.groups) {
      Note("Nobody has measured which zones share hardware: run isozone izg identify, so that stripes keep apart.");
    }
    if (database_ < 4 * width_ * facts_.zone_capacity) {
      Note(fmt::format(
          "The database would fill only {} zones, and stripes of {} leave many partly written: steered "
          "compaction (--workload write or mixed) holds fewest; a smaller stripe_width saves few and has as "
          "much less bandwidth (isozone why DEVICE).",
          database_ / facts_.zone_capacity + 1, width_));
    }
  }

  void AdviseJobs() {
    Bounded jobs{facts_.cores, ""};
    jobs.AtMost(kMostJobs, "since more only compete for zones");
    if (facts_.groups.value_or(0) > 0) {
      jobs.AtMost(*facts_.groups, fmt::format("since there are {}", Plural(*facts_.groups, "zone group")));
    }
    jobs.AtMost(data_zones(), fmt::format("since so many zones can be active for tables"));
    jobs.AtLeast(2, "so that a flush does not wait for a compaction");
    jobs_ = jobs.value;
    Set(kDatabase, "create_if_missing", "true", "For a new database; one that exists is opened as it is.");
    Set(kDatabase, "max_background_jobs", std::to_string(jobs_),
        fmt::format("A job for each of {}{}. RocksDB uses a quarter of them for flushes.", Plural(facts_.cores, "core"),
                    jobs.why));
  }

  void PlanStripes() {
    Bounded width{std::max(1U, facts_.stripe_width), ""};
    width.AtMost(std::max<uint64_t>(1, data_zones() / 2), "since two files share the zones that can be active");
    if (facts_.groups.value_or(0) > 0) width.AtMost(*facts_.groups, "since there are no more zone groups");
    width_ = width.value;
    width_why_ = width.why;
  }

  // A whole number of tables fills a stripe set, or a table a whole number of sets.
  void PlanTables() {
    Bounded goal{std::max(kUsualTable, database_ / kTablesWanted), ""};
    goal.AtMost(kLargestTable, "since a compaction takes about a dozen tables at once");
    goal.AtMost(facts_.capacity() / kTablesLeast, "since compactions need room on the device");
    goal.AtMost(database_ / kTablesLeast, fmt::format("since a database has at least {} tables", kTablesLeast));
    goal.AtLeast(kLeastTable, "since smaller tables cost more than they save");
    const uint64_t set = width_ * facts_.zone_capacity;
    if (set <= goal.value) {
      const uint64_t sets = goal.value / set;
      fill_ = sets * set;
      table_why_ = fmt::format("A table fills {} of {} of {}", Plural(sets, "stripe set"), Plural(width_, "zone"),
                               FormatSize(facts_.zone_capacity));
    } else {
      const uint64_t tables = (set + goal.value - 1) / goal.value;
      fill_ = set / tables;
      table_why_ = fmt::format("{} of {} fill a stripe set of {} of {}", Plural(tables, "table"), FormatSize(fill_),
                               Plural(width_, "zone"), FormatSize(facts_.zone_capacity));
    }
    table_why_ += fmt::format("{}{}", width_why_, goal.why);
    table_ = fill_ / 32 * 31;
  }

  void PlanMemory() {
    uint64_t own = facts_.read_ahead_memory + facts_.writer_memory * (jobs_ + 1);
    if (own > facts_.memory / 3) {
      const uint64_t part = facts_.memory / 8;
      const uint64_t writer = std::max(kMiB, part / (jobs_ + 1) / kMiB * kMiB);
      const uint64_t read_ahead = part / kMiB * kMiB;
      Note(
          fmt::format("There is little memory: Isozone's writers and read-ahead would take {} of {}; the URI option "
                      "below bounds them.",
                      FormatSize(own), FormatSize(facts_.memory)));
      advice_.uri = fmt::format("writer_memory={}&read_ahead_memory={}", UriSize(writer), UriSize(read_ahead));
      own = read_ahead + writer * (jobs_ + 1);
    }
    own_ = own;
    const uint64_t left = facts_.memory - std::min(facts_.memory, own) - facts_.memory / 10;
    constexpr std::array<uint64_t, 3> kPercents = {60, 15, 40};  // of it for memtables, by workload
    constexpr std::array<uint64_t, 3> kNumbers = {3, 2, 3};
    const auto index = static_cast<size_t>(facts_.workload);
    memtables_ = kNumbers[index];
    Bounded size{left / 100 * kPercents[index] / memtables_, ""};
    size.AtMost(kLargestMemtable, "since a flush of more takes long, and so does a recovery");
    const uint64_t of_memory = size.value;
    size.AtMost(Room() / 100 * kSteeredPercentOfRoom / (kLevel0Least * 4 + memtables_),
                "since logs, and tables that are compacted, lie on the device, in what the database leaves");
    const bool of_device = size.value < of_memory;
    size.AtMost(std::max(kUsualMemtable, database_ / 8), "since a database is more than a few memtables");
    size.AtLeast(kLeastMemtable, "since RocksDB would flush all the time");
    memtable_ = size.value / kMiB * kMiB;
    memtable_why_ = fmt::format("{} % of the memory that is left beside Isozone's own {}, in {} memtables{}.",
                                kPercents[index], FormatSize(own_), memtables_, size.why);
    cache_ = std::max(kMiB, left - std::min(left, memtable_ * memtables_));
    if (memtable_ < kUsualMemtable) {
      Note(
          fmt::format("Memtables of {} are smaller than RocksDB's own of {}, with which puts can be up to a quarter "
                      "faster: {} makes them larger.",
                      FormatSize(memtable_), FormatSize(kUsualMemtable),
                      of_device ? "a larger device" : "more memory or another workload"));
    }
  }

  // Percent of what the device has for files that the database takes.
  uint64_t filled() const { return database_ * 100 / facts_.usable(); }
  bool few_jobs() const { return jobs_ <= kFewJobs; }
  // Whether several of RocksDB's own compactions run at a time, beside writers.
  bool parallel() const { return writes() && !steered_ && !few_jobs(); }

  void PlanSteering() {
    const bool slow = memtable_ < kUsualMemtable || (database_ <= kFewMemtables * memtable_ && jobs_ < kManyJobs);
    const bool fits_unsteered = filled() <= kMostPercentUnsteered && Level0MostUnsteered() >= kLevel0Least;
    crowded_ = filled() >= (slow ? kCrowdedPercentOfSlowJobs : kCrowdedPercentOfManyJobs) && !fits_unsteered;
    steered_ = writes() && (few_jobs() || crowded_);
    if (steered_ && crowded_) {
      Note(fmt::format(
          "With {} % of the device taken, writers are held back before it is full: puts can be up to a third slower "
          "than with RocksDB's defaults, which let what waits for compaction grow until there is no space left. On a "
          "larger device they are not.",
          filled()));
    }
  }

  void AdviseSteering() {
    if (!steered_) {
      return Set(kDatabase, "listeners", "{isozone}",
                 fmt::format("Tells Isozone the level of each table, so that tables of one level share zones. "
                             "Compaction stays RocksDB's: {}.",
                             writes() ? "several compactions at a time are slower where they leave each other room"
                                      : "hardly anything is compacted"));
    }
    const bool few = data_zones() < 2 * width_ + 2 || data_zones() < 8;
    std::string reason = "Isozone picks what is compacted, so that zones die whole";
    if (crowded_) reason += ", and holds writers back before the device is full";
    if (few) reason += ". Short-lived tables have no zones of their own, since few zones can be active";
    Set(kDatabase, "listeners",
        few ? "{id=isozone;compaction=isozone;t_zone=false}" : "{id=isozone;compaction=isozone}", reason + ".");
  }

  void AdviseFamily() {
    if (steered_) {
      Set(kFamily, "compaction_style", "kCompactionStyleNone", "RocksDB leaves compaction to the listener above.");
      Set(kFamily, "sst_partitioner_factory", "isozone", "Cuts tables where the ones below them end.");
    } else if (!writes()) {
      Set(kFamily, "level_compaction_dynamic_level_bytes", "true",
          "Nine tenths of the data lie in the last level, so little is kept in two versions.");
    }
    Set(kFamily, "write_buffer_size", std::to_string(memtable_), memtable_why_);
    Set(kFamily, "max_write_buffer_number", std::to_string(memtables_),
        facts_.workload == Workload::kWrite
            ? "Writers go on while several memtables are flushed, to zones of different groups."
            : "Writers go on while a memtable is flushed.");
    Set(kFamily, "target_file_size_base", std::to_string(table_),
        fmt::format("{}. 1/32 is left for index and filter.", table_why_));
    AdviseLevels();
    AdviseDebt();
  }

  // What the database leaves, with a fifth more for tables that are superseded in part.
  uint64_t Room() const { return facts_.usable() - std::min(facts_.usable(), database_ / 10 * 12); }

  bool crowded_for_many() const { return filled() >= kCrowdedPercentOfManyJobs; }

  // So many tables of level 0 can be compacted at once where RocksDB picks several compactions on a crowded device.
  // What they have on it was measured (bench/advise_ratio --simulate --rounds 6): a seventh of the database, and 3.3
  // times what level 0 holds until writers are slowed down, which is two and a half times as many tables. Beside small
  // memtables, the tables of compactions that run are more than that.
  uint64_t Level0MostUnsteered() const {
    if (memtable_ < kUsualMemtable) return 0;
    const uint64_t left = (facts_.usable() - std::min(facts_.usable(), database_)) / 100 * 95;
    const uint64_t slowdown = (left - std::min(left, database_ / 7)) / 33 * 10 / memtable_;
    return slowdown < kUsualSlowdown ? 0 : slowdown * 2 / 5;
  }

  // Of steered compaction, two have inputs and outputs of level 0 and 1 on the device, and memtables have logs there.
  uint64_t Level0MostSteered() const {
    const uint64_t tables = Room() / 100 * kSteeredPercentOfRoom / memtable_;
    return (tables - std::min(tables, memtables_)) / 4;
  }

  // So many tables of level 0 can be compacted at once beside what else compactions have on the device.
  uint64_t Level0ThatFits() const {
    if (steered_) return Level0MostSteered();
    if (!parallel()) return Room() / 2 / memtable_;
    const uint64_t on_crowded = filled() < kCrowdedPercent ? 0 : Level0MostUnsteered();
    return on_crowded >= kLevel0Least ? on_crowded : Room() / 3 / memtable_;
  }

  // A compaction of level 0 rewrites level 1, so the more it takes at once, the less is written. Look-ups pay for that,
  // and it has inputs and outputs on the device at once. Nothing else compacts level 0 or 1 meanwhile. Where several
  // compactions can run, a level 1 of half the size makes this one shorter, and the others do the rest: writers wait
  // less.
  void AdviseLevels() {
    Bounded level0{writes() ? kLevel0Most : kLevel0Usual, ""};
    level0.AtMost(Level0ThatFits(), parallel() ? "since inputs and outputs of several are on the device at once"
                                               : "since its inputs and outputs are on the device at once");
    level0.AtLeast(2, "since each compaction rewrites level 1");
    if (level0.value != kLevel0Usual) {
      Set(kFamily, "level0_file_num_compaction_trigger", std::to_string(level0.value),
          fmt::format("So many flushed tables are compacted into level 1 at once{}.", level0.why));
    }
    AdviseStalls(level0.value);
    Bounded level{level0.value * memtable_ / (parallel() ? 2 : 1), ""};
    level.AtLeast(4 * table_, "so that level 1 has some tables to choose from");
    Set(kFamily, "max_bytes_for_level_base", std::to_string(level.value),
        fmt::format("{} the {} tables of level 0 that are compacted into level 1 at once{}{}.",
                    parallel() ? "Half of" : "As much as", level0.value,
                    parallel() ? ", so that this takes less time, and compactions beside it do the rest" : "",
                    level.why));
    level_base_ = level.value;
  }

  // By default they are 5 and 9 times the trigger; half of that is enough for more tables.
  void AdviseStalls(uint64_t trigger) {
    const uint64_t slowdown = trigger * 5 / 2;
    if (slowdown <= kUsualSlowdown) return;
    Set(kFamily, "level0_slowdown_writes_trigger", std::to_string(slowdown),
        fmt::format("Two and a half times as many; RocksDB's default of {} would slow writers down while the first "
                    "ones are compacted.",
                    kUsualSlowdown));
    Set(kFamily, "level0_stop_writes_trigger", std::to_string(std::max(kUsualStop, trigger * 9 / 2)),
        "In the same proportion.");
  }

  // What waits for compaction lies on the device twice for a while. Debt is what compactions will write, level by
  // level, and not what they need at a time; where several run, they pay off twice as much before the device is full.
  // Where it is crowded for several, the triggers of level 0 bound what they have on it.
  void AdviseDebt() {
    struct Bound {
      uint64_t times;
      std::string_view as_much, soft_part, hard_part;
    };
    constexpr Bound kOne = {1, "As much", "an eighth", "a quarter"};
    constexpr Bound kSeveral = {2, "Twice as much", "a quarter", "half"};
    constexpr Bound kSeveralOnCrowded = {4, "Four times as much", "half", "all"};
    const Bound& bound = !parallel() ? kOne : crowded_for_many() ? kSeveralOnCrowded : kSeveral;
    const uint64_t soft = bound.times * std::max(facts_.capacity() / 8, Room());
    const uint64_t hard = bound.times * std::max(facts_.capacity() / 4, Room() / 2 * 3);
    if (soft >= kUsualSoftLimit) return;
    Set(kFamily, "soft_pending_compaction_bytes_limit", std::to_string(soft),
        fmt::format("{} waits for compaction as the device has room beside the database, before writers are slowed "
                    "down, or {} of the device; RocksDB's default of {} is too much for it.",
                    bound.as_much, bound.soft_part, FormatSize(kUsualSoftLimit)));
    Set(kFamily, "hard_pending_compaction_bytes_limit", std::to_string(std::min(hard, kUsualHardLimit)),
        fmt::format("Half as much again, or {} of the device, and writers wait.", bound.hard_part));
  }

  void AdviseTables() {
    Set(kTable, "block_cache", std::to_string(cache_),
        fmt::format("What is left of {} beside memtables and Isozone, and a tenth that stays free. db_bench takes "
                    "--cache_size instead.",
                    FormatSize(facts_.memory)));
    Set(kTable, "cache_index_and_filter_blocks", "true", "Indexes and filters count as memory of the cache.");
    Set(kTable, "pin_l0_filter_and_index_blocks_in_cache", "true", "Every look-up asks all tables of level 0.");
    Set(kTable, "filter_policy", "bloomfilter:10:false",
        "Ten bits a key save 99 % of the reads from tables that lack it; the device has no page cache before it.");
  }

  const AdviceFacts& facts_;
  OptionsAdvice advice_;
  uint64_t database_ = 0;
  uint64_t jobs_ = 0;
  uint64_t width_ = 0;
  std::string width_why_;
  uint64_t fill_ = 0;  // bytes of a table with index and filter
  uint64_t table_ = 0;
  std::string table_why_;
  uint64_t own_ = 0;  // bytes that Isozone holds
  uint64_t memtable_ = 0;
  uint64_t memtables_ = 0;
  std::string memtable_why_;
  uint64_t cache_ = 0;
  uint64_t level_base_ = 0;
  bool crowded_ = false;  // so that steering holds writers back
  bool steered_ = false;
};

Status Check(const AdviceFacts& facts) {
  if (facts.zones == 0 || facts.zone_capacity == 0) {
    return Status::InvalidArgument(fmt::format("{} has no zones, so there is nothing to fit", facts.device));
  }
  if (facts.memory < kLeastAdvisedMemory) {
    return Status::InvalidArgument(fmt::format("RocksDB on Isozone needs at least {} of memory; --memory says {}",
                                               FormatSize(kLeastAdvisedMemory), FormatSize(facts.memory)));
  }
  const uint64_t most = facts.usable() / 100 * kMostFilledPercent;
  if (facts.database > most) {
    return Status::InvalidArgument(fmt::format(
        "a database of {} does not fit: {} has {}{}, of which at most {} % or {} can hold tables; take a larger device "
        "or compression",
        FormatSize(facts.database), facts.device, FormatSize(facts.usable()), facts.room == 0 ? "" : " for files",
        kMostFilledPercent, FormatSize(most)));
  }
  return Status::Ok();
}

}  // namespace

std::string_view WorkloadName(Workload workload) { return kWorkloads[static_cast<size_t>(workload)]; }

Result<Workload> ParseWorkload(std::string_view text) {
  const auto* found = std::ranges::find(kWorkloads, text);
  if (found == kWorkloads.end()) {
    return Status::InvalidArgument(fmt::format("unknown workload '{}'; known: write, read, mixed", text));
  }
  return static_cast<Workload>(found - kWorkloads.begin());
}

Result<OptionsAdvice> AdviseOptions(const AdviceFacts& facts) {
  ISOZONE_RETURN_IF_ERROR(Check(facts));
  Adviser adviser(facts);
  OptionsAdvice advice = adviser.Advise();
  if (adviser.least_room() <= facts.usable() / 2) return advice;
  return Status::InvalidArgument(
      fmt::format("{} is too small for RocksDB: it has {}, and the least that memtables or level 1 take is {}; take a "
                  "device with at least twice as much",
                  facts.device, FormatSize(facts.usable()), FormatSize(adviser.least_room())));
}

std::string OptionsFileText(const OptionsAdvice& advice) {
  std::string text = fmt::format("# Options of RocksDB, as isozone advise gives them.\n# {}\n", advice.summary);
  for (const std::string& note : advice.notes) text += fmt::format("# Note: {}\n", note);
  if (!advice.uri.empty()) text += fmt::format("# In the URI of the device: {}\n", advice.uri);
  text += "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n";
  std::string_view section;
  for (const OptionSetting& setting : advice.settings) {
    if (setting.section != section) text += fmt::format("\n[{}]\n", setting.section);
    section = setting.section;
    text += fmt::format("  # {}\n  {}={}\n", setting.reason, setting.key, setting.value);
  }
  return text;
}

}  // namespace isozone
