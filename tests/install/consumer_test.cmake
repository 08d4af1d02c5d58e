# usage: cmake -DBUILD=DIR -DSOURCE=DIR -DCOMPILER=C++ -DWORK=DIR -P consumer_test.cmake
cmake_policy(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nfailed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")

# The consumer is copied out of our tree, so that only the installed headers can be found.
file(COPY "${SOURCE}/tests/install/consumer/" "${SOURCE}/examples/attention.cc" DESTINATION "${WORK}/consumer")
file(GLOB_RECURSE headers RELATIVE "${WORK}/prefix/include" "${WORK}/prefix/include/*.h")
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN headers "" headers)
file(WRITE "${WORK}/consumer/headers.cc" "${headers}int main() {}\n")

run("${CMAKE_COMMAND}" -S "${WORK}/consumer" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release)
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/attention")
if(NOT output MATCHES "^-3 -2 -1 0 ")  # the first position attends to itself alone
  message(FATAL_ERROR "examples/attention.cc printed: ${output}")
endif()
file(REMOVE_RECURSE "${WORK}")
