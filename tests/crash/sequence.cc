#include "crash/sequence.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

namespace isozone::crash {
namespace {

constexpr std::array kActionNames = {"create",   "append", "sync",      "rename", "link",  "unlink",
                                     "truncate", "extend", "overwrite", "mkdir",  "rmdir", "fsync"};
const std::vector<std::string>& FileNames() {
  static const std::vector<std::string> names = {"/A", "/B", "/C/A", "/D/B"};
  return names;
}
const std::vector<std::string>& DirectoryNames() {
  static const std::vector<std::string> names = {"/C", "/D"};
  return names;
}

std::string Exchanged(std::string path) {
  for (char& c : path) {
    switch (c) {
      case 'A':
        c = 'B';
        break;
      case 'B':
        c = 'A';
        break;
      case 'C':
        c = 'D';
        break;
      case 'D':
        c = 'C';
        break;
      default:
        break;
    }
  }
  return path;
}

Sequence Exchanged(Sequence sequence) {
  for (Operation& operation : sequence) {
    operation.path = Exchanged(operation.path);
    operation.to = Exchanged(operation.to);
  }
  return sequence;
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

Result<Operation> ParseOperation(const std::string& text) {
  std::istringstream words(text);
  std::string action;
  std::string second;
  Operation operation;
  words >> action >> operation.path >> second;
  const auto* const name = std::find(kActionNames.begin(), kActionNames.end(), action);
  operation.action = static_cast<Action>(name - kActionNames.begin());
  if (operation.action == Action::kCreate) {
    operation.kind = second == FileKindName(FileKind::kLog) ? FileKind::kLog : FileKind::kData;
  } else {
    operation.to = second;
  }
  const std::vector<Operation> all = AllOperations();
  if (name == kActionNames.end() || std::find(all.begin(), all.end(), operation) == all.end()) {
    return Status::InvalidArgument(fmt::format("'{}' is no operation; there is for instance 'rename /A /C/A'", text));
  }
  return operation;
}

void Extend(const Names& names, size_t length, const std::vector<Operation>& all, Sequence& sequence,
            const std::function<void(const Sequence&)>& visit) {
  if (sequence.size() == length) return visit(sequence);
  for (const Operation& operation : all) {
    if (!names.Allows(operation)) continue;
    Names next = names;
    next.Apply(operation);
    sequence.push_back(operation);
    Extend(next, length, all, sequence, visit);
    sequence.pop_back();
  }
}

}  // namespace

std::string Operation::ToString() const {
  std::string text = fmt::format("{} {}", kActionNames.at(static_cast<size_t>(action)), path);
  if (action == Action::kCreate) text += fmt::format(" {}", FileKindName(kind));
  if (!to.empty()) text += " " + to;
  return text;
}

std::string ToString(const Sequence& sequence) {
  std::string text;
  for (const Operation& operation : sequence) text += (text.empty() ? "" : "; ") + operation.ToString();
  return text;
}

Result<Sequence> ParseSequence(const std::string& text) {
  Sequence sequence;
  std::istringstream operations(text);
  for (std::string one; std::getline(operations, one, ';');) {
    ISOZONE_ASSIGN_OR_RETURN(sequence.emplace_back(),
                             ParseOperation(one.substr(std::min(one.find_first_not_of(' '), one.size()))));
  }
  return sequence;
}

std::vector<Operation> AllOperations() {
  std::vector<Operation> all;
  for (const std::string& path : FileNames()) {
    for (const FileKind kind : {FileKind::kData, FileKind::kLog}) all.push_back({Action::kCreate, path, "", kind});
    for (const Action action :
         {Action::kAppend, Action::kSync, Action::kUnlink, Action::kTruncate, Action::kExtend, Action::kOverwrite}) {
      all.push_back({action, path, "", FileKind::kData});
    }
    for (const std::string& to : FileNames()) {
      if (to == path) continue;
      all.push_back({Action::kRename, path, to, FileKind::kData});
      all.push_back({Action::kLink, path, to, FileKind::kData});
    }
  }
  for (const std::string& path : DirectoryNames()) {
    all.push_back({Action::kMakeDirectory, path, "", FileKind::kData});
    all.push_back({Action::kRemoveDirectory, path, "", FileKind::kData});
  }
  all.push_back({Action::kSyncDirectory, "/", "", FileKind::kData});
  return all;
}

bool Names::HasParent(const std::string& path) const {
  const std::string parent = ParentOf(path);
  return parent.empty() || directories_.contains(parent);
}

bool Names::IsEmptyDirectory(const std::string& path) const {
  return directories_.contains(path) &&
         std::none_of(files_.begin(), files_.end(), [&](const auto& file) { return ParentOf(file.first) == path; });
}

bool Names::Allows(const Operation& operation) const {
  const auto file = files_.find(operation.path);
  switch (operation.action) {
    case Action::kCreate:
      return HasParent(operation.path);
    case Action::kAppend:
    case Action::kSync:
    case Action::kUnlink:
    case Action::kExtend:
      return file != files_.end();
    case Action::kTruncate:
      return file != files_.end() && !file->second.empty;
    case Action::kOverwrite:
      return file != files_.end() && !file->second.empty && file->second.kind != FileKind::kLog;
    case Action::kRename: {
      const auto target = files_.find(operation.to);
      const bool same = file != files_.end() && target != files_.end() && file->second.id == target->second.id;
      return file != files_.end() && HasParent(operation.to) && !same;
    }
    case Action::kLink:
      return file != files_.end() && HasParent(operation.to) && !IsFile(operation.to);
    case Action::kMakeDirectory:
      return !directories_.contains(operation.path);
    case Action::kRemoveDirectory:
      return IsEmptyDirectory(operation.path);
    case Action::kSyncDirectory:
      return true;
  }
  return false;
}

void Names::Apply(const Operation& operation) {
  switch (operation.action) {
    case Action::kCreate:
      files_[operation.path] = {operation.kind, next_id_++, true};
      return;
    case Action::kAppend:
    case Action::kExtend: {
      const uint32_t id = files_.at(operation.path).id;
      for (auto& [path, file] : files_) {
        if (file.id == id) file.empty = false;
      }
      return;
    }
    case Action::kRename:
      files_[operation.to] = files_.at(operation.path);
      files_.erase(operation.path);
      return;
    case Action::kLink:
      files_[operation.to] = files_.at(operation.path);
      return;
    case Action::kUnlink:
      files_.erase(operation.path);
      return;
    case Action::kMakeDirectory:
      directories_.insert(operation.path);
      return;
    case Action::kRemoveDirectory:
      directories_.erase(operation.path);
      return;
    case Action::kSync:
    case Action::kTruncate:
    case Action::kOverwrite:
    case Action::kSyncDirectory:
      return;
  }
}

void ForEachSequence(const Names& start, size_t length, bool symmetric,
                     const std::function<void(const Sequence&)>& visit) {
  Sequence sequence;
  Extend(start, length, AllOperations(), sequence, [&](const Sequence& found) {
    if (symmetric && ToString(Exchanged(found)) < ToString(found)) return;
    visit(found);
  });
}

}  // namespace isozone::crash
