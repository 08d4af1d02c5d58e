#include "regard/text/readers.h"

#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/text/catalogue.h"
#include "regard/text/utf8.h"

namespace regard::text {
namespace {

std::string inflated(std::string_view bytes, const std::string& name) {
  struct Stream {
    z_stream z{};
    ~Stream() { ::inflateEnd(&z); }
  } stream;
  z_stream& z = stream.z;
  constexpr int kGzip = 16 + MAX_WBITS;
  if (::inflateInit2(&z, kGzip) != Z_OK) throw SystemError("cannot start zlib");
  std::string result, piece(1 << 16, '\0');
  for (;;) {
    if (z.avail_in == 0) {
      const size_t some = std::min<size_t>(bytes.size(), 1 << 30);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      z.avail_in = static_cast<uInt>(some);
      bytes.remove_prefix(some);
    }
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = static_cast<uInt>(piece.size());
    const int status = ::inflate(&z, Z_NO_FLUSH);
    result.append(piece, 0, piece.size() - z.avail_out);
    const bool at_end = z.avail_in == 0 && bytes.empty();
    if (status == Z_STREAM_END) {
      if (at_end) return result;
      ::inflateReset(&z);  // another member follows
    } else if (status != Z_OK || (at_end && z.avail_out > 0)) {
      throw DataError(name, 0, "is damaged or cut short (gzip); get it again");
    }
  }
}

constexpr std::string_view kMark = "\xEF\xBB\xBF";

std::vector<Pair> tsv_pairs(std::string_view bytes, const std::string& name) {
  std::vector<Pair> pairs;
  int64_t number = 0;
  for (const std::string& line : lines_of(bytes, name)) {
    ++number;
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      throw DataError(name, number, "has no tab, expected source TAB target; correct the line or remove it");
    }
    const std::string_view rest = std::string_view(line).substr(tab + 1);
    pairs.push_back({unescaped_field(std::string_view(line).substr(0, tab)),
                     unescaped_field(rest.substr(0, rest.find('\t'))), "", number});
  }
  return pairs;
}

}  // namespace

Format format_of(const std::filesystem::path& path) {
  std::filesystem::path name = path.filename();
  if (name.extension() == ".gz") name = name.stem();
  const std::string extension = name.extension().string();
  if (extension == ".tsv") return Format::tsv;
  if (extension == ".po" || extension == ".pot") return Format::po;
  if (extension == ".mo" || extension == ".gmo") return Format::mo;
  return Format::automatic;
}

std::string read_text(const std::filesystem::path& path) {
  std::string bytes = read_file(path);
  return path.extension() == ".gz" ? inflated(bytes, path.string()) : bytes;
}

std::string unescaped_field(std::string_view field) {
  std::string result;
  for (size_t i = 0; i < field.size(); ++i) {
    const char next = field[i] == '\\' && i + 1 < field.size() ? field[i + 1] : '\0';
    if (next == 't' || next == 'n' || next == '\\') {
      result += next == 't' ? '\t' : next == 'n' ? '\n' : '\\';
      ++i;
    } else {
      result += field[i];
    }
  }
  return result;
}

std::vector<std::string> lines_of(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kMark)) bytes.remove_prefix(kMark.size());
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    const bool ended = line.data() + line.size() != bytes.data();
    if (ended && line.ends_with('\r')) line.remove_suffix(1);
    if (const size_t bad = invalid_utf8(line); bad != std::string_view::npos) {
      throw DataError(
          name, static_cast<int64_t>(lines.size()) + 1,
          "is not UTF-8 (byte " + std::to_string(bad + 1) + " of the line); convert it with iconv");
    }
    lines.emplace_back(line);
  }
  return lines;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  return lines_of(read_text(path), path.string());
}

std::string line_of(std::string_view message) {
  std::string result;
  result.reserve(message.size());
  for (size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    if (c == '\n') {
      result += "\\n";
    } else if (c != '\r') {
      result += c;
    } else if (i + 1 == message.size() || message[i + 1] != '\n') {
      result += ' ';
    }
  }
  return result;
}

ParallelLines read_parallel_lines(std::span<const std::filesystem::path> source,
                                  std::span<const std::filesystem::path> target) {
  ParallelLines lines;
  std::string names[2];
  for (const auto& [files, side, name] :
       {std::tuple(source, &lines.source, &names[0]), std::tuple(target, &lines.target, &names[1])}) {
    for (const auto& file : files) {
      auto read = read_lines(file);
      side->insert(side->end(), std::make_move_iterator(read.begin()), std::make_move_iterator(read.end()));
      *name += (name->empty() ? "" : " + ") + file.string();
    }
  }
  if (lines.source.size() != lines.target.size())
    throw DataError(names[0] + " has " + std::to_string(lines.source.size()) + " lines, " + names[1] +
                    " has " + std::to_string(lines.target.size()) +
                    "; line-parallel files need the same number");
  return lines;
}

ParallelLines read_parallel_lines(const std::filesystem::path& source, const std::filesystem::path& target) {
  return read_parallel_lines({&source, 1}, {&target, 1});
}

std::vector<Pair> read_parallel(const std::filesystem::path& source, const std::filesystem::path& target) {
  auto [sources, targets] = read_parallel_lines(source, target);
  std::vector<Pair> pairs(sources.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = {std::move(sources[i]), std::move(targets[i]), "", static_cast<int64_t>(i) + 1};
  }
  return pairs;
}

std::vector<Pair> read_pairs(const std::filesystem::path& path, Format format) {
  if (format == Format::automatic) format = format_of(path);
  const std::string name = path.string();
  switch (format) {
    case Format::tsv:
      return tsv_pairs(read_text(path), name);
    case Format::po:
      return catalogue_pairs(parse_po(read_text(path), name));
    case Format::mo:
      return catalogue_pairs(parse_mo(read_text(path), name));
    case Format::automatic:
      break;
  }
  throw UsageError(name + ": the name does not tell the format (.tsv, .po, .mo)");
}

}  // namespace regard::text
