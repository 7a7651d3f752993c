#include "isozone/serve/listen_address.h"

#include <gtest/gtest.h>

namespace isozone::cli {
namespace {

TEST(ListenAddressTest, AnAddressAndAPortAreTaken) {
  for (const std::string text : {"127.0.0.1:9464", "[::1]:9464", "0.0.0.0:0", "[::]:65535"}) {
    const auto address = ListenAddress::Parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->Text(), text);
  }
  const auto local = ListenAddress::Parse("localhost:80");
  ASSERT_TRUE(local.ok());
  EXPECT_EQ(local->Text(), "127.0.0.1:80");
}

TEST(ListenAddressTest, EverythingElseIsRefusedInOneLine) {
  for (const std::string text : {"", ":", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                                 "127.0.0.1:99999999999999999999", "::1:80", "[::1]", "[::1", "[127.0.0.1]:80",
                                 "example.org:80", "127.1:80", "127.0.0.1:80x", "[::1]x:80", "127.0.0.1:-1"}) {
    const auto address = ListenAddress::Parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_TRUE(address.status().Is(StatusCode::kInvalidArgument));
    EXPECT_EQ(address.status().message().find('\n'), std::string_view::npos);
  }
}

TEST(ListenAddressTest, OnlyAddressesOfThisMachineAreLoopback) {
  EXPECT_TRUE((ListenAddress{"127.0.0.1", 1}.IsLoopback()));
  EXPECT_TRUE((ListenAddress{"127.8.8.8", 1}.IsLoopback()));
  EXPECT_TRUE((ListenAddress{"::1", 1}.IsLoopback()));
  EXPECT_FALSE((ListenAddress{"0.0.0.0", 1}.IsLoopback()));
  EXPECT_FALSE((ListenAddress{"::", 1}.IsLoopback()));
  EXPECT_FALSE((ListenAddress{"10.127.0.1", 1}.IsLoopback()));
}

TEST(ListenAddressTest, APortIsTakenOnce) {
  ListenAddress first{"127.0.0.1", 0};
  const auto socket = Listen(first);
  ASSERT_TRUE(socket.ok()) << socket.status().ToString();
  EXPECT_NE(first.port, 0);
  ListenAddress second = first;
  const auto refused = Listen(second);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.status().Is(StatusCode::kBusy)) << refused.status().ToString();
}

TEST(ListenAddressTest, AnAddressOfAnotherMachineIsRefused) {
  ListenAddress other{"192.0.2.1", 0};  // for documents only
  const auto refused = Listen(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.status().Is(StatusCode::kInvalidArgument)) << refused.status().ToString();
}

TEST(AllowedHostTest, AddressesAndLocalhostAreAllowed) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:9464", "localhost", "LocalHost:1", "[::1]:9464", "10.0.0.7:80"}) {
    EXPECT_TRUE(IsAllowedHost(host, {})) << host;
  }
}

TEST(AllowedHostTest, NamesAreAllowedOnlyIfTheUserSaysSo) {
  const std::vector<std::string> names = {"storage7.lan"};
  for (const char* host : {"", "evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example",
                           "[::1", "[evil.example]:1", "localhost:9464:1", "storage7.lan.evil.example"}) {
    EXPECT_FALSE(IsAllowedHost(host, names)) << host;
  }
  EXPECT_TRUE(IsAllowedHost("Storage7.lan:9464", names));
  EXPECT_FALSE(IsAllowedHost("storage7.lan", {}));
}

}  // namespace
}  // namespace isozone::cli
