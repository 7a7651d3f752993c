#include "device/linux/nvme_namespace.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "device/linux/refusals.h"

namespace isozone {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kCommands = "ng";         // begins the name of a character device, ng0n1
constexpr std::string_view kBlocks = "nvme";         // and that of its block device, nvme0n1
constexpr std::string_view kClass = "nvme-generic";  // the class of such character devices in sysfs
constexpr uint8_t kIdentify = 0x06;                  // Base specification: the opcode

// Identify Namespace data structure: bytes of its fields.
constexpr size_t kSize = 0;       // NSZE, in blocks
constexpr size_t kFormat = 26;    // FLBAS: the format in use, bits 3:0 and 6:5
constexpr size_t kFormats = 128;  // LBAF0: bytes of metadata, and the power of two of a block's bytes
constexpr size_t kFormatBytes = 4;

std::string CharacterFolder(dev_t number) {
  return fmt::format("/sys/dev/char/{}:{}", ::major(number), ::minor(number));
}

// The name in sysfs of what `status` tells of, if it is a character device that takes the commands of a namespace.
std::optional<std::string> NameInSysfs(const struct stat& status) {
  if (!S_ISCHR(status.st_mode)) return std::nullopt;
  const dev_t number = status.st_rdev;
  std::error_code error;
  const stdfs::path kind = stdfs::canonical(CharacterFolder(number) + "/subsystem", error);
  if (error || kind.filename() != kClass) return std::nullopt;
  const stdfs::path device = stdfs::canonical(CharacterFolder(number), error);
  return error ? std::nullopt : std::optional(device.filename().string());
}

// Whether a character device takes commands for the controller, or the subsystem, of a block device.
bool AreOfOneController(dev_t commands, dev_t block) {
  std::error_code error;
  return stdfs::equivalent(CharacterFolder(commands) + "/device", SysfsFolder(block) + "/device", error);
}

// Whether both descriptors are of one namespace, whose number is `id`.
bool AreOfOneNamespace(const FileDescriptor& commands, const FileDescriptor& block, int& id) {
  struct stat character {};
  struct stat disk {};
  if (::fstat(commands.get(), &character) != 0 || ::fstat(block.get(), &disk) != 0) return false;
  if (!NameInSysfs(character) || !S_ISBLK(disk.st_mode)) return false;
  if (!AreOfOneController(character.st_rdev, disk.st_rdev)) return false;
  id = ::ioctl(commands.get(), NVME_IOCTL_ID);
  return id > 0 && id == ::ioctl(block.get(), NVME_IOCTL_ID);
}

template <typename Number>
Number LittleEndian(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  Number number = 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

}  // namespace

bool TakesNvmeCommands(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && NameInSysfs(status).has_value();
}

Result<BlockDeviceNode> BlockDeviceBeside(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return NoSuchDevice(path);
  const std::optional<std::string> name = NameInSysfs(status);
  if (!name || !name->starts_with(kCommands)) return NotABlockDevice(path);
  const std::string beside = fmt::format("/dev/{}{}", kBlocks, name->substr(kCommands.size()));
  auto node = FindBlockDevice(beside);
  if (node.ok() && AreOfOneController(status.st_rdev, node->number)) return node;
  return Status::NotSupported(
      fmt::format("{} has no block device of its namespace beside it, such as {}", path, beside));
}

Status CheckIdentity(std::span<const std::byte, 4096> identity, const QueueFacts& facts) {
  const auto format = static_cast<size_t>(identity[kFormat]);
  const size_t at = kFormats + kFormatBytes * ((format & 0xF) | ((format & 0x60) >> 1));
  const auto metadata = LittleEndian<uint16_t>(identity.subspan(at));
  const auto block_bits = static_cast<uint32_t>(identity[at + 2]);
  if (metadata != 0) {
    return Status::NotSupported(fmt::format(
        "its blocks have {} bytes of metadata, for which the kernel has to care; name the block device", metadata));
  }
  const uint64_t blocks = LittleEndian<uint64_t>(identity.subspan(kSize));
  if (block_bits >= 32 || uint64_t{1} << block_bits != facts.logical_block ||
      blocks != facts.size / facts.logical_block) {
    return Status::NotSupported("it is not the namespace of its block device; name the block device");
  }
  return {};
}

Result<OpenedNamespace> OpenNamespace(const std::string& path, const FileDescriptor& block, const QueueFacts& facts,
                                      OpenMode mode) {
  OpenedNamespace opened;
  opened.commands = FileDescriptor(::open(path.c_str(), (mode == OpenMode::kReadOnly ? O_RDONLY : O_RDWR) | O_CLOEXEC));
  if (opened.commands.get() < 0) {
    if (errno == EACCES || errno == EPERM) return CommandsForbidden(errno);
    return Status::FromErrno(errno, "cannot open it");
  }
  int id = 0;
  if (!AreOfOneNamespace(opened.commands, block, id)) {
    return Status::NotSupported("it is not the namespace of its block device; name the block device");
  }
  opened.id = static_cast<uint32_t>(id);
  alignas(8) std::array<std::byte, 4096> identity{};
  nvme_passthru_cmd command{};
  command.opcode = kIdentify;
  command.nsid = opened.id;
  command.addr = reinterpret_cast<uint64_t>(identity.data());
  command.data_len = identity.size();
  const int answer = ::ioctl(opened.commands.get(), NVME_IOCTL_ADMIN_CMD, &command);
  if (answer != 0) return IdentifyFailed(answer < 0 ? -errno : answer);
  ISOZONE_RETURN_IF_ERROR(CheckIdentity(identity, facts));
  return opened;
}

}  // namespace isozone
