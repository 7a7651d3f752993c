// The oracle must find fault: each kind of damage, in a state that is right otherwise.
#include "model/oracle.h"

#include <gtest/gtest.h>

namespace isozone::model {
namespace {

Found FoundFile(const std::string& path, const std::string& bytes, FileKind kind = FileKind::kData) {
  Found found;
  found.names[path] = 2;
  found.files[2] = {false, kind, bytes, bytes.size()};
  return found;
}

Oracle WithFile(const std::string& synced, FileKind kind = FileKind::kData) {
  Oracle oracle;
  oracle.Create("/a", 2, kind);
  oracle.Append(2, synced);
  oracle.Sync(2);
  return oracle;
}

TEST(Oracle, AcceptsWhatWasSynced) { EXPECT_TRUE(WithFile("abc").CheckAfterPowerCut(FoundFile("/a", "abc")).ok()); }

TEST(Oracle, RejectsALostSyncedByte) {
  EXPECT_FALSE(WithFile("abc").CheckAfterPowerCut(FoundFile("/a", "ab")).ok());
  EXPECT_FALSE(WithFile("abc", FileKind::kLog).CheckAfterPowerCut(FoundFile("/a", "ab", FileKind::kLog)).ok());
}

TEST(Oracle, RejectsAWrongByte) { EXPECT_FALSE(WithFile("abc").CheckAfterPowerCut(FoundFile("/a", "abd")).ok()); }

TEST(Oracle, RejectsALostName) { EXPECT_FALSE(WithFile("abc").CheckAfterPowerCut({}).ok()); }

TEST(Oracle, AcceptsAnyPrefixOfWhatWasNotSynced) {
  Oracle oracle = WithFile("abc");
  oracle.Append(2, "def");
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/a", "abc")).ok());
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/a", "abcde")).ok());
  EXPECT_FALSE(oracle.CheckAfterPowerCut(FoundFile("/a", "abcdefg")).ok());
}

TEST(Oracle, AcceptsEachMomentAfterTheDurablePointAndNoMixture) {
  Oracle oracle = WithFile("abc");
  oracle.Rename("/a", "/b");
  oracle.Rename("/b", "/c");
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/a", "abc")).ok());
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/b", "abc")).ok());
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/c", "abc")).ok());
  Found both = FoundFile("/a", "abc");
  both.names["/c"] = 2;
  EXPECT_FALSE(oracle.CheckAfterPowerCut(both).ok());
  oracle.SyncMetadata();
  EXPECT_FALSE(oracle.CheckAfterPowerCut(FoundFile("/b", "abc")).ok());
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/c", "abc")).ok());
}

TEST(Oracle, BindsContentsToTheNamesOfTheSameMoment) {
  Oracle oracle = WithFile("abc");
  oracle.Truncate(2, 1);
  oracle.Rename("/a", "/b");
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/a", "abc")).ok());
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/a", "a")).ok());
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/b", "a")).ok());
  EXPECT_FALSE(oracle.CheckAfterPowerCut(FoundFile("/b", "abc")).ok());
}

TEST(Oracle, ClosingMakesTheBytesPartOfTheNamespace) {
  Oracle oracle = WithFile("abc");
  oracle.Append(2, "def");
  oracle.Close(2);
  oracle.Rename("/a", "/b");
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/a", "abcd")).ok());
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/b", "abcdef")).ok());
  EXPECT_FALSE(oracle.CheckAfterPowerCut(FoundFile("/b", "abcd")).ok());
}

TEST(Oracle, ASyncOfALogCoversItsBytesAndNotOtherNames) {
  Oracle oracle = WithFile("abc", FileKind::kLog);
  oracle.MakeDirectory("/d", 3);
  oracle.Append(2, "def");
  oracle.Sync(2);
  EXPECT_TRUE(oracle.CheckAfterPowerCut(FoundFile("/a", "abcdef", FileKind::kLog)).ok());
  EXPECT_FALSE(oracle.CheckAfterPowerCut(FoundFile("/a", "abcde", FileKind::kLog)).ok());
}

TEST(Oracle, WhatWasAdoptedIsDurable) {
  Oracle oracle = WithFile("abc");
  oracle.Append(2, "def");
  oracle.Adopt(FoundFile("/a", "abcd"));
  EXPECT_FALSE(oracle.CheckAfterPowerCut(FoundFile("/a", "abc")).ok());
  EXPECT_FALSE(oracle.CheckAfterPowerCut(FoundFile("/a", "abcde")).ok());
  EXPECT_TRUE(oracle.CheckExactly(FoundFile("/a", "abcd")).ok());
}

TEST(Oracle, ReplacingAFileIsOneChange) {
  Oracle oracle = WithFile("abc");
  oracle.MakeDirectory("/d", 3);
  oracle.Create("/d/t", 4, FileKind::kSmall);
  oracle.Append(4, "new");
  oracle.Sync(4);
  oracle.Rename("/d/t", "/a");
  Found found;
  found.names = {{"/d", 3}};
  found.files[3].is_directory = true;
  EXPECT_FALSE(oracle.CheckAfterPowerCut(found).ok()) << "neither old nor new";
}

}  // namespace
}  // namespace isozone::model
