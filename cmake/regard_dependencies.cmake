# The libraries that Regard is built on, each as a target regard_dep::NAME whose headers are SYSTEM headers
# (their warnings are not ours). scripts/install-dependencies installs them.

# AVX-512, AVX2 and scalar are the tested targets; the older ones would only grow the library. The macro is a
# bit mask: HWY_SSSE3 is 1<<12 and HWY_SSE4 1<<11 in Highway 1.0.3.
find_package(hwy CONFIG)
if(NOT hwy_FOUND)
  message(FATAL_ERROR "Highway is missing: install libhwy-dev (Debian) or https://github.com/google/highway")
endif()
add_library(regard_hwy INTERFACE)
target_link_libraries(regard_hwy INTERFACE hwy::hwy)
target_compile_definitions(regard_hwy INTERFACE "$<BUILD_INTERFACE:HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)>")
add_library(regard_dep::hwy ALIAS regard_hwy)

if(REGARD_KERNELS_ONLY)
  return()
endif()

find_package(PkgConfig REQUIRED)

function(regard_pkg target module)
  pkg_check_modules(${target} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  add_library(regard_dep::${target} ALIAS PkgConfig::${target})
endfunction()

regard_pkg(sentencepiece sentencepiece)
regard_pkg(utf8proc libutf8proc)
regard_pkg(xxhash libxxhash)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
