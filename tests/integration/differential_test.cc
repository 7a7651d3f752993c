// Random calls on Isozone and on RocksDB's own file system of the local disk, side by side: every status (code and
// subcode), size, list of names and content must be the same. ISOZONE_TEST_SEED replays a failure; ISOZONE_TEST_OPS
// (default 10,000) makes it longer.
//
// Left out is what is documented to differ: CreateDirIfMissing makes parents, creating a file leaves other names and
// open handles of the old one alone, a log cannot be written in place, a directory cannot be opened as a file nor the
// other way round, directories have no size and one link, a file has one writer, and "..", and a slash at the end, mean
// what they say of the name alone.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "integration/scratch.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

const std::vector<std::string> kNames = {"/a",          "/b",          "/000012.log", "/000013.sst", "/MANIFEST-000005",
                                         "/CURRENT",    "/d1",         "/d2",         "/d1/a",       "/d1/b",
                                         "/d2/a",       "/d1/d3",      "/d1/d3/a",    "/d1/d3/d4",   "/nowhere/x",
                                         "/000014.log", "/d1/a/below", "/a/below",    "/./d1//b",    ""};

std::string Show(const IOStatus& status) {
  return std::to_string(status.code()) + "/" + std::to_string(status.subcode());
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoull(value);
}

// What one call is to do.
struct Draw {
  std::string first;
  std::string second;
  std::string data;
  uint64_t offset = 0;
  size_t length = 0;
};

// One of the two file systems, and what is open on it.
class Side {
 public:
  Side(std::shared_ptr<rocksdb::FileSystem> fs, std::string root) : fs_(std::move(fs)), root_(std::move(root)) {
    ISOZONE_EXPECT_OK(fs_->CreateDirIfMissing(root_, IOOptions(), nullptr));
  }
  ~Side() { CloseAll(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // The empty name stays empty.
  std::string Path(const std::string& name) const { return name.empty() ? name : root_ + name; }
  bool Exists(const std::string& name) { return fs_->FileExists(Path(name), IOOptions(), nullptr).ok(); }
  bool IsDirectory(const std::string& name) {
    bool is_directory = false;
    return fs_->IsDirectory(Path(name), IOOptions(), &is_directory, nullptr).ok() && is_directory;
  }
  uint64_t Links(const std::string& name) {
    uint64_t links = 0;
    return fs_->NumFileLinks(Path(name), IOOptions(), &links, nullptr).ok() ? links : 0;
  }
  bool has_writers() const { return !writers_.empty(); }
  bool HasWriter(const std::string& name) const { return writers_.contains(name); }
  void CloseAll() {
    for (auto& [name, writer] : writers_) ISOZONE_EXPECT_OK(writer->Close(IOOptions(), nullptr));
    writers_.clear();
    for (auto& [name, lock] : locks_) ISOZONE_EXPECT_OK(fs_->UnlockFile(lock, IOOptions(), nullptr));
    locks_.clear();
    readers_.clear();
  }
  void Remount(const std::function<std::shared_ptr<rocksdb::FileSystem>()>& mount) {
    CloseAll();
    fs_.reset();
    fs_ = mount();
  }

  // --- The calls; each says what came of it ---
  std::string OpenWriter(const Draw& draw, bool append) {
    std::unique_ptr<rocksdb::FSWritableFile> writer;
    const std::string path = Path(draw.first);
    if (!append) readers_.clear();  // they would go on reading the file of old
    const IOStatus status = append ? fs_->ReopenWritableFile(path, FileOptions(), &writer, nullptr)
                                   : fs_->NewWritableFile(path, FileOptions(), &writer, nullptr);
    if (status.ok()) writers_[draw.first] = std::move(writer);
    return Show(status);
  }
  std::string Append(const Draw& draw) {
    rocksdb::FSWritableFile& writer = *writers_.at(draw.first);
    const std::string result = Show(writer.Append(draw.data, IOOptions(), nullptr));
    return result + " " + Show(writer.Flush(IOOptions(), nullptr));
  }
  std::string Sync(const Draw& draw) { return Show(writers_.at(draw.first)->Sync(IOOptions(), nullptr)); }
  std::string Close(const Draw& draw) {
    const std::string result = Show(writers_.at(draw.first)->Close(IOOptions(), nullptr));
    writers_.erase(draw.first);
    return result;
  }
  std::string Delete(const Draw& draw) { return Show(fs_->DeleteFile(Path(draw.first), IOOptions(), nullptr)); }
  std::string Rename(const Draw& draw) {
    return Show(fs_->RenameFile(Path(draw.first), Path(draw.second), IOOptions(), nullptr));
  }
  std::string Link(const Draw& draw) {
    return Show(fs_->LinkFile(Path(draw.first), Path(draw.second), IOOptions(), nullptr));
  }
  std::string MakeDirectory(const Draw& draw) { return Show(fs_->CreateDir(Path(draw.first), IOOptions(), nullptr)); }
  std::string MakeDirectoryIfMissing(const Draw& draw) {
    return Show(fs_->CreateDirIfMissing(Path(draw.first), IOOptions(), nullptr));
  }
  std::string RemoveDirectory(const Draw& draw) { return Show(fs_->DeleteDir(Path(draw.first), IOOptions(), nullptr)); }
  std::string Size(const Draw& draw) {
    uint64_t size = 0;
    const IOStatus status = fs_->GetFileSize(Path(draw.first), IOOptions(), &size, nullptr);
    return Show(status) + " " + (IsDirectory(draw.first) ? "" : std::to_string(size));
  }
  std::string Children(const Draw& draw) {
    std::vector<std::string> names;
    std::string result = Show(fs_->GetChildren(Path(draw.first), IOOptions(), &names, nullptr));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name != "." && name != "..") result += " " + name;
    }
    return result;
  }
  std::string ChildrenWithSizes(const Draw& draw) {
    std::vector<rocksdb::FileAttributes> files;
    std::string result = Show(fs_->GetChildrenFileAttributes(Path(draw.first), IOOptions(), &files, nullptr));
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const rocksdb::FileAttributes& file : files) {
      if (file.name == "." || file.name == "..") continue;
      result += " " + file.name;
      if (!IsDirectory(draw.first + "/" + file.name)) result += "=" + std::to_string(file.size_bytes);
    }
    return result;
  }
  std::string CountLinks(const Draw& draw) {
    uint64_t links = 0;
    const IOStatus status = fs_->NumFileLinks(Path(draw.first), IOOptions(), &links, nullptr);
    return Show(status) + " " + (IsDirectory(draw.first) ? "" : std::to_string(links));
  }
  std::string Same(const Draw& draw) {
    bool same = false;
    const IOStatus status = fs_->AreFilesSame(Path(draw.first), Path(draw.second), IOOptions(), &same, nullptr);
    return Show(status) + " " + std::to_string(same ? 1 : 0);
  }
  std::string Look(const Draw& draw) {
    bool is_directory = false;
    uint64_t modified_s = 0;
    std::string result = Show(fs_->FileExists(Path(draw.first), IOOptions(), nullptr));
    result += " " + Show(fs_->IsDirectory(Path(draw.first), IOOptions(), &is_directory, nullptr));
    result += is_directory ? " directory " : " ";
    return result + Show(fs_->GetFileModificationTime(Path(draw.first), IOOptions(), &modified_s, nullptr));
  }
  std::string SyncDirectory(const Draw& draw) {
    std::unique_ptr<rocksdb::FSDirectory> directory;
    const IOStatus status = fs_->NewDirectory(Path(draw.first), IOOptions(), &directory, nullptr);
    return Show(status) + " " + (status.ok() ? Show(directory->Fsync(IOOptions(), nullptr)) : "");
  }
  std::string Lock(const Draw& draw) {
    rocksdb::FileLock* lock = nullptr;
    const IOStatus status = fs_->LockFile(Path(draw.first), IOOptions(), &lock, nullptr);
    if (status.ok()) locks_[draw.first] = lock;
    return Show(status);
  }
  std::string Unlock(const Draw& draw) {
    const auto held = locks_.extract(draw.first);
    return held.empty() ? "not held" : Show(fs_->UnlockFile(held.mapped(), IOOptions(), nullptr));
  }
  std::string ReadInOrder(const Draw& draw) {
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    const IOStatus opened = fs_->NewSequentialFile(Path(draw.first), FileOptions(), &file, nullptr);
    if (!opened.ok()) return Show(opened);
    std::string result = Show(file->Skip(draw.offset));
    for (int i = 0; i < 2; ++i)
      result += ReadWith([&](Slice* out, char* to) { return file->Read(draw.length, IOOptions(), out, to, nullptr); },
                         draw.length);
    return result;
  }
  std::string OpenReader(const Draw& draw) {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    const IOStatus opened = fs_->NewRandomAccessFile(Path(draw.first), FileOptions(), &file, nullptr);
    if (opened.ok()) readers_.push_back(std::move(file));
    return Show(opened);
  }
  // Through a reader that was opened at any time before.
  std::string ReadAnywhere(const Draw& draw) {
    if (readers_.empty()) return "no reader";
    const rocksdb::FSRandomAccessFile& file = *readers_[(draw.offset + draw.length) % readers_.size()];
    return ReadWith(
        [&](Slice* out, char* to) { return file.Read(draw.offset, draw.length, IOOptions(), out, to, nullptr); },
        draw.length);
  }
  std::string WriteInPlace(const Draw& draw) {
    std::unique_ptr<rocksdb::FSRandomRWFile> file;
    const IOStatus opened = fs_->NewRandomRWFile(Path(draw.first), FileOptions(), &file, nullptr);
    if (!opened.ok()) return Show(opened);
    std::string result = Show(file->Write(draw.offset, draw.data, IOOptions(), nullptr));
    result += ReadWith(
        [&](Slice* out, char* to) { return file->Read(draw.offset / 2, draw.length, IOOptions(), out, to, nullptr); },
        draw.length);
    return result + " " + Show(file->Close(IOOptions(), nullptr));
  }

 private:
  template <typename Read>
  static std::string ReadWith(const Read& read, size_t length) {
    std::string scratch(length + 1, '\0');
    Slice out;
    const IOStatus status = read(&out, scratch.data());
    return Show(status) + " " + std::to_string(out.size()) + "#" +
           std::to_string(std::hash<std::string>()(out.ToString()));
  }

  std::shared_ptr<rocksdb::FileSystem> fs_;
  const std::string root_;
  std::map<std::string, std::unique_ptr<rocksdb::FSWritableFile>> writers_;  // by the name that each was opened by
  std::map<std::string, rocksdb::FileLock*> locks_;
  std::vector<std::unique_ptr<rocksdb::FSRandomAccessFile>> readers_;
};

struct Call {
  const char* name;
  std::function<std::string(Side&, const Draw&)> run;
  // Whether both sides are to do the same here; may be empty.
  std::function<bool(Side&, const Draw&)> is_defined;
};

bool HasWriter(Side& side, const Draw& draw) { return side.HasWriter(draw.first); }
bool IsNoDirectory(Side& side, const Draw& draw) { return !side.IsDirectory(draw.first); }
// A file is locked under all spellings of its name, on the local disk only under the one that was given.
bool IsPlainName(Side&, const Draw& draw) { return !draw.first.starts_with("/./"); }
bool IsNoFile(Side& side, const Draw& draw) { return !side.Exists(draw.first) || side.IsDirectory(draw.first); }
bool MayBeOpened(Side& side, const Draw& draw) {
  return !side.Exists(draw.first) || side.IsDirectory(draw.first) ||
         (side.Links(draw.first) == 1 && !side.has_writers());
}
// A new file under a name that another writer was opened by would need another key in Side.
bool MayBeOpenedForWriting(Side& side, const Draw& draw) {
  return !side.HasWriter(draw.first) && MayBeOpened(side, draw);
}
bool IsInDirectory(Side& side, const std::string& name) {
  return !name.empty() && side.IsDirectory(name.substr(0, name.rfind('/')));
}
bool HasParent(Side& side, const Draw& draw) { return draw.first.empty() || IsInDirectory(side, draw.first); }
bool IsLog(const std::string& name) { return name.ends_with(".log") || name.find("MANIFEST") != std::string::npos; }
// Where both names are wrong, it depends on the kernel which one the local file system speaks of. A file stays a log,
// or none, whatever its name becomes; here the name is to tell.
bool MayBeMoved(Side& side, const Draw& draw) {
  if (IsLog(draw.first) != IsLog(draw.second)) return false;
  return side.Exists(draw.first) || IsInDirectory(side, draw.second);
}
bool MayBeLinked(Side& side, const Draw& draw) {
  if (IsLog(draw.first) != IsLog(draw.second)) return false;
  if (!side.Exists(draw.first)) return IsInDirectory(side, draw.second);
  return IsNoDirectory(side, draw) || (IsInDirectory(side, draw.second) && !side.Exists(draw.second));
}
bool MayBeWrittenInPlace(Side& side, const Draw& draw) {
  return !side.has_writers() && !IsLog(draw.first) && IsNoDirectory(side, draw);
}

const std::vector<Call> kCalls = {
    {"NewWritableFile", [](Side& s, const Draw& d) { return s.OpenWriter(d, false); }, &MayBeOpenedForWriting},
    {"ReopenWritableFile", [](Side& s, const Draw& d) { return s.OpenWriter(d, true); }, &MayBeOpenedForWriting},
    {"Append", std::mem_fn(&Side::Append), &HasWriter},
    {"Append", std::mem_fn(&Side::Append), &HasWriter},
    {"Append", std::mem_fn(&Side::Append), &HasWriter},
    {"Sync", std::mem_fn(&Side::Sync), &HasWriter},
    {"Close", std::mem_fn(&Side::Close), &HasWriter},
    {"DeleteFile", std::mem_fn(&Side::Delete), {}},
    {"RenameFile", std::mem_fn(&Side::Rename), &MayBeMoved},
    {"LinkFile", std::mem_fn(&Side::Link), &MayBeLinked},
    {"CreateDir", std::mem_fn(&Side::MakeDirectory), {}},
    {"CreateDirIfMissing", std::mem_fn(&Side::MakeDirectoryIfMissing), &HasParent},
    {"DeleteDir", std::mem_fn(&Side::RemoveDirectory), {}},
    {"GetFileSize", std::mem_fn(&Side::Size), {}},
    {"GetChildren", std::mem_fn(&Side::Children), {}},
    {"GetChildrenFileAttributes", std::mem_fn(&Side::ChildrenWithSizes), {}},
    {"NumFileLinks", std::mem_fn(&Side::CountLinks), {}},
    {"AreFilesSame", std::mem_fn(&Side::Same), {}},
    {"FileExists, IsDirectory, GetFileModificationTime", std::mem_fn(&Side::Look), {}},
    {"NewDirectory, Fsync", std::mem_fn(&Side::SyncDirectory), &IsNoFile},
    {"LockFile", std::mem_fn(&Side::Lock), &IsPlainName},
    {"UnlockFile", std::mem_fn(&Side::Unlock), {}},
    {"NewSequentialFile, Skip, Read", std::mem_fn(&Side::ReadInOrder), &IsNoDirectory},
    {"NewRandomAccessFile", std::mem_fn(&Side::OpenReader), &IsNoDirectory},
    {"Read", std::mem_fn(&Side::ReadAnywhere), {}},
    {"NewRandomRWFile, Write, Read", std::mem_fn(&Side::WriteInPlace), &MayBeWrittenInPlace},
};

class DifferentialTest : public ScratchDevice {
 protected:
  static Draw DrawOne(Random& random) {
    Draw draw;
    draw.first = kNames[random.Below(kNames.size())];
    draw.second = kNames[random.Below(kNames.size())];
    draw.data = std::string(random.Below(random.Chance(0.3) ? 200000 : 300), static_cast<char>('a' + random.Below(26)));
    draw.offset = random.Below(random.Chance(0.3) ? 200000 : 3000);
    // The local file system of RocksDB answers a read of no bytes with the last error of anything (errno).
    draw.length = 1 + random.Below(random.Chance(0.3) ? 300000 : 5000);
    return draw;
  }
};

TEST_F(DifferentialTest, AnswersWhatTheLocalFileSystemAnswers) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  const uint64_t operations = FromEnvironment("ISOZONE_TEST_OPS", 10000);
  Random random(seed);
  Side local(rocksdb::FileSystem::Default(), scratch_.path() + "/local");
  Side device(Open(), "/device");
  for (uint64_t i = 0; i < operations; ++i) {
    if (random.Chance(0.001)) {
      local.CloseAll();
      device.Remount([&] { return Open(); });
    }
    const Draw draw = DrawOne(random);
    const Call& call = kCalls[random.Below(kCalls.size())];
    if (call.is_defined && !call.is_defined(local, draw)) continue;
    const std::string expected = call.run(local, draw);
    ASSERT_EQ(call.run(device, draw), expected)
        << call.name << "('" << draw.first << "', '" << draw.second << "'), operation " << i;
  }
}

}  // namespace
}  // namespace isozone
