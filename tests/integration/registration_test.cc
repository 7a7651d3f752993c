// How programs come to an Isozone file system: by URI through RocksDB, and by the functions of isozone.h.

#include <chrono>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <rocksdb/convenience.h>

#include "integration/scratch.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

using rocksdb::IOOptions;
using ::testing::HasSubstr;

class RegistrationTest : public ScratchDevice {
 protected:
  static rocksdb::Status CreateEnv(const std::string& uri, std::shared_ptr<rocksdb::Env>* env) {
    rocksdb::Env* raw = nullptr;
    return rocksdb::Env::CreateFromUri(rocksdb::ConfigOptions(), "", uri, &raw, env);
  }
};

TEST_F(RegistrationTest, RocksDbFindsTheFileSystemByUri) {
  std::shared_ptr<rocksdb::Env> env;
  ISOZONE_ASSERT_OK(CreateEnv(Uri("policy=zenfs&write_buffer=128KiB"), &env));
  EXPECT_STREQ(env->GetFileSystem()->Name(), "isozone");
  WriteFile(*env->GetFileSystem(), "/x", "1");
  EXPECT_EQ(ReadFile(*env->GetFileSystem(), "/x"), "1");
}

TEST_F(RegistrationTest, ErrorsReachTheUserInOneLine) {
  const std::string missing = "isozone://emu:" + scratch_.path() + "/missing.img";
  const struct {
    std::string uri;
    const char* says;
  } cases[] = {{missing, "missing.img"},
               {Uri("colour=red"), "colour"},
               {Uri("read_only=perhaps"), "read_only"},
               {Uri("stats_file=/nowhere/stats.json"), "/nowhere/stats.json cannot be written"},
               {Uri("stats_file=" + scratch_.path()), "cannot be written"},
               {"isozone://floppy:/a", "floppy"}};
  for (const auto& c : cases) {
    std::shared_ptr<rocksdb::Env> env;
    const rocksdb::Status status = CreateEnv(c.uri, &env);
    EXPECT_FALSE(status.ok()) << c.uri;
    EXPECT_THAT(status.ToString(), HasSubstr(c.says));
    EXPECT_EQ(status.ToString().find('\n'), std::string::npos) << status.ToString();

    std::shared_ptr<rocksdb::FileSystem> fs;
    EXPECT_THAT(OpenFileSystem(c.uri, &fs).ToString(), HasSubstr(c.says));
    EXPECT_EQ(fs, nullptr);
  }
}

// What RocksDB makes of each spelling differs between its versions; that none puts a database on the local disk does
// not.
TEST_F(RegistrationTest, AnEnvInTheTextOfOptionsIsTheFileSystemOfItsUriOrAnError) {
  const std::string plain = "isozone://emu:" + scratch_.path() + "/ssd.img";
  const std::string missing = "isozone://emu:" + scratch_.path() + "/missing.img";
  const auto env_of = [](const std::string& text, rocksdb::Env** env) {
    rocksdb::DBOptions options;
    const rocksdb::Status status =
        rocksdb::GetDBOptionsFromString(rocksdb::ConfigOptions(), options, "env=" + text, &options);
    *env = options.env;
    return status;
  };
  for (const std::string& text : {plain, "{id=" + plain + "}", "{id=" + plain + "?write_buffer=1MiB}"}) {
    rocksdb::Env* env = nullptr;
    ISOZONE_ASSERT_OK(env_of(text, &env));
    EXPECT_STREQ(env->GetFileSystem()->Name(), "isozone") << text;
    rocksdb::Env* again = nullptr;
    ISOZONE_ASSERT_OK(env_of(text, &again));
    EXPECT_EQ(env, again) << text;
  }
  for (const std::string& text :
       {Uri(), "{" + Uri() + "}", "\"" + plain + "\"", "'" + plain + "'", missing, "{id=" + missing + "}",
        "{id=" + missing + "?policy=zenfs}", "{fs=" + plain + "}", "{file_system=" + plain + "}",
        "{id=isozone;fs=" + plain + "}", "{id=CompositeEnv;fs=" + plain + "}", "{id=" + plain + ";fs=x}",
        std::string("isozone"), "isozone:emu:" + scratch_.path() + "/ssd.img"}) {
    rocksdb::Env* env = nullptr;
    EXPECT_FALSE(env_of(text, &env).ok()) << text;
  }
  for (const std::string& text : {std::string(), std::string("DefaultEnv"), std::string("{id=DefaultEnv}")}) {
    rocksdb::Env* env = nullptr;
    ISOZONE_EXPECT_OK(env_of(text, &env));
    EXPECT_EQ(env, rocksdb::Env::Default()) << text;
  }
}

TEST_F(RegistrationTest, FileSystemsOnOneDeviceShareOneMount) {
  const auto first = Open();
  const auto second = Open();
  WriteFile(*first, "/x", "1");
  EXPECT_EQ(ReadFile(*second, "/x"), "1");
  std::shared_ptr<rocksdb::FileSystem> contradicting;
  EXPECT_TRUE(OpenFileSystem(Uri("write_buffer=2MiB"), &contradicting).IsInvalidArgument());
}

TEST_F(RegistrationTest, MakingAFileSystemWhereThereIsOneNeedsForce) {
  WriteFile(*Open(), "/x", "1");
  EXPECT_FALSE(CreateFileSystem(Uri()).ok());
  EXPECT_EQ(ReadFile(*Open(), "/x"), "1");
  ISOZONE_ASSERT_OK(CreateFileSystem(Uri(), /*force=*/true));
  EXPECT_TRUE(Open()->FileExists("/x", IOOptions(), nullptr).IsNotFound());
}

TEST_F(RegistrationTest, StatisticsAreReportedAsJson) {
  const auto fs = Open();
  WriteFile(*fs, "/000001.log", std::string(100000, 'x'));
  std::string json;
  ISOZONE_ASSERT_OK(GetStats(*fs, &json));
  const nlohmann::json stats = nlohmann::json::parse(json);
  EXPECT_EQ(stats.at("policy"), "isozone");
  EXPECT_GE(stats.at("user_bytes_appended"), 100000);
  EXPECT_GE(stats.at("classes").at("wal").at("bytes_written"), 100000);
  EXPECT_GT(stats.at("classes").at("wal").at("write_latency_us").at("p99"), 0);
  EXPECT_EQ(stats.at("space").at("zones"), 128);
  EXPECT_GE(stats.at("syncs"), 1);
  EXPECT_EQ(stats.at("mixed_classes"), 0);
  EXPECT_EQ(stats.at("pace_wait_us").at("count"), 0);
  EXPECT_EQ(stats.at("refused_writes"), 0);
  EXPECT_EQ(stats.at("gc").at("scheme"), "isozone");
  EXPECT_EQ(stats.at("gc").at("rounds"), 0);
  EXPECT_TRUE(GetStats(*rocksdb::FileSystem::Default(), &json).IsInvalidArgument());
}

TEST_F(RegistrationTest, StatisticsAreWrittenWhileTheFileSystemIsMounted) {
  const std::string stats_file = scratch_.path() + "/stats.json";
  const auto fs = Open("stats_file=" + stats_file);
  WriteFile(*fs, "/x", "1");
  // A test that fails waits for as long as CTest lets it.
  while (!std::ifstream(stats_file).good()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::ifstream file(stats_file);
  EXPECT_EQ(nlohmann::json::parse(file).at("life"), "mounted");
}

TEST_F(RegistrationTest, StatisticsAreWrittenWhenTheFileSystemIsUnmounted) {
  const std::string stats_file = scratch_.path() + "/stats.json";
  auto fs = Open("stats_file=" + stats_file);
  WriteFile(*fs, "/x", "1");
  fs.reset();
  std::ifstream file(stats_file);
  EXPECT_GT(nlohmann::json::parse(file).at("syncs"), 0);
}

TEST(VersionTest, NamesIsozoneAndRocksDb) {
  EXPECT_THAT(Version(), ::testing::EndsWith("(RocksDB " ISOZONE_ROCKSDB_VERSION ")"));
}

}  // namespace
}  // namespace isozone
