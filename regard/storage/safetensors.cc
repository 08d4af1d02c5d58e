#include "regard/storage/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "regard/base/file.h"
#include "regard/storage/json.h"

namespace regard {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little endian");
constexpr uint64_t kLargestHeader = 100'000'000;
constexpr const char* kMetadata = "__metadata__";

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr TypeName kTypes[] = {{DType::f32, "F32"}, {DType::f64, "F64"}, {DType::i32, "I32"}};

/// The length of the header and the header: all that precedes the tensors' bytes.
std::string header(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  boost::json::object object;
  if (!metadata.empty()) {
    boost::json::object pairs;
    for (const auto& [key, text] : metadata) pairs[key] = text;
    object[kMetadata] = std::move(pairs);
  }
  int64_t offset = 0;
  for (const NamedTensor& item : tensors) {
    if (!item.tensor.defined() || item.name == kMetadata)
      throw Error(ErrorKind::internal, "[safetensors] cannot write \"" + item.name + "\"");
    if (object.contains(item.name))
      throw Error(ErrorKind::internal, "[safetensors] two tensors are named \"" + item.name + "\"");
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const TypeName& t) { return t.dtype == item.tensor.dtype(); });
    const int64_t end = offset + item.tensor.byte_size();
    object[item.name] = {
        {"dtype", type->name},
        {"shape", boost::json::array(item.tensor.shape().begin(), item.tensor.shape().end())},
        {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = boost::json::serialize(object);
  parse_json(text, "safetensors header");  // what could not be read again is not written
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kLargestHeader) throw Error(ErrorKind::internal, "[safetensors] the header is too long");
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.bytes()), static_cast<size_t>(tensor.byte_size())};
}

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0, end = 0;
};

class Parser {
 public:
  Parser(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  SafeTensors parse() {
    const std::string_view text = header_text();
    const std::string_view data = bytes_.substr(8 + text.size());
    SafeTensors result{std::string(name_), {}, {}};
    std::vector<Entry> entries;
    for (const auto& pair : parse_json_object(text, std::string(name_) + " (header)")) {
      const std::string key(pair.key().data(), pair.key().size());
      if (key == kMetadata)
        result.metadata = metadata(pair.value());
      else
        entries.push_back(entry(key, pair.value()));
    }
    check_layout(entries, data.size());
    for (const Entry& e : entries) {
      Tensor tensor = allocate(e);
      if (e.end > e.begin) std::memcpy(tensor.bytes(), data.data() + e.begin, e.end - e.begin);
      result.tensors.push_back({e.name, std::move(tensor)});
    }
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_, 0, what + "; it is damaged or not a safetensors file");
  }
  [[noreturn]] void fail(const std::string& tensor, const std::string& what) const {
    fail("tensor \"" + tensor + "\": " + what);
  }

  std::string_view header_text() const {
    uint64_t length = 0;
    if (bytes_.size() < sizeof length) fail("only " + std::to_string(bytes_.size()) + " bytes long");
    std::memcpy(&length, bytes_.data(), sizeof length);
    if (length > kLargestHeader) fail("header of " + std::to_string(length) + " bytes, more than 100 MB");
    if (length > bytes_.size() - sizeof length)
      fail("header of " + std::to_string(length) + " bytes in a file of " + std::to_string(bytes_.size()));
    return bytes_.substr(sizeof length, length);
  }

  Metadata metadata(const boost::json::value& value) const {
    if (!value.is_object()) fail("\"__metadata__\" is not an object");
    Metadata result;
    for (const auto& pair : value.get_object()) {
      if (!pair.value().is_string()) fail("\"__metadata__\" holds something other than strings");
      const auto& text = pair.value().get_string();
      result.emplace(std::string(pair.key()), std::string(text.data(), text.size()));
    }
    return result;
  }

  uint64_t whole(const std::string& tensor, const char* what, const boost::json::value& value) const {
    boost::json::error_code error;
    const int64_t number = value.is_number() ? value.to_number<int64_t>(error) : -1;
    if (error || number < 0) fail(tensor, std::string(what) + " " + boost::json::serialize(value));
    return static_cast<uint64_t>(number);
  }

  Entry entry(const std::string& tensor, const boost::json::value& value) const {
    if (!value.is_object()) fail(tensor, "its description is not an object");
    const boost::json::object& object = value.get_object();
    const std::string where = std::string(name_) + ": tensor \"" + tensor + "\"";
    Entry e;
    e.name = tensor;
    const std::string type = json_string(object, "dtype", where);
    const auto* known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return t.name == type; });
    if (known == std::end(kTypes))
      throw DataError(where, 0, "type " + type + " cannot be read; convert it to F32, F64 or I32");
    e.dtype = known->dtype;
    uint64_t size = static_cast<uint64_t>(dtype_size(e.dtype));
    for (const auto& dimension : json_array(object, "shape", where)) {
      const uint64_t d = whole(tensor, "dimension", dimension);
      // A shape that is empty by one dimension must not overflow by the others: the limit holds for each.
      if (d > bytes_.size() || (d && size > bytes_.size() / d))
        fail(tensor, "its shape is larger than the file");
      size *= d;
      e.shape.push_back(static_cast<int64_t>(d));
    }
    const auto& offsets = json_array(object, "data_offsets", where);
    if (offsets.size() != 2) fail(tensor, "\"data_offsets\" are not two numbers");
    e.begin = whole(tensor, "offset", offsets[0]);
    e.end = whole(tensor, "offset", offsets[1]);
    if (e.end < e.begin || e.end - e.begin != size)
      fail(tensor, std::to_string(size) + " bytes by its shape, but offsets " + std::to_string(e.begin) +
                       " to " + std::to_string(e.end));
    return e;
  }

  void check_layout(std::vector<Entry>& entries, uint64_t size) const {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    uint64_t end = 0;
    for (const Entry& e : entries) {
      if (e.end > size)
        fail(e.name, "ends at byte " + std::to_string(e.end) + " of " + std::to_string(size) + ", cut short");
      if (e.begin < end) fail(e.name, "its bytes overlap with another's");
      if (e.begin > end) fail(e.name, std::to_string(e.begin - end) + " unused bytes before it");
      end = e.end;
    }
    if (end != size) fail(std::to_string(size - end) + " bytes after the last tensor");
  }

  Tensor allocate(const Entry& e) const {
    try {
      return Tensor::empty(e.shape, e.dtype);
    } catch (const std::bad_alloc&) {
      throw SystemError(std::string(name_) + ": not enough memory for tensor \"" + e.name + "\"");
    }
  }

  std::string_view bytes_, name_;
};

}  // namespace

std::string serialise_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  std::string out = header(tensors, metadata);
  size_t size = out.size();
  for (const NamedTensor& item : tensors) size += bytes_of(item.tensor).size();
  out.reserve(size);
  for (const NamedTensor& item : tensors) out += bytes_of(item.tensor);
  return out;
}

Content safetensors_content(std::vector<NamedTensor> tensors, const Metadata& metadata) {
  std::string front = header(tensors, metadata);
  return [front = std::move(front), tensors = std::move(tensors)](const Sink& sink) {
    sink(front);
    for (const NamedTensor& item : tensors) sink(bytes_of(item.tensor));
  };
}

WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                              const Metadata& metadata) {
  const Content content = safetensors_content({tensors.begin(), tensors.end()}, metadata);
  WrittenFile written;
  Checksum sum;
  AtomicFile file(path);
  content([&](std::string_view bytes) {
    sum.append(bytes);
    written.size += static_cast<int64_t>(bytes.size());
    file.append(bytes);
  });
  file.commit();
  written.checksum = sum.value();
  return written;
}

bool SafeTensors::contains(std::string_view tensor) const {
  return std::any_of(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == tensor; });
}

const Tensor& SafeTensors::at(std::string_view tensor) const {
  for (const NamedTensor& item : tensors)
    if (item.name == tensor) return item.tensor;
  throw DataError(name, 0, "no tensor \"" + std::string(tensor) + "\"");
}

SafeTensors read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

SafeTensors parse_safetensors(std::string_view bytes, std::string_view name) {
  return Parser(bytes, name).parse();
}

}  // namespace regard
