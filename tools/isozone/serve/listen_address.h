// Where a server listens, and whom it answers: an address of this machine by number, so that no name is looked up.
//
// A page of another site can lead a browser here by a name whose address it changes (DNS rebinding). Its requests then
// carry that name in the field Host. So only numbers, `localhost` and names that the user has allowed are answered.
//
// Thread safety: values and pure functions; Listen opens a socket of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace isozone::cli {

struct ListenAddress {
  std::string host;   // "127.0.0.1", "::1"
  uint16_t port = 0;  // 0: the kernel chooses one

  // Parses "127.0.0.1:9464", "[::1]:9464" or "localhost:9464". kInvalidArgument says what is wrong.
  static Result<ListenAddress> Parse(std::string_view text);
  // Returns whether only this machine can reach it.
  bool IsLoopback() const;
  // Returns "127.0.0.1:9464", as in a URL.
  std::string Text() const;
};

// Opens a socket that listens at `address`, whose port becomes the one that the kernel chose. kBusy if the port is
// taken; kPermissionDenied; kInvalidArgument if the address is not one of this machine.
Result<FileDescriptor> Listen(ListenAddress& address);

// Returns whether a request with this value of Host is answered: an address, `localhost`, or one of `names`, each with
// or without a port.
bool IsAllowedHost(std::string_view host, std::span<const std::string> names);

}  // namespace isozone::cli
