// Readers: a range is looked up once (OpenFile::Locate), what memory holds is copied, and all pieces on the device are
// read together, straight into the caller's buffer where both are aligned, through an aligned bounce buffer where not.
#pragma once

#include <functional>
#include <memory>

#include "fs/file/mount_context.h"
#include "fs/file/read_ahead.h"
#include "fs/file_system.h"

namespace isozone {

class PiecewiseReader final : public FileReader {
 public:
  // `refresh` is called where a read comes to the end of the file or has touched the device, and may find the file
  // longer or gone (a read-only mount beside a writer); empty where that cannot be.
  struct Hooks {
    std::function<void()> before_end;    // the file may have grown
    std::function<Status()> after_read;  // the bytes read may no longer be the file's: removed, or moved elsewhere
  };

  PiecewiseReader(std::shared_ptr<MountContext> context, std::shared_ptr<OpenFile> file, Hooks hooks)
      : context_(std::move(context)),
        file_(std::move(file)),
        hooks_(std::move(hooks)),
        reads_ahead_(context_->parallel && !hooks_.after_read),
        ahead_(
            *context_, [this](FileRead& read) { Submit(read); }, [this] { return Window(); }) {}
  ~PiecewiseReader() override;

  Result<size_t> Read(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) override;
  void Submit(FileRead& read) override;
  uint64_t size() const override { return file_->size(); }
  uint64_t inode() const override { return file_->id().value(); }

 private:
  void SubmitOnce(FileRead& read);
  Result<size_t> ReadAtOnce(uint64_t offset, std::span<std::byte> buffer, IoClass io_class);
  // Bytes of a stripe of the file.
  uint64_t Window() const;

  const std::shared_ptr<MountContext> context_;
  std::shared_ptr<OpenFile> file_;
  const Hooks hooks_;
  const bool reads_ahead_;
  ReadAhead ahead_;  // last: it waits for its reads when it goes
};

}  // namespace isozone
