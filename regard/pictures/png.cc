#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>
#include <system_error>

#include "regard/base/file.h"
#include "regard/pictures/check.h"
#include "regard/pictures/colour.h"
#include "regard/pictures/matrix.h"
#include "regard/pictures/text.h"

extern char** environ;

namespace regard::pictures {
namespace {

constexpr int kLongestLabel = 24;
constexpr double kLeastPitch = 10;  // pixels between labels
constexpr double kAdvance = 8.5;    // pixels that a column of text takes

/// A single-quoted gnuplot string: gnuplot expands nothing in it.
std::string gnuplot_string(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c;
  }
  return result + "'";
}

std::string label(const std::string& word) { return truncated(terminal_text(word), kLongestLabel); }

/// gnuplot reads an axis's label as a format for the number beneath: %% is a percent sign.
std::string tic_text(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

/// Labels of an axis; where cells are too small for all of them, of every second, third ... word.
std::string tics(char axis, const std::vector<std::string>& words, double cell) {
  const auto step = static_cast<size_t>(std::ceil(kLeastPitch / cell));
  std::string result = fmt::format("set {}tics (", axis);
  for (size_t i = 0; i < words.size(); i += step) {
    result += fmt::format("{}{} {}", i > 0 ? ", " : "", gnuplot_string(tic_text(label(words[i]))), i);
  }
  return result + ")\n";
}

double widest(const std::vector<std::string>& words) {
  int columns = 0;
  for (const auto& word : words) columns = std::max(columns, display_width(label(word)));
  return columns * kAdvance;
}

std::string palette() {
  std::string result = "set palette defined (";
  for (int level = 0; level <= kLevels; ++level) {
    result += fmt::format("{}{} '{}'", level ? ", " : "", level, hex(light_scale(level)));
  }
  return result + ")\n";
}

std::string weight_text(float weight) { return std::isnan(weight) ? "NaN" : fmt::format("{}", weight); }

std::string weight_lines(const AttentionMatrix& matrix) {
  std::string out;
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    for (size_t s = 0; s < matrix.source.size(); ++s) out += weight_text(weight_at(matrix, t, s)) + "\t";
    out.back() = '\n';
  }
  return out;
}

/// Column, row and weight of each cell.
std::string cell_lines(const AttentionMatrix& matrix) {
  std::string out;
  for (size_t t = 0; t < matrix.target.size(); ++t)
    for (size_t s = 0; s < matrix.source.size(); ++s)
      out += fmt::format("{}\t{}\t{}\n", s, t, weight_text(weight_at(matrix, t, s)));
  return out;
}

std::string script(const AttentionMatrix& matrix, const std::string& picture) {
  const auto sources = static_cast<double>(matrix.source.size()),
             targets = static_cast<double>(matrix.target.size());
  const double cell = std::clamp(2400.0 / std::max(sources, targets), 6.0, 32.0);
  const double title = matrix.title.empty() ? 0 : 40;
  const double left = widest(matrix.target) + 24, top = widest(matrix.source) + 24 + title;
  constexpr double kRight = 100, kBottom = 20;
  const double title_width = display_width(terminal_text(matrix.title)) * 9.5;
  const double width = std::ceil(std::max(left + sources * cell + kRight, std::min(title_width, 900.0) + 40));
  const double height = std::ceil(top + targets * cell + kBottom);
  std::string out = fmt::format(
      "set terminal pngcairo noenhanced size {:.0f},{:.0f} font 'DejaVu Sans,{}'\nset encoding utf8\nset "
      "output {}\n",
      width, height, cell < 16 ? 6 : 10, gnuplot_string(picture));
  out += fmt::format("set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\n", left / width,
                     (left + sources * cell) / width);
  out += fmt::format("set bmargin at screen {:.6f}\nset tmargin at screen {:.6f}\n", kBottom / height,
                     1 - top / height);
  if (title > 0) {
    const int most = static_cast<int>((width - 40) / 9.5);
    out += fmt::format(
        "set label 1 {} at screen {:.6f},{:.6f} left textcolor rgb '#1b1f24' font 'DejaVu Sans,12'\n",
        gnuplot_string(truncated(terminal_text(matrix.title), most)), 16 / width, 1 - 22 / height);
  }
  out += fmt::format("set xrange [-0.5:{}]\nset yrange [{}:-0.5]\nset cbrange [0:1]\nset cbtics 0.5\n",
                     sources - 0.5, targets - 0.5);
  out += fmt::format("set colorbox user origin {:.6f},{:.6f} size {:.6f},{:.6f}\n",
                     (left + sources * cell + 20) / width, kBottom / height, 14 / width,
                     std::min(120.0, targets * cell) / height);
  out +=
      "unset key\nset tics scale 0 nomirror textcolor rgb '#1b1f24'\nset border lc rgb '#8a929c'\nset "
      "datafile separator tab\nunset "
      "xtics\n";
  out += palette() + "set format x ''\n";
  std::string across = tics('x', matrix.source, cell);
  across.replace(across.find("xtics"), 5, "x2tics rotate by 90");
  out += fmt::format("set x2range [-0.5:{}]\n", sources - 0.5) + across + tics('y', matrix.target, cell);
  if (matrix.source.size() > 1 && matrix.target.size() > 1)
    return out + "$weights << END\n" + weight_lines(matrix) +
           "END\nplot $weights matrix axes x1y1 with image pixels\n";
  // gnuplot draws no image of a single row or column: boxes.
  return out + "$cells << END\n" + cell_lines(matrix) +
         "END\nplot $cells using 1:2:(0.5):(0.5):3 axes x1y1 with boxxyerror fillcolor palette fillstyle "
         "solid "
         "noborder\n";
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Stream = std::unique_ptr<std::FILE, FileCloser>;

Stream scratch() {
  Stream stream(std::tmpfile());
  if (!stream) throw SystemError("cannot make a temporary file", errno);
  return stream;
}

struct Outcome {
  int status = 0;        // as of waitpid
  std::string messages;  // first line of standard error that says something
};

std::string first_message(std::FILE* stream) {
  std::rewind(stream);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stream));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" ^\t\r") != std::string::npos && !line.starts_with("gnuplot>")) {
      return terminal_text(line.substr(line.find_first_not_of(" \t")));
    }
    begin = end + 1;
  }
  return "no message";
}

/// Runs gnuplot on a script given as standard input, from files so that neither side can wait for the other.
Outcome run_gnuplot(const std::string& program, const std::string& commands) {
  const Stream input = scratch(), errors = scratch();
  if (std::fwrite(commands.data(), 1, commands.size(), input.get()) != commands.size() ||
      std::fflush(input.get()) != 0) {
    throw SystemError("cannot write a temporary file", errno);
  }
  std::rewind(input.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(input.get()), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(errors.get()), STDERR_FILENO);
  std::string name = program, defaults = "-d", from_input = "-";
  char* const arguments[] = {name.data(), defaults.data(), from_input.data(), nullptr};
  pid_t process = 0;
  const int failure = ::posix_spawnp(&process, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) {
    throw SystemError(
        "PNG pictures need gnuplot, which is not installed; install the package gnuplot-nox, or write "
        ".svg or .html");
  }
  if (failure != 0) throw SystemError("cannot run " + program, failure);
  Outcome outcome;
  while (::waitpid(process, &outcome.status, 0) < 0) {
    if (errno != EINTR) throw SystemError("cannot wait for " + program, errno);
  }
  outcome.messages = first_message(errors.get());
  return outcome;
}

}  // namespace

std::string matrix_tsv(const AttentionMatrix& matrix) {
  check_shape(matrix);
  std::string out;
  for (const auto& word : matrix.source) out += "\t" + terminal_text(word);
  out += '\n';
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    out += terminal_text(matrix.target[t]);
    for (size_t s = 0; s < matrix.source.size(); ++s) {
      out += "\t" + weight_text(weight_at(matrix, t, s));
    }
    out += '\n';
  }
  return out;
}

void write_png(const std::filesystem::path& path, const AttentionMatrix& matrix, const PngOptions& options) {
  check_shape(matrix);
  if (matrix.weights.empty()) throw DataError("nothing to draw in " + path.string() + ": there are no words");
  // Absolute names only: gnuplot would run what follows a leading '|' as a command.
  const std::filesystem::path whole = std::filesystem::absolute(path);
  for (const char c : whole.native()) {
    if (c == '\n' || c == '\r') throw UsageError("a picture's file name must not have line breaks");
  }
  std::filesystem::path data = whole, unfinished = whole;
  data += ".tsv";
  unfinished += ".tmp";
  write_file_atomically(data, matrix_tsv(matrix));
  const Outcome outcome = run_gnuplot(options.program, script(matrix, unfinished.string()));
  std::error_code error;
  if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0) {
    std::filesystem::remove(unfinished, error);
    throw SystemError("gnuplot could not draw " + path.string() + ": " + outcome.messages);
  }
  std::filesystem::rename(unfinished, whole, error);
  if (error) throw SystemError("cannot write " + path.string(), error.value());
}

}  // namespace regard::pictures
