#include "store/mount/open_inodes.h"

#include <vector>

namespace isozone {

std::shared_ptr<SharedFile> OpenInodes::Await(InodeId id) {
  for (auto it = files_.find(id); it != files_.end(); it = files_.find(id)) {
    if (auto file = it->second.lock()) return file;
    changed_.Wait(mu_);
  }
  return nullptr;
}

std::shared_ptr<SharedFile> OpenInodes::Find(InodeId id) {
  const MutexLock lock(mu_);
  return Await(id);
}

Result<std::shared_ptr<SharedFile>> OpenInodes::Open(InodeId id) {
  {
    const MutexLock lock(mu_);
    if (auto file = Await(id)) return file;
    files_[id];
  }
  auto made = Make(id);
  if (!made.ok()) {
    Remove(id);
    return made.status();
  }
  std::shared_ptr<SharedFile> file(made->release(), [self = shared_from_this(), id](SharedFile* last) {
    delete last;
    self->Remove(id);
  });
  const MutexLock lock(mu_);
  files_[id] = file;
  changed_.SignalAll();
  return file;
}

Result<std::unique_ptr<SharedFile>> OpenInodes::Make(InodeId id) {
  Catalog& catalog = services_.context->catalog;
  ISOZONE_ASSIGN_OR_RETURN(auto file, services_.files.Open(id));
  FileAttributes attributes;
  {
    const MutexLock lock(catalog.namespace_mutex);
    if (const Inode* inode = catalog.state.Find(id)) attributes = catalog.AttributesOf(*inode);
  }
  return std::make_unique<SharedFile>(services_, std::move(file), attributes);
}

void OpenInodes::Remove(InodeId id) {
  const MutexLock lock(mu_);
  files_.erase(id);
  changed_.SignalAll();
}

Status OpenInodes::DetachAll() {
  std::vector<std::shared_ptr<SharedFile>> open;
  {
    const MutexLock lock(mu_);
    for (const auto& [id, file] : files_) {
      if (auto shared = file.lock()) open.push_back(std::move(shared));
    }
  }
  Status status;
  for (const auto& file : open) {
    const Status detached = file->Detach();
    if (status.ok()) status = detached;
  }
  services_.zones.Release();
  return status;
}

}  // namespace isozone
