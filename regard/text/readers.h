#pragma once
// Translations from files: line-parallel text, TSV, PO and MO catalogues.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regard::text {

/// One sentence or message and its translation.
/// Newlines inside a message are U+000A here (line_of() writes them for line files).
struct Pair {
  std::string source, target;
  std::string context;  ///< a catalogue's msgctxt
  int64_t line = 0;     ///< from 1; for MO the number of the entry

  bool operator==(const Pair&) const = default;
};

enum class Format { automatic, tsv, po, mo };

/// What a file's name says (.tsv, .po, .pot, .mo, .gmo, each also with .gz after it);
/// automatic if it says nothing.
Format format_of(const std::filesystem::path& path);

/// The bytes of a file, inflated if its name ends in .gz. Throws SystemError, and DataError for damaged gzip.
std::string read_text(const std::filesystem::path& path);

/// Cuts text into lines: LF and CRLF end a line, nothing else does (NUL, a lone CR, U+2028 are text);
/// the last line may lack its end. A byte-order mark at the start is left out.
/// Throws DataError FILE:LINE for what is not UTF-8.
std::vector<std::string> lines_of(std::string_view bytes, const std::string& name);

/// lines_of() a file, plain or .gz.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// A field of a TSV file without its escapes \t \n \\; any other backslash is itself.
std::string unescaped_field(std::string_view field);

/// A message as one line of a line file: U+000A becomes the two characters \n, CRLF counts as U+000A, and a
/// lone CR becomes a space (it would be read back as a line's end).
std::string line_of(std::string_view message);

/// The lines of two sides, as many on both.
struct ParallelLines {
  std::vector<std::string> source, target;
};

/// Line-parallel files, each side the lines of its files one after the other.
/// Throws DataError naming both counts if they differ.
ParallelLines read_parallel_lines(std::span<const std::filesystem::path> source,
                                  std::span<const std::filesystem::path> target);
ParallelLines read_parallel_lines(const std::filesystem::path& source, const std::filesystem::path& target);

/// Pairs of two line-parallel files. Throws as read_parallel_lines().
std::vector<Pair> read_parallel(const std::filesystem::path& source, const std::filesystem::path& target);

/// Pairs of one file. TSV: source TAB target, further columns ignored, quotes literal,
/// \t \n \\ as escapes, empty lines left out. PO and MO: see catalogue.h.
/// Throws UsageError if the format is not given and the name does not tell.
std::vector<Pair> read_pairs(const std::filesystem::path& path, Format format = Format::automatic);

}  // namespace regard::text
