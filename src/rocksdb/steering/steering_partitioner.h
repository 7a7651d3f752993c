// SteeringPartitionerFactory is the partitioner of an options file, `sst_partitioner_factory=isozone`. It tells levels
// (rocksdb/adapter/lsm_level.h), cuts the outputs of steered compactions where the picker says (output_guide.h), and
// refuses to open a database that would be neither steered nor compacted by RocksDB.
//
// Thread safety: any thread.
#pragma once

#include <memory>

#include <rocksdb/sst_partitioner.h>
#include <rocksdb/utilities/object_registry.h>

#include "rocksdb/steering/driver_settings.h"

namespace isozone {

class SteeringPartitionerFactory : public rocksdb::SstPartitionerFactory {
 public:
  static const char* kClassName() { return kSteeringName; }
  const char* Name() const override { return kClassName(); }
  // Returns InvalidArgument, which ends DB::Open, for a database that a listener would steer and cannot. If Isozone's
  // listener is missing, logs what that means.
  rocksdb::Status ValidateOptions(const rocksdb::DBOptions& db_options,
                                  const rocksdb::ColumnFamilyOptions& options) const override;
  // Returns the partitioner of a job, or null if its level is not known: RocksDB then cuts tables as without one.
  std::unique_ptr<rocksdb::SstPartitioner> CreatePartitioner(
      const rocksdb::SstPartitioner::Context& context) const override;
};

// Makes RocksDB know the listener and the partitioner by their names in options.
void RegisterSteering(rocksdb::ObjectLibrary& library);

}  // namespace isozone
