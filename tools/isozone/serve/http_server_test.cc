// The server where the kernel gives errors. What it answers to whom is tested through the command (tests/cli).
#include "isozone/serve/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "testing/assert_ok.h"

namespace {

std::atomic<int> errors_to_come{0};

}  // namespace

// In place of that of the C library: fails as often as a test asks for.
extern "C" [[gnu::visibility("default")]] int FailingAccept(int socket, sockaddr* address, socklen_t* size,
                                                            int flags) __asm__("accept4");

int FailingAccept(int socket, sockaddr* address, socklen_t* size, int flags) {
  if (errors_to_come > 0) {
    --errors_to_come;
    errno = ECONNABORTED;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_accept4, socket, address, size, flags));
}

namespace isozone::cli {
namespace {

// What the server at `address` says until it closes the connection; empty if it cannot be reached.
std::string Ask(const ListenAddress& address) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
  constexpr std::string_view kRequest = "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n";
  std::string said;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0 ||
      ::send(socket.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0) {
    return said;
  }
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(socket.get(), buffer, sizeof(buffer), 0)) > 0;) {
    said.append(buffer, static_cast<size_t>(got));
  }
  return said;
}

TEST(HttpServer, GoesOnAfterErrorsOfTheKernel) {
  errors_to_come = 1;
  const auto server = HttpServer::Start({"127.0.0.1", 0}, {}, [](const HttpRequest&) {
    return HttpReply{200, "text/plain", "here"};
  });
  ISOZONE_ASSERT_OK(server.status());
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(Ask((*server)->address()).find("here"), std::string::npos);
    while (errors_to_come > 0) ::usleep(1000);
    errors_to_come = 1;
  }
}

TEST(HttpServer, EndsWhileTheKernelGivesNothingButErrors) {
  errors_to_come = 1'000'000'000;
  auto server = HttpServer::Start({"127.0.0.1", 0}, {}, [](const HttpRequest&) { return HttpReply{}; });
  ISOZONE_ASSERT_OK(server.status());
  while (errors_to_come == 1'000'000'000) ::usleep(1000);
  server->reset();
  errors_to_come = 0;
}

}  // namespace
}  // namespace isozone::cli
