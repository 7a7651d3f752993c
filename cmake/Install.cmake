# What `cmake --install` installs: the library, its public headers, the command line tool with manual page and shell
# completion, the device profiles for users to copy and change, the udev rule that gives zoned devices to a group, and
# the CMake package behind find_package(isozone), which gives the target isozone::isozone.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/isozone)

if(TARGET isozone)
  set_target_properties(isozone PROPERTIES VERSION ${PROJECT_VERSION}
                                           SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                                           INSTALL_RPATH_USE_LINK_PATH TRUE)
  # Loading the library is what registers isozone:// with RocksDB, so the linker must keep it even where a program calls
  # none of its functions.
  target_link_options(isozone INTERFACE LINKER:--no-as-needed)
  install(TARGETS isozone EXPORT isozone
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(TARGETS isozone_run LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/isozone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT isozone FILE isozoneTargets.cmake NAMESPACE isozone:: DESTINATION ${package_dir})
  file(WRITE ${PROJECT_BINARY_DIR}/isozoneConfig.cmake
       "include(\${CMAKE_CURRENT_LIST_DIR}/isozoneTargets.cmake)\n")
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/isozoneConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/isozoneConfig.cmake ${PROJECT_BINARY_DIR}/isozoneConfigVersion.cmake
          DESTINATION ${package_dir})
endif()

if(TARGET isozone_cli)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(isozone_cli PROPERTIES OUTPUT_NAME isozone INSTALL_RPATH "\$ORIGIN/${bin_to_lib}"
                                               INSTALL_RPATH_USE_LINK_PATH TRUE)
  install(TARGETS isozone_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/isozone.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/isozone/completion/isozone.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME isozone)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/isozone/completion/_isozone
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
# mount(8) looks for its helpers in /sbin alone.
install(PROGRAMS ${PROJECT_SOURCE_DIR}/packaging/mount.isozone DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(PROGRAMS ${PROJECT_SOURCE_DIR}/packaging/mount.isozone DESTINATION ${CMAKE_INSTALL_SBINDIR}
        RENAME mount.fuse.isozone)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/isozone-mount@.service DESTINATION lib/systemd/system)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/60-isozone.rules DESTINATION lib/udev/rules.d)
install(FILES ${PROJECT_SOURCE_DIR}/contrib/grafana/isozone.json DESTINATION ${CMAKE_INSTALL_DATADIR}/isozone/grafana)
install(FILES ${PROJECT_SOURCE_DIR}/contrib/prometheus/isozone.rules.yml
        DESTINATION ${CMAKE_INSTALL_DATADIR}/isozone/prometheus)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/isozone)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
