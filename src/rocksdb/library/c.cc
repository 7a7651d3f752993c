// The interface for C (isozone/c.h), on that for C++ (isozone/isozone.h) and on RocksDB's own for C.
//
// rocksdb_env_t is RocksDB's, and its header does not show what is in it. In every release from 7.8 to 11.8 it begins
// with the Env*, and a flag behind it says whether that is the default Env, which is then not deleted with it. To
// depend on no more than the first of these, CreateEnv takes a rocksdb_env_t that RocksDB has allocated, for an Env in
// memory, and exchanges that Env for ours. Before that, it looks whether the default Env is where it is expected.
#include "isozone/c.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <rocksdb/c.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>

#include "isozone/isozone.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/steering/steering_listener.h"

struct isozone_t {
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

namespace {

using rocksdb::IOStatus;

// Runs body(), which returns a Status, and tells the caller of an error.
template <typename Body>
void Run(char** errptr, Body&& body) noexcept {
  rocksdb::Status status;
  const IOStatus thrown = isozone::WithoutExceptions([&] {
    status = std::forward<Body>(body)();
    return IOStatus::OK();
  });
  if (!thrown.ok()) status = thrown;
  if (status.ok() || errptr == nullptr) return;
  std::string text = status.ToString();
  std::ranges::replace(text, '\n', ' ');  // which a URI or a path may have
  std::free(*errptr);
  *errptr = strdup(text.c_str());
}

rocksdb::Status Missing(const char* what) {
  return rocksdb::Status::InvalidArgument(std::string(what) + " is NULL, perhaps because an earlier call has failed");
}

rocksdb::Env*& EnvIn(rocksdb_env_t* env) { return *reinterpret_cast<rocksdb::Env**>(env); }

struct DestroyEnv {
  void operator()(rocksdb_env_t* env) const { rocksdb_env_destroy(env); }
};
using OwnedEnv = std::unique_ptr<rocksdb_env_t, DestroyEnv>;

rocksdb::Status CreateEnv(const std::shared_ptr<rocksdb::FileSystem>& file_system, rocksdb_env_t** result) {
  const OwnedEnv known(rocksdb_create_default_env());
  if (EnvIn(known.get()) != rocksdb::Env::Default()) {
    return rocksdb::Status::NotSupported(
        "this RocksDB lays out rocksdb_env_t in another way; give the URI to rocksdb_get_options_from_string as "
        "env={id=isozone://...}");
  }
  std::unique_ptr<rocksdb::Env> ours = rocksdb::NewCompositeEnv(file_system);
  OwnedEnv env(rocksdb_create_mem_env());
  delete std::exchange(EnvIn(env.get()), ours.release());
  *result = env.release();
  return rocksdb::Status::OK();
}

rocksdb::Status Drive(rocksdb_options_t* options, const std::string& picker) {
  const std::string listener = "listeners={id=isozone;compaction=" + picker + "}";
  // The braces hold what the listener is told. One in `picker` would set other options of RocksDB.
  bool steers = !picker.empty() && picker.find_first_of("{}") == std::string::npos;
  if (steers) {
    rocksdb::DBOptions with_listener;
    const rocksdb::Status status =
        rocksdb::GetDBOptionsFromString(rocksdb::ConfigOptions(), rocksdb::DBOptions(), listener, &with_listener);
    if (!status.ok()) return status;
    // compaction=none is valid for a listener in an options file, but nothing would compact what is opened here.
    steers = isozone::SteeringListener::In(with_listener) != nullptr;
  }
  if (!steers) {
    return rocksdb::Status::InvalidArgument("'" + picker + "' is no picker; use isozone, ll, leveled, greedy or gear");
  }
  const std::string text = listener + ";compaction_style=kCompactionStyleNone;sst_partitioner_factory=isozone";
  char* error = nullptr;
  rocksdb_get_options_from_string(options, text.c_str(), options, &error);
  if (error == nullptr) return rocksdb::Status::OK();
  const std::string message = error;
  std::free(error);
  return rocksdb::Status::InvalidArgument(message);
}

}  // namespace

const char* isozone_version() {
  static const std::string version = isozone::Version();
  return version.c_str();
}

void isozone_register() {}

void isozone_format(const char* uri, unsigned char force, char** errptr) {
  Run(errptr, [&] { return uri == nullptr ? Missing("the URI") : isozone::CreateFileSystem(uri, force != 0); });
}

isozone_t* isozone_open(const char* uri, char** errptr) {
  isozone_t* result = nullptr;
  Run(errptr, [&]() -> rocksdb::Status {
    if (uri == nullptr) return Missing("the URI");
    auto device = std::make_unique<isozone_t>();
    rocksdb::Status status = isozone::OpenFileSystem(uri, &device->file_system);
    if (status.ok()) result = device.release();
    return status;
  });
  return result;
}

void isozone_close(isozone_t* device) {
  Run(nullptr, [&] {
    delete device;
    return rocksdb::Status::OK();
  });
}

rocksdb_env_t* isozone_create_env(isozone_t* device, char** errptr) {
  rocksdb_env_t* result = nullptr;
  Run(errptr, [&] { return device == nullptr ? Missing("the device") : CreateEnv(device->file_system, &result); });
  return result;
}

char* isozone_statistics(isozone_t* device, char** errptr) {
  char* result = nullptr;
  Run(errptr, [&]() -> rocksdb::Status {
    if (device == nullptr) return Missing("the device");
    std::string json;
    rocksdb::Status status = isozone::GetStats(*device->file_system, &json);
    if (status.ok()) result = strdup(json.c_str());
    return status;
  });
  return result;
}

void isozone_collect(isozone_t* device, double until_free_percent, isozone_progress progress, void* context,
                     char** errptr) {
  Run(errptr, [&]() -> rocksdb::Status {
    if (device == nullptr) return Missing("the device");
    isozone::CollectionProgress tell;
    if (progress != nullptr) {
      tell = [=](uint64_t copied, uint64_t to_copy) { return progress(context, copied, to_copy) != 0; };
    }
    return isozone::CollectGarbage(*device->file_system, until_free_percent, tell);
  });
}

void isozone_set_collection(isozone_t* device, const char* text, char** errptr) {
  Run(errptr, [&]() -> rocksdb::Status {
    if (device == nullptr) return Missing("the device");
    if (text == nullptr) return Missing("the text");
    return isozone::SetGarbageCollection(*device->file_system, text);
  });
}

void isozone_drive(rocksdb_options_t* options, const char* picker, char** errptr) {
  Run(errptr, [&]() -> rocksdb::Status {
    if (options == nullptr) return Missing("the set of options");
    if (picker == nullptr) return Missing("the picker");
    return Drive(options, picker);
  });
}

void isozone_free(void* memory) { std::free(memory); }
