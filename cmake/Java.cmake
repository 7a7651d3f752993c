# isozone-java: a jar with Isozone for the rocksdbjni whose library the build is for (docs/engines/java.md). The target
# isozone_java_jar makes it; no other one needs it. Where there is no JDK, there is no such target.
find_program(JAVAC_PROGRAM javac)
find_program(JAR_PROGRAM jar)
file(REAL_PATH "${JAVAC_PROGRAM}" javac_file)
cmake_path(GET javac_file PARENT_PATH javac_directory)
find_path(ISOZONE_JNI_INCLUDE jni.h PATHS ${javac_directory}/../include NO_DEFAULT_PATH)
if(NOT JAVAC_PROGRAM OR NOT JAR_PROGRAM OR NOT ISOZONE_JNI_INCLUDE)
  message(STATUS "There is no JDK, so isozone-java is not built: run scripts/install-dependencies engines")
  return()
endif()

set(library ${PROJECT_SOURCE_DIR}/src/rocksdb/library)
add_library(isozone_java SHARED EXCLUDE_FROM_ALL
            ${library}/compaction_driver.cc ${library}/isozone.cc ${library}/java.cc)
target_include_directories(isozone_java PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_include_directories(isozone_java SYSTEM PRIVATE ${ISOZONE_JNI_INCLUDE} ${ISOZONE_JNI_INCLUDE}/linux)
target_compile_definitions(isozone_java PRIVATE ISOZONE_VERSION="${PROJECT_VERSION}")
# libstdc++ before rocksdbjni's library, which exports parts of a libstdc++ of its own. Errors of std::filesystem, for
# one, would not equal those of another.
target_link_libraries(isozone_java PRIVATE stdc++ isozone_steering isozone_options)
target_link_options(isozone_java PRIVATE LINKER:-z,nodelete LINKER:-z,defs
                                         LINKER:--version-script=${library}/java.map)
# Beside itself it finds rocksdbjni's library (java.cc).
set_target_properties(isozone_java PROPERTIES LINK_DEPENDS ${library}/java.map
                                              BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")

# Which releases there is a jar for is told to the users of another one (Library.java).
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/fetch-newest-rocksdb --versions
                OUTPUT_VARIABLE ISOZONE_JAVA_VERSIONS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scripts/fetch-newest-rocksdb)

set(classes ${PROJECT_BINARY_DIR}/java/classes)
set(ISOZONE_JAVA_JAR ${PROJECT_BINARY_DIR}/java/isozone-java-${PROJECT_VERSION}-rocksdb-${ISOZONE_ROCKSDB_VERSION}.jar)
set(manifest ${PROJECT_BINARY_DIR}/java/manifest)
file(CONFIGURE OUTPUT ${manifest}
     CONTENT "Premain-Class: org.isozone.Agent\nImplementation-Version: ${PROJECT_VERSION}\n")
file(GLOB sources CONFIGURE_DEPENDS ${library}/java/org/*/*.java)
add_custom_command(
  OUTPUT ${ISOZONE_JAVA_JAR}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${classes}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${classes}
  COMMAND ${JAVAC_PROGRAM} -Xlint:all,-options -Werror --release 8 -cp ${ISOZONE_ROCKSDBJNI_JAR} -d ${classes}
          ${sources}
  COMMAND ${CMAKE_COMMAND} -E echo ${ISOZONE_ROCKSDB_VERSION} > ${classes}/org/isozone/rocksdb-version
  COMMAND ${CMAKE_COMMAND} -E echo ${ISOZONE_JAVA_VERSIONS} > ${classes}/org/isozone/rocksdb-versions
  COMMAND ${CMAKE_STRIP} -o ${classes}/org/isozone/libisozone_java.so $<TARGET_FILE:isozone_java>
  COMMAND ${JAR_PROGRAM} --create --file ${ISOZONE_JAVA_JAR} --manifest ${manifest} -C ${classes} .
  DEPENDS ${sources} isozone_java
  VERBATIM)
add_custom_target(isozone_java_jar DEPENDS ${ISOZONE_JAVA_JAR})
