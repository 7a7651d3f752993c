// PublishedPage: the statistics page of a mount, from before it has a name until the mount has ended.
//
// Thread safety: as StatisticsWriter; the rest is for one thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "insight/stats/page_file.h"
#include "insight/stats/page_reader.h"
#include "insight/stats/page_writer.h"

namespace isozone {

class PublishedPage {
 public:
  // `header`: as StatisticsWriter. The errors are those of PageFile::Make.
  static Result<std::unique_ptr<PublishedPage>> Make(const PageOwner& owner, const PageHeader& header,
                                                     const std::string& directory = kPageDirectory) {
    const size_t bytes = PageLayout::Size(header.zone_count, header.group_count);
    ISOZONE_ASSIGN_OR_RETURN(auto file, PageFile::Make(owner, bytes, directory));
    return std::unique_ptr<PublishedPage>(new PublishedPage(std::move(file), header));
  }
  // Makes a page that nobody else can see, whatever Publish does.
  static Result<std::unique_ptr<PublishedPage>> MakePrivate(const PageHeader& header) {
    ISOZONE_ASSIGN_OR_RETURN(auto file, PageFile::MakePrivate(PageLayout::Size(header.zone_count, header.group_count)));
    return std::unique_ptr<PublishedPage>(new PublishedPage(std::move(file), header));
  }
  ~PublishedPage() { End(); }
  PublishedPage(const PublishedPage&) = delete;
  PublishedPage& operator=(const PublishedPage&) = delete;

  StatisticsWriter& writer() { return writer_; }
  // Takes a look at the page, as another process would. Any thread may call it.
  Result<Statistics> Read() const { return ReadPage(file_->fd(), writer_.header()); }
  // See PageFile::Publish; to be called when the figures were published once.
  Status Publish() { return file_->Publish(); }
  // The mount has ended: a reader that has the page open learns it, and nobody opens it any more.
  void End() {
    writer_.End();
    file_->Remove();
  }

 private:
  PublishedPage(std::unique_ptr<PageFile> file, const PageHeader& header)
      : file_(std::move(file)), writer_(file_->words(), header) {}

  const std::unique_ptr<PageFile> file_;
  StatisticsWriter writer_;
};

}  // namespace isozone
