# `cmake --install` gives the kernels to other projects: find_package(regard) defines regard::attention, regard::gemm,
# regard::simd and regard::base. Static libraries, whose only needs are Highway and threads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(kernels base simd gemm attention)
set(targets regard_options regard_hwy)
set_target_properties(regard_options PROPERTIES EXPORT_NAME options)
set_target_properties(regard_hwy PROPERTIES EXPORT_NAME hwy)
foreach(folder ${kernels})
  list(APPEND targets regard_${folder})
  set_target_properties(regard_${folder} PROPERTIES EXPORT_NAME ${folder})
  # What ends in -inl.h is compiled into the libraries once for each processor; users need Highway's headers for none.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/regard/${folder}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/regard"
    FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE)
endforeach()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/regard")
install(TARGETS ${targets} EXPORT regardTargets)
install(EXPORT regardTargets NAMESPACE regard:: DESTINATION "${package}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/regardConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/regardConfig.cmake" INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/regardConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/regardConfig.cmake" "${PROJECT_BINARY_DIR}/regardConfigVersion.cmake"
  DESTINATION "${package}")
