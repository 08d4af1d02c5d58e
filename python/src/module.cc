// The extension module regard._kernels: what python/src/regard wraps.

#include <unistd.h>

#include <map>
#include <mutex>

#include "python/src/arrays.h"

namespace regard::python {

ThreadPool* pool(int threads) {
  if (threads < 0)
    throw ShapeError("threads is " + std::to_string(threads) + ", expected 1 or more, or None");
  if (threads == 0) threads = available_processors();
  if (threads == 1) return nullptr;
  struct Pools {
    std::mutex mutex;
    std::map<std::pair<pid_t, int>, ThreadPool*> pools;  // a child of fork() has none of its parent's threads
  };
  static auto& all = *new Pools;  // never destroyed: threads may outlive the interpreter's end
  const std::lock_guard lock(all.mutex);
  ThreadPool*& found = all.pools[{getpid(), threads}];
  if (!found) found = new ThreadPool(threads);
  return found;
}

}  // namespace regard::python

NB_MODULE(_kernels, m) {
  using namespace regard::python;
  m.doc() = "Regard's kernels on arrays that are already allocated; use the functions of `regard`.";
  m.attr("version") = REGARD_VERSION;
  nb::exception<regard::ShapeError>(m, "ShapeError", PyExc_ValueError).attr("__doc__") =
      "An operand or option that does not fit: its name, its shape or value, and what is expected.";
  bind_attention(m);
  bind_decode(m);
  bind_linear(m);
  bind_additive(m);
}
