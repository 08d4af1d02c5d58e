#include "regard/storage/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "regard/base/file.h"
#include "regard/storage/checksum.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace regard {
namespace {

std::string file_of(const std::string& header, size_t data_bytes, uint64_t length) {
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\0');
}
std::string file_of(const std::string& header, size_t data_bytes) {
  return file_of(header, data_bytes, header.size());
}

std::string fault(const std::string& bytes) {
  return tests::error_message([&] { parse_safetensors(bytes, "x.safetensors"); });
}

std::vector<NamedTensor> sample() {
  return {{"a.W", Tensor::from<float>({2, 3}, {1, 2, 3, -4, 0.5f, 6e-30f})},
          {"ids", Tensor::from<int32_t>({1}, {-7})},
          {"exact", Tensor::from<double>({2, 1, 1}, {0.1, -1e300})},
          {"scalar", Tensor::from<float>({}, {2.5f})},
          {"none", Tensor::zeros({0, 4})}};
}

TEST(Safetensors, KnownBytes) {
  const std::vector<NamedTensor> one = {{"w", Tensor::from<float>({2}, {1, -2})}};
  const std::string text =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string bytes = serialise_safetensors(one, {{"k", "v"}});
  ASSERT_EQ(bytes.size(), 8 + 80 + 8u);
  EXPECT_EQ(bytes[0], 80);
  EXPECT_EQ(bytes.substr(8, 80), text + std::string(80 - text.size(), ' '));
  EXPECT_EQ(bytes.substr(88), std::string("\0\0\x80\x3f\0\0\0\xc0", 8));
}

TEST(Safetensors, RoundTrip) {
  const tests::TemporaryFolder folder;
  const Metadata metadata = {{"step", "12"}, {"note", "tab\t \"quote\" é"}};
  const auto tensors = sample();
  const WrittenFile written = write_safetensors(folder / "x", tensors, metadata);
  const std::string bytes = read_file(folder / "x");
  EXPECT_EQ(bytes, serialise_safetensors(tensors, metadata));
  EXPECT_EQ(written.checksum, checksum(bytes));
  EXPECT_EQ(written.size, static_cast<int64_t>(bytes.size()));

  const SafeTensors read = read_safetensors(folder / "x");
  EXPECT_EQ(read.metadata, metadata);
  ASSERT_EQ(read.tensors.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& a = tensors[i].tensor;
    const Tensor& b = read.at(tensors[i].name);
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(a.dtype(), b.dtype());
    if (a.size()) {
      EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), static_cast<size_t>(a.byte_size())), 0);
    }
  }
  EXPECT_FALSE(read.contains("other"));
  try {
    read.at("other");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()), (folder / "x").string() + ": no tensor \"other\"");
  }
}

TEST(Safetensors, NothingAtAll) {
  const SafeTensors read = parse_safetensors(serialise_safetensors({}), "x");
  EXPECT_TRUE(read.tensors.empty());
  EXPECT_TRUE(read.metadata.empty());
}

TEST(Safetensors, WriterRefusesWhatCannotBeRead) {
  const Tensor t = Tensor::zeros({1});
  const std::vector<NamedTensor> twice = {{"a", t}, {"a", t}}, reserved = {{"__metadata__", t}},
                                 none = {{"a", {}}}, latin = {{"\xe9", t}};
  EXPECT_THROW(serialise_safetensors(twice), Error);
  EXPECT_THROW(serialise_safetensors(reserved), Error);
  EXPECT_THROW(serialise_safetensors(none), Error);
  EXPECT_THROW(serialise_safetensors(latin), DataError);
}

TEST(Safetensors, HostileHeaders) {
  const auto tensor = [](const std::string& description) { return "{\"w\":{" + description + "}}"; };
  struct Case {
    std::string bytes, message;
  };
  const std::string f32 = R"("dtype":"F32",)";
  const Case cases[] = {
      {"", "only 0 bytes long"},
      {"1234567", "only 7 bytes long"},
      {file_of("{}", 0, ~0ull), "header of 18446744073709551615 bytes, more than 100 MB"},
      {file_of("{}", 0, 100'000'001), "more than 100 MB"},
      {file_of("{}", 0, 3), "header of 3 bytes in a file of 10"},
      {file_of("", 0), "(header): not valid JSON at byte 0: it is empty"},
      {file_of("[]", 0), "expected an object, found a list"},
      {file_of("{\"w\":", 0), "not valid JSON"},
      {file_of("{} x", 0), "not valid JSON at byte 3: something follows"},
      {file_of("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0),
       "not valid JSON at byte"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "other than strings"},
      {file_of(R"({"__metadata__":[]})", 0), "not an object"},
      {file_of(R"({"w":1})", 0), "tensor \"w\": its description is not an object"},
      {file_of(tensor(R"("dtype":"BF16","shape":[1],"data_offsets":[0,2])"), 2),
       "type BF16 cannot be read; convert"},
      {file_of(tensor(R"("shape":[1],"data_offsets":[0,4])"), 4), "tensor \"w\": \"dtype\": missing"},
      {file_of(tensor(f32 + R"("shape":[-1],"data_offsets":[0,4])"), 4), "dimension -1"},
      {file_of(tensor(f32 + R"("shape":[1.5],"data_offsets":[0,4])"), 4), "dimension 1.5E0"},
      {file_of(tensor(f32 + R"("shape":["1"],"data_offsets":[0,4])"), 4), "dimension \"1\""},
      {file_of(tensor(f32 + R"("shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0),
       "larger than the file"},
      {file_of(tensor(f32 + R"("shape":[0,9223372036854775807,9],"data_offsets":[0,0])"), 0),
       "larger than the file"},
      {file_of(tensor(f32 + R"("shape":[99999999999999999999],"data_offsets":[0,4])"), 4), "dimension"},
      {file_of(tensor(f32 + R"("shape":[2],"data_offsets":[0,4])"), 4),
       "8 bytes by its shape, but offsets 0 to 4"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[4,0])"), 4), "but offsets 4 to 0"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[0])"), 4), "are not two numbers"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[-4,0])"), 4), "offset -4"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[4,8])"), 8), "4 unused bytes before it"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[4,8])"), 4), "ends at byte 8 of 4, cut short"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[0,4])"), 5), "1 bytes after the last tensor"},
      {file_of("{\"a\":{" + f32 + R"("shape":[2],"data_offsets":[0,8]},"b":{)" + f32 +
                   R"("shape":[1],"data_offsets":[4,8]}})",
               8),
       "tensor \"b\": its bytes overlap"},
  };
  for (const Case& c : cases) {
    const std::string message = fault(c.bytes);
    EXPECT_NE(message.find(c.message), std::string::npos) << message << "\nexpected: " << c.message;
    EXPECT_EQ(message.rfind("x.safetensors", 0), 0u) << message;
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string bytes = serialise_safetensors(sample(), {{"a", "b"}});
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_NE(fault(bytes.substr(0, n)), "none") << n;
}

TEST(Safetensors, FlippedHeaderBitsNeverCrash) {
  std::string bytes = serialise_safetensors(sample(), {{"a", "b"}});
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  int refused = 0;
  for (size_t bit = 0; bit < (8 + length) * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    refused += fault(bytes) != "none";
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
  EXPECT_GT(refused, static_cast<int>(length) * 4);  // the rest are other names and other metadata
}

}  // namespace
}  // namespace regard
