// The drivers of the column families of a database, as one.
#include <utility>

#include <nlohmann/json.hpp>

#include "adapter/column_family_driver.h"
#include "adapter/status_mapping.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

class DriverOfAll : public CompactionDriver {
 public:
  rocksdb::Status Add(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                      const ColumnFamilyDriverOptions& options) {
    std::unique_ptr<ColumnFamilyDriver> driver;
    rocksdb::Status status = ColumnFamilyDriver::Open(db, column_family, options, &driver);
    if (status.ok()) drivers_.push_back(std::move(driver));
    return status;
  }

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
    return nlohmann::json({{"compactions", all.compactions},
                           {"refused", all.refused},
                           {"failed", all.failed},
                           {"bytes_read", all.bytes_read},
                           {"bytes_written", all.bytes_written},
                           {"short_lived_bytes", all.short_lived_bytes},
                           {"held_flushes", all.held_flushes},
                           {"t_zones_most", all.t_zones_most},
                           {"t_zones_mean", all.compactions == 0 ? 0.0
                                                                 : static_cast<double>(all.t_zones_sum) /
                                                                       static_cast<double>(all.compactions)}})
        .dump();
  }

 private:
  std::vector<std::unique_ptr<ColumnFamilyDriver>> drivers_;
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
    auto driver = std::make_unique<DriverOfAll>();
    const uint32_t threads = options.threads > 0 ? options.threads : DriverThreads(db->GetDBOptions());
    for (rocksdb::ColumnFamilyHandle* column_family : column_families) {
      status = driver->Add(db, column_family, {.picker = options.picker, .threads = threads, .t_zone = options.t_zone});
      if (!status.ok()) return rocksdb::IOStatus::OK();
    }
    *result = std::move(driver);
    return rocksdb::IOStatus::OK();
  });
  return thrown.ok() ? status : rocksdb::Status(thrown);
}

}  // namespace isozone
