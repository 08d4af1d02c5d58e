#include "regard/storage/manifest.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/storage/checksum.h"
#include "regard/storage/safetensors.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

/// The message of the Error that opening and verifying gives; "none" if all is well.
std::string fault(const fs::path& path) {
  return tests::error_message<Error>([&] { ModelDirectory::open(path).verify_all(); });
}

void damage(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

ModelDirectory sample(const fs::path& path) {
  ModelDirectory directory = ModelDirectory::create(path, "fingerprint", "learned from: é");
  directory.write("config.json", "{}\n");
  directory.write("model.safetensors", std::string("bytes\0and more", 14));
  directory.write("parts/a.bin", "a");
  return directory;
}

TEST(Checksum, KnownAnswers) {
  EXPECT_EQ(checksum_text(checksum("")), "2d06800538d394c2");
  EXPECT_EQ(checksum_text(0xab), "00000000000000ab");
}

TEST(ModelDirectory, RoundTrip) {
  const tests::TemporaryFolder folder;
  sample(folder / "m");
  ModelDirectory directory = ModelDirectory::open(folder / "m");
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"config.json", "model.safetensors", "parts/a.bin"}));
  EXPECT_EQ(directory.read("model.safetensors"), std::string("bytes\0and more", 14));
  EXPECT_EQ(directory.data_fingerprint(), "fingerprint");
  EXPECT_EQ(directory.licence_note(), "learned from: é");
  directory.write("config.json", "{\"a\": 1}\n");
  EXPECT_EQ(ModelDirectory::open(folder / "m").read("config.json"), "{\"a\": 1}\n");
  EXPECT_EQ(fault(folder / "m"), "none");
}

TEST(ModelDirectory, CreateRefusesWhatIsThere) {
  const tests::TemporaryFolder folder;
  sample(folder / "m");
  EXPECT_THROW(ModelDirectory::create(folder / "m"), UsageError);
  write_file_atomically(folder / "file", "x");
  EXPECT_THROW(ModelDirectory::create(folder / "file"), UsageError);
  EXPECT_THROW(ModelDirectory::create(folder / "file" / "m"), SystemError);
  fs::create_directory(folder / "empty");
  ModelDirectory::create(folder / "empty");
  fs::create_directory(folder / "killed");
  write_file_atomically(folder / "killed" / "manifest.json.tmp", "{");
  ModelDirectory::create(folder / "killed");
}

TEST(ModelDirectory, AsideLeavesNothingBeforeItIsMoved) {
  const tests::TemporaryFolder folder;
  const auto place = folder / "m", aside = folder / "m.part";
  {
    auto directory = ModelDirectory::create_aside(place);
    directory.write("config.json", "{}");
    EXPECT_TRUE(fs::exists(aside));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));  // given up: nothing stays
  // What kills leave: a whole folder, one that was being removed, one that was just made, the first try to
  // write.
  for (const char* left : {"manifest.json", "manifest.json.tmp", ""}) {
    fs::create_directory(aside);
    if (*left) write_file_atomically(aside / left, "{");
    auto directory = ModelDirectory::create_aside(place);
    directory.write("config.json", "{}");
    EXPECT_FALSE(fs::exists(place));
    directory.move_into_place();
    EXPECT_EQ(directory.path(), place);
    EXPECT_EQ(ModelDirectory::open(place).read("config.json"), "{}");
    EXPECT_FALSE(fs::exists(aside));
    fs::remove_all(place);
  }
  fs::create_directory(aside);
  write_file_atomically(aside / "mine", "x");
  EXPECT_THROW(ModelDirectory::create_aside(place), UsageError);
  EXPECT_TRUE(fs::exists(aside / "mine"));
}

TEST(ModelDirectory, AsideOfAnEmptyDirectoryAndOfALink) {
  const tests::TemporaryFolder folder;
  fs::create_directory(folder / "empty");
  fs::create_directory_symlink(folder / "empty", folder / "link");
  fs::create_directory_symlink(folder / "nowhere", folder / "dangling");
  auto directory = ModelDirectory::create_aside(folder / "link");
  directory.move_into_place();
  EXPECT_TRUE(fs::exists(folder / "empty/manifest.json"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_THROW(ModelDirectory::create_aside(folder / "dangling"), UsageError);
  EXPECT_THROW(ModelDirectory::create_aside("/"), UsageError);
}

TEST(ModelDirectory, OpenSaysWhatIsMissing) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(tests::error_message<SystemError>([&] { ModelDirectory::open(folder / "m"); }),
            "cannot open model " + (folder / "m").string() + ": No such file or directory");
  EXPECT_NE(fault(folder.path()).find("manifest.json: missing; the directory is no model"),
            std::string::npos);
  write_file_atomically(folder / "file", "x");
  EXPECT_NE(fault(folder / "file").find("a model is a directory"), std::string::npos);
}

// Case 23, by steps; by the clock it is tests/end_to_end/interruptions_test.py.
TEST(ModelDirectory, KillAfterEveryStepLeavesItLoadable) {
  const tests::TemporaryFolder master;
  sample(master / "m");
  for (const std::string name : {"config.json", "new.bin", "new/folder.bin"}) {
    for (int kill = 1; kill <= 3; ++kill) {
      for (int again = 1; again <= 3; ++again) {
        const tests::TemporaryFolder folder;
        fs::copy(master / "m", folder / "m", fs::copy_options::recursive);
        ModelDirectory first = ModelDirectory::open(folder / "m");
        const bool was_there = first.contains(name);
        EXPECT_THROW(first.write(name, "one",
                                 [&](int step) {
                                   if (step == kill) throw Killed();
                                 }),
                     Killed);
        EXPECT_EQ(fault(folder / "m"), "none");
        ModelDirectory second = ModelDirectory::open(folder / "m");
        EXPECT_EQ(second.contains(name), was_there || kill > 1);
        if (second.contains(name)) {
          EXPECT_EQ(second.read(name), kill == 1 ? "{}\n" : "one");
        }
        // Killed once more while the next run writes; then a run that succeeds.
        EXPECT_THROW(second.write(name, "two",
                                  [&](int step) {
                                    if (step == again) throw Killed();
                                  }),
                     Killed);
        EXPECT_EQ(fault(folder / "m"), "none");
        ModelDirectory third = ModelDirectory::open(folder / "m");
        third.write(name, "three");
        EXPECT_EQ(ModelDirectory::open(folder / "m").read(name), "three");
        EXPECT_EQ(fault(folder / "m"), "none");
      }
    }
  }
}

TEST(ModelDirectory, EveryDamageIsNamed) {
  const tests::TemporaryFolder folder;
  sample(folder / "m");
  for (const std::string name : {"config.json", "model.safetensors", "parts/a.bin", "manifest.json"}) {
    const fs::path file = folder / "m" / name;
    const std::string good = read_file(file);
    const auto expect_named = [&](const std::string& what) {
      const std::string message = fault(folder / "m");
      EXPECT_EQ(message.rfind(file.string() + ": ", 0), 0u) << what << ": " << message;
    };
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      damage(file, bad);
      expect_named("bit " + std::to_string(bit));
    }
    for (size_t n = 0; n < good.size(); ++n) {
      damage(file, good.substr(0, n));
      expect_named("cut to " + std::to_string(n));
    }
    fs::remove(file);
    expect_named("removed");
    write_file_atomically(file, good);
    EXPECT_EQ(fault(folder / "m"), "none");
  }
}

TEST(ModelDirectory, TensorsInPieces) {
  const tests::TemporaryFolder folder;
  const std::vector<NamedTensor> tensors = {{"w", Tensor::from<float>({2}, {1, 2})}};
  ModelDirectory directory = ModelDirectory::create((folder / "m").string() + "/");
  directory.write("model.safetensors", safetensors_content(tensors, {{"step", "3"}}));
  EXPECT_EQ(ModelDirectory::open(folder / "m").read("model.safetensors"),
            serialise_safetensors(tensors, {{"step", "3"}}));
  write_checked(folder / "state", safetensors_content(tensors));
  EXPECT_EQ(read_checked(folder / "state"), serialise_safetensors(tensors));
}

TEST(ModelDirectory, AFailedWriteKeepsTheOldFileAndMayBeRetried) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const tests::TemporaryFolder folder;
  ModelDirectory directory = sample(folder / "m");
  for (const std::string name : {"config.json", "manifest.json"}) {
    const fs::path temporary = folder / "m" / (name + ".tmp");
    fs::create_symlink("/dev/full", temporary);
    try {
      directory.write("config.json", "new");
      ADD_FAILURE();
    } catch (const SystemError& error) {
      EXPECT_EQ(error.error_number(), ENOSPC);
    }
    EXPECT_EQ(fault(folder / "m"), "none");
    EXPECT_EQ(ModelDirectory::open(folder / "m").read("config.json"), "{}\n");
  }
  directory.write("config.json", "new");
  EXPECT_EQ(ModelDirectory::open(folder / "m").read("config.json"), "new");
}

TEST(ModelDirectory, ADamagedFileMayBeReplaced) {
  const tests::TemporaryFolder folder;
  ModelDirectory directory = sample(folder / "m");
  EXPECT_THROW(directory.write("config.json", "one",
                               [](int step) {
                                 if (step == 1) throw Killed();
                               }),
               Killed);
  damage(folder / "m" / "config.json", "neither");
  EXPECT_NE(fault(folder / "m"), "none");
  ModelDirectory next = ModelDirectory::open(folder / "m");
  next.write("config.json", "two");
  EXPECT_EQ(fault(folder / "m"), "none");
}

TEST(ModelDirectory, Messages) {
  const tests::TemporaryFolder folder;
  const ModelDirectory directory = sample(folder / "m");
  const std::string file = (folder / "m" / "config.json").string();
  const std::string remedy = "; restore it from a copy or train again";
  write_file_atomically(file, "{ }\n");
  EXPECT_EQ(fault(folder / "m"), file + ": damaged (checksum differs)" + remedy);
  write_file_atomically(file, "");
  EXPECT_EQ(fault(folder / "m"), file + ": empty" + remedy);
  fs::remove(file);
  EXPECT_EQ(fault(folder / "m"), file + ": missing" + remedy);
  EXPECT_THROW(directory.read("other"), DataError);
  write_file_atomically(folder / "m" / "manifest.json", R"({"format_version": 2})");
  EXPECT_THROW(ModelDirectory::open(folder / "m"), DataError);
  EXPECT_NE(fault(folder / "m").find("manifest.json: format 2, this program reads up to 1; use a newer one"),
            std::string::npos);
}

TEST(ModelDirectory, NamesStayInside) {
  const tests::TemporaryFolder folder;
  ModelDirectory directory = ModelDirectory::create(folder / "m");
  for (const std::string name : {"../x", "/tmp/x", "", "a/../../x", "manifest.json", "a/"})
    EXPECT_THROW(directory.write(name, "x"), Error) << name;
  write_file_atomically(
      folder / "m" / "manifest.json",
      R"({"format_version": 1, "files": {"../x": ["0"]}, "data_fingerprint": "", "licence_note": ""})");
  EXPECT_NE(fault(folder / "m").find("manifest.json: damaged"), std::string::npos);
}

TEST(Checked, RoundTripAndDamage) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder / "state" / "state.safetensors";
  const std::string content("some\0bytes", 10);
  write_checked(file, content);
  EXPECT_EQ(read_checked(file), content);
  const std::string good = read_file(file);
  EXPECT_EQ(good.size(), content.size() + 16);
  const auto named = [&] {
    try {
      read_checked(file);
    } catch (const DataError& error) {
      return std::string(error.what()).rfind(file.string() + ": damaged (", 0) == 0;
    }
    return false;
  };
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    damage(file, bad);
    EXPECT_TRUE(named()) << bit;
  }
  for (size_t n = 0; n < good.size(); ++n) {
    damage(file, good.substr(0, n));
    EXPECT_TRUE(named()) << n;
  }
  write_checked(file, "");
  EXPECT_EQ(read_checked(file), "");
  fs::remove(file);
  EXPECT_THROW(read_checked(file), SystemError);
}

}  // namespace
}  // namespace regard
