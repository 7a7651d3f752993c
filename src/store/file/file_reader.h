// The readers of files. A range is looked up once (OpenFile::Locate), data in memory is copied, and all pieces on the
// device are read in parallel: directly into the caller's buffer if it and the piece are aligned, otherwise through an
// aligned bounce buffer.
#pragma once

#include <functional>
#include <memory>

#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/file/read_ahead.h"
#include "store/file_system.h"

namespace isozone {

class PiecewiseReader final : public FileReader {
 public:
  // Calls of a read-only mount beside a writer: the file may have become longer or been removed. They are made when a
  // read comes to the end of the file, or has touched the device. Empty on other mounts.
  struct Hooks {
    std::function<Status()> before_end;  // the file may have grown
    std::function<Status()> after_read;  // the bytes may no longer be the file's, which was removed, or moved elsewhere
  };

  PiecewiseReader(std::shared_ptr<DataPath> data_path, std::shared_ptr<Catalog> catalog, std::shared_ptr<OpenFile> file,
                  Hooks hooks)
      : data_path_(std::move(data_path)),
        catalog_(std::move(catalog)),
        file_(std::move(file)),
        hooks_(std::move(hooks)),
        reads_ahead_(data_path_->parallel && data_path_->options.read_ahead_memory > 0 && !hooks_.after_read),
        ahead_(
            *data_path_, [this](FileRead& read) { Submit(read); }, [this] { return Window(); }) {}
  ~PiecewiseReader() override;

  Result<size_t> Read(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) override;
  void Submit(FileRead& read) override;
  uint64_t size() const override { return file_->size(); }
  uint64_t inode() const override { return file_->id().value(); }

 private:
  class ReadInFlight;
  // Looks up where the bytes of `read` are, for `flight`. Returns whether there are any on the device; if not, the read
  // has its result.
  bool Prepare(ReadInFlight& flight, FileRead& read) const;
  Result<size_t> ReadAtOnce(uint64_t offset, std::span<std::byte> buffer, IoClass io_class);
  // Returns the bytes of one stripe of the file.
  uint64_t Window() const;

  // The mount lives as long as either of these.
  const std::shared_ptr<DataPath> data_path_;
  const std::shared_ptr<Catalog> catalog_;
  std::shared_ptr<OpenFile> file_;
  const Hooks hooks_;
  const bool reads_ahead_;
  ReadAhead ahead_;  // last, since its destructor waits for its reads
};

}  // namespace isozone
