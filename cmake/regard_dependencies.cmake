# The libraries that Regard is built on, each as a target regard_dep::NAME whose headers are SYSTEM headers
# (their warnings are not ours). scripts/install-dependencies installs them.

find_package(PkgConfig REQUIRED)

function(regard_pkg target module)
  pkg_check_modules(${target} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  add_library(regard_dep::${target} ALIAS PkgConfig::${target})
endfunction()

regard_pkg(hwy libhwy)
# AVX-512, AVX2 and scalar are the tested targets; the older ones would only grow the library. The macro is a
# bit mask: HWY_SSSE3 is 1<<12 and HWY_SSE4 1<<11 in Highway 1.0.3.
target_compile_definitions(PkgConfig::hwy INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
regard_pkg(sentencepiece sentencepiece)
regard_pkg(utf8proc libutf8proc)
regard_pkg(xxhash libxxhash)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
