// The drivers of the column families of a database, as one: those that a program makes, and the one of a listener.
#include <utility>

#include <nlohmann/json.hpp>

#include "isozone/isozone.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/steering/column_family_driver.h"
#include "rocksdb/steering/steered_databases.h"

namespace isozone {
namespace {

std::string AsJson(const ColumnFamilyDriverStats& stats) {
  const double compactions = stats.compactions == 0 ? 1.0 : static_cast<double>(stats.compactions);
  return nlohmann::json({{"compactions", stats.compactions},
                         {"refused", stats.refused},
                         {"failed", stats.failed},
                         {"tables_moved", stats.tables_moved},
                         {"bytes_read", stats.bytes_read},
                         {"bytes_written", stats.bytes_written},
                         {"short_lived_bytes", stats.short_lived_bytes},
                         {"held_flushes", stats.held_flushes},
                         {"t_zones_most", stats.t_zones_most},
                         {"t_zones_mean", static_cast<double>(stats.t_zones_sum) / compactions}})
      .dump();
}

class Drivers : public CompactionDriver {
 public:
  void Add(std::shared_ptr<ColumnFamilyDriver> driver) { drivers_.push_back(std::move(driver)); }

  rocksdb::Status WaitUntilIdle() override {
    for (const auto& driver : drivers_) {
      rocksdb::Status status = driver->WaitUntilIdle();
      if (!status.ok()) return status;
    }
    return rocksdb::Status::OK();
  }

  std::string Stats() const override {
    ColumnFamilyDriverStats all;
    for (const auto& driver : drivers_) all += driver->Stats();
    return AsJson(all);
  }

 private:
  std::vector<std::shared_ptr<ColumnFamilyDriver>> drivers_;
};

}  // namespace

CompactionDriver::~CompactionDriver() = default;

rocksdb::Status CompactionDriver::Open(rocksdb::DB* db,
                                       const std::vector<rocksdb::ColumnFamilyHandle*>& column_families,
                                       const CompactionDriverOptions& options,
                                       std::unique_ptr<CompactionDriver>* result) {
  rocksdb::Status status;
  const rocksdb::IOStatus thrown = WithoutExceptions([&] {
    result->reset();
    (void)SteeredDatabases::DriverOf(db);  // that of a listener is the first, however short a time ago `db` was opened
    auto drivers = std::make_unique<Drivers>();
    const uint32_t threads = options.threads > 0 ? options.threads : DriverThreads(db->GetDBOptions());
    for (rocksdb::ColumnFamilyHandle* column_family : column_families) {
      std::unique_ptr<ColumnFamilyDriver> driver;
      status = ColumnFamilyDriver::Open(db, column_family,
                                        {.picker = options.picker,
                                         .threads = threads,
                                         .t_zone = options.t_zone,
                                         .dynamic_levels = options.dynamic_levels},
                                        &driver);
      if (!status.ok()) return rocksdb::IOStatus::OK();
      drivers->Add(std::move(driver));
    }
    *result = std::move(drivers);
    return rocksdb::IOStatus::OK();
  });
  return thrown.ok() ? status : rocksdb::Status(thrown);
}

rocksdb::Status CompactionDriver::Find(rocksdb::DB* db, std::unique_ptr<CompactionDriver>* result) {
  return WithoutExceptions([&] {
    result->reset();
    ColumnFamilyDriver* const driver = SteeredDatabases::DriverOf(db);
    if (driver == nullptr) return rocksdb::IOStatus::NotFound("no listener steers the database");
    auto drivers = std::make_unique<Drivers>();
    drivers->Add({driver, [](ColumnFamilyDriver*) {}});  // it belongs to the database
    *result = std::move(drivers);
    return rocksdb::IOStatus::OK();
  });
}

}  // namespace isozone
