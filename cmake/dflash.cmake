# How this project builds: one line a module, a backend, a test.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(DFLASH_BACKEND_DIR ${CMAKE_INSTALL_LIBDIR}/dflash/backends)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)

add_library(dflash_options INTERFACE)
target_compile_definitions(dflash_options INTERFACE _GNU_SOURCE)
# No contraction anywhere by default: values must agree across machines. A backend may allow it for itself.
target_compile_options(dflash_options INTERFACE -ffp-contract=off -fno-math-errno
  -Wall -Wextra -Wshadow -Wvla -Wundef -Wpointer-arith $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
if(DFLASH_WERROR)
  target_compile_options(dflash_options INTERFACE -Werror)
endif()
if(DFLASH_SANITIZE)
  target_compile_options(dflash_options INTERFACE -fsanitize=${DFLASH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(dflash_options INTERFACE -fsanitize=${DFLASH_SANITIZE})
endif()
if(DFLASH_FUZZ)
  target_compile_options(dflash_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

add_library(dflash_headers INTERFACE)
target_include_directories(dflash_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/harness/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# dflash_module(base DEPENDS ...): a static library dflash_base of every .c file of the current folder.
function(dflash_module name)
  cmake_parse_arguments(arg "" "FOLDER" "DEPENDS" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${arg_FOLDER}/*.c)
  if(NOT sources)
    set(sources ${PROJECT_SOURCE_DIR}/cmake/empty.c)
  endif()
  add_library(dflash_${name} STATIC ${sources})
  target_include_directories(dflash_${name} PUBLIC ${PROJECT_SOURCE_DIR}/harness ${PROJECT_SOURCE_DIR})
  target_link_libraries(dflash_${name} PUBLIC dflash_headers ${arg_DEPENDS} PRIVATE dflash_options)
endfunction()

# dflash_backend(blas DEPENDS ...): a loadable module dflash-backend-blas.so of every .c file of the current folder.
function(dflash_backend name)
  cmake_parse_arguments(arg "TEST_ONLY" "" "SOURCES;DEPENDS;OPTIONS" ${ARGN})
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  endif()
  if(NOT arg_SOURCES)
    set(arg_SOURCES ${PROJECT_SOURCE_DIR}/cmake/empty.c)
  endif()
  add_library(dflash-backend-${name} MODULE ${arg_SOURCES})
  target_include_directories(dflash-backend-${name} PRIVATE ${PROJECT_SOURCE_DIR}/harness)
  target_link_libraries(dflash-backend-${name} PRIVATE dflash_headers dflash_options ${arg_DEPENDS})
  target_compile_options(dflash-backend-${name} PRIVATE ${arg_OPTIONS})
  set(folder ${PROJECT_BINARY_DIR}/backends)
  if(arg_TEST_ONLY)
    set(folder ${PROJECT_BINARY_DIR}/test-backends)
  endif()
  set_target_properties(dflash-backend-${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${folder})
  if(NOT arg_TEST_ONLY)
    install(TARGETS dflash-backend-${name} DESTINATION ${DFLASH_BACKEND_DIR})
  endif()
endfunction()

# dflash_test(stage_table [SOURCE test_stage_table.c] [LABELS unit] [LIBS ...] [TIMEOUT s]): with cmocka; one CTest entry.
# Labels: unit (default), golden, cli, backend, vulkan. Working folder: the build's own; paths come in as macros.
function(dflash_test name)
  cmake_parse_arguments(arg "" "SOURCE;TIMEOUT" "LABELS;LIBS" ${ARGN})
  if(NOT arg_SOURCE)
    set(arg_SOURCE test_${name}.c)
  endif()
  add_executable(test_${name} ${arg_SOURCE})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/harness ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_${name} PRIVATE ${arg_LIBS} dflash_options PkgConfig::CMOCKA m)
  target_compile_definitions(test_${name} PRIVATE
    DFLASH_GOLDEN_FOLDER="${PROJECT_SOURCE_DIR}/golden/files"
    DFLASH_SCRATCH_FOLDER="${CMAKE_CURRENT_BINARY_DIR}"
    DFLASH_HARNESS_PROGRAM="${PROJECT_BINARY_DIR}/dflash-harness"
    DFLASH_BACKEND_FOLDER="${PROJECT_BINARY_DIR}/backends"
    DFLASH_TEST_BACKEND_FOLDER="${PROJECT_BINARY_DIR}/test-backends")
  add_test(NAME ${name} COMMAND test_${name})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
