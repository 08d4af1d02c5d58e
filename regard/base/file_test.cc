#include "regard/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "regard/base/error.h"
#include "tests/support/temporary_folder.h"

namespace regard {
namespace {

TEST(File, RoundTripAndReplace) {
  const tests::TemporaryFolder folder;
  const auto path = folder / "x.bin";
  const std::string bytes(3000000, '\xff');
  write_file_atomically(path, "first");
  EXPECT_EQ(read_file(path), "first");
  write_file_atomically(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
}

TEST(File, AbandonedWriteLeavesTheOldFile) {
  const tests::TemporaryFolder folder;
  const auto path = folder / "x";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.append("half of the new");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, MissingFileIsASystemError) {
  try {
    read_file("/nonexistent/file");
    FAIL();
  } catch (const SystemError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::system);
    EXPECT_STREQ(error.what(), "cannot read /nonexistent/file: No such file or directory");
  }
}

TEST(File, FullDiskIsReportedAndLeavesNothing) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const tests::TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "x.tmp");
  try {
    write_file_atomically(folder / "x", std::string(100000, 'a'));
    FAIL();
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), ENOSPC);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

TEST(File, ALinkStaysAndADeviceIsNotReplaced) {
  const tests::TemporaryFolder folder;
  write_file_atomically(folder / "real", "old");
  std::filesystem::create_symlink(folder / "real", folder / "link");
  write_file_atomically(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "real"), "new");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(write_file_atomically(folder / "pipe", "x"), SystemError);
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_FALSE(std::filesystem::exists(folder / "pipe.tmp"));
}

}  // namespace
}  // namespace regard
