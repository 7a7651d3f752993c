#include "rocksdb/adapter/static_env.h"

#include <map>

#include <rocksdb/env.h>

#include "base/mutex.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/adapter/zoned_file_system.h"

namespace isozone {
namespace {

struct Envs {
  Mutex mu;
  std::map<std::string, std::unique_ptr<rocksdb::Env>> by_uri ISOZONE_GUARDED_BY(mu);
};

// Never destroyed: databases may be open when static objects are destroyed.
Envs& TheEnvs() {
  static Envs& envs = *new Envs;
  return envs;
}

Result<rocksdb::Env*> EnvOf(const std::string& uri, FileSystemOpener open) {
  if (!uri.starts_with(std::string(ZonedFileSystem::kClassName()) + "://")) {
    return Status::InvalidArgument("'" + uri + "' is no URI; give env={id=isozone://DEVICE?OPTIONS}");
  }
  Envs& envs = TheEnvs();
  {
    const MutexLock lock(envs.mu);
    if (const auto known = envs.by_uri.find(uri); known != envs.by_uri.end()) return known->second.get();
  }
  // Of threads that come here with one URI, all get the same mount, and one gives it its Env.
  ISOZONE_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::FileSystem> file_system, open(uri));
  const MutexLock lock(envs.mu);
  std::unique_ptr<rocksdb::Env>& env = envs.by_uri[uri];
  if (env == nullptr) env = rocksdb::NewCompositeEnv(file_system);
  return env.get();
}

}  // namespace

void RegisterStaticEnvs(rocksdb::ObjectLibrary& library, FileSystemOpener open) {
  const std::string name = ZonedFileSystem::kClassName();
  rocksdb::ObjectLibrary::PatternEntry ours(name, /*optional=*/true);
  ours.AnotherName("{" + name).AnotherName("\"" + name).AnotherName("'" + name);
  ours.AddSeparator(":", /*at_least_one=*/false);
  library.AddFactory<rocksdb::Env>(
      ours, [open](const std::string& id, std::unique_ptr<rocksdb::Env>*, std::string* error) -> rocksdb::Env* {
        rocksdb::Env* env = nullptr;
        const rocksdb::IOStatus status = WithoutExceptions([&] {
          const Result<rocksdb::Env*> made = EnvOf(id, open);
          if (made.ok()) env = *made;
          if (!made.ok()) *error = made.status().message();
          return rocksdb::IOStatus::OK();
        });
        if (!status.ok()) *error = status.ToString();
        return env;
      });
  rocksdb::ObjectLibrary::PatternEntry default_env(rocksdb::Env::kDefaultName());
  default_env.AnotherName("PosixEnv");
  library.AddFactory<rocksdb::Env>(default_env, [](const std::string&, std::unique_ptr<rocksdb::Env>*, std::string*) {
    return rocksdb::Env::Default();
  });
}

}  // namespace isozone
