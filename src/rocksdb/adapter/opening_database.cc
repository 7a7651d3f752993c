#include "rocksdb/adapter/opening_database.h"

#include <utility>

#include "rocksdb/adapter/file_class.h"

namespace isozone {
namespace {

struct Note {
  std::string folder;
  std::optional<SteeringOptions> listener;
};
thread_local Note note;

}  // namespace

void OpeningDatabase::FileOpened(std::string_view path) {
  if (FileTypeOf(path) != FileType::kManifest) return;
  note = {.folder = std::string(path.substr(0, path.rfind('/'))), .listener = std::nullopt};
}

void OpeningDatabase::ListenerAsked(const SteeringOptions& options) {
  if (!note.folder.empty() && !note.listener) note.listener = options;
}

std::optional<SteeringOptions> OpeningDatabase::Take(const std::string& path) {
  const Note taken = std::exchange(note, Note());
  return taken.folder == path ? taken.listener : std::nullopt;
}

}  // namespace isozone
