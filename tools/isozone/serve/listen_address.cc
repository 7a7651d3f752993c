#include "isozone/serve/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace isozone::cli {
namespace {

constexpr int kBacklog = 64;

struct HostAndPort {
  std::string_view host;  // without brackets
  std::string_view port;  // empty: none is given
  bool bracketed = false;
};

// Nothing if `text` does not have the form HOST, HOST:PORT, [HOST] or [HOST]:PORT.
std::optional<HostAndPort> SplitHost(std::string_view text) {
  HostAndPort parts;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    parts = {text.substr(1, end - 1), {}, true};
    text.remove_prefix(end + 1);
  } else {
    parts.host = text.substr(0, text.find(':'));
    text.remove_prefix(parts.host.size());
  }
  if (parts.host.empty()) return std::nullopt;
  if (text.empty()) return parts;
  parts.port = text.substr(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text[0] != ':' || parts.port.empty() || !std::ranges::all_of(parts.port, is_digit)) return std::nullopt;
  return parts;
}

bool IsIpv4(const std::string& host) {
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool IsIpv6(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// The address as the kernel takes it, and its size.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  explicit SocketAddress(const ListenAddress& address) {
    if (IsIpv6(address.host)) {
      sockaddr_in6 six{};
      six.sin6_family = AF_INET6;
      six.sin6_port = htons(address.port);
      ::inet_pton(AF_INET6, address.host.c_str(), &six.sin6_addr);
      std::memcpy(&storage, &six, size = sizeof(six));
    } else {
      sockaddr_in four{};
      four.sin_family = AF_INET;
      four.sin_port = htons(address.port);
      ::inet_pton(AF_INET, address.host.c_str(), &four.sin_addr);
      std::memcpy(&storage, &four, size = sizeof(four));
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Status CannotListen(int error, const ListenAddress& address) {
  if (error == EADDRINUSE) {
    return Status::Busy(
        fmt::format("{} is taken by another process: give another port with --listen, or :0 for any", address.Text()));
  }
  if (error == EADDRNOTAVAIL) {
    return Status::InvalidArgument(fmt::format("{} is no address of this machine", address.host));
  }
  return Status::FromErrno(error, fmt::format("cannot listen at {}", address.Text()));
}

uint16_t PortOf(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  // Both kinds of address have the port at the same place.
  sockaddr_in four{};
  std::memcpy(&four, &bound, sizeof(four));
  return ntohs(four.sin_port);
}

}  // namespace

Result<ListenAddress> ListenAddress::Parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return Status::InvalidArgument(fmt::format("--listen {}: {}, as in 127.0.0.1:9464 or [::1]:9464", text, why));
  };
  const auto parts = SplitHost(text);
  if (!parts || parts->port.empty()) return wrong("give an address and a port");
  ListenAddress address;
  address.host = parts->host == "localhost" ? "127.0.0.1" : std::string(parts->host);
  if (parts->bracketed ? !IsIpv6(address.host) : !IsIpv4(address.host)) return wrong("give the address in numbers");
  unsigned port = 0;
  const auto [end, error] = std::from_chars(parts->port.data(), parts->port.data() + parts->port.size(), port);
  if (error != std::errc() || port > UINT16_MAX) return wrong("a port is at most 65535");
  address.port = static_cast<uint16_t>(port);
  return address;
}

bool ListenAddress::IsLoopback() const { return host.starts_with("127.") || host == "::1"; }

std::string ListenAddress::Text() const {
  return IsIpv6(host) ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<FileDescriptor> Listen(ListenAddress& address) {
  const SocketAddress at(address);
  FileDescriptor fd(::socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return CannotListen(errno, address);
  // Connections of a server that has just ended do not keep the port from the next one. Two servers never share one.
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), at.get(), at.size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return CannotListen(errno, address);
  }
  address.port = PortOf(fd.get());
  return fd;
}

bool IsAllowedHost(std::string_view host, std::span<const std::string> names) {
  const auto parts = SplitHost(host);
  if (!parts) return false;
  const std::string name = LowerCase(parts->host);
  if (parts->bracketed) return IsIpv6(name);
  if (IsIpv4(name) || name == "localhost") return true;
  return std::ranges::any_of(names, [&](const std::string& allowed) { return LowerCase(allowed) == name; });
}

}  // namespace isozone::cli
