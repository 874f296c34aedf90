# Backends as built: loaded, called, compared with themselves. Plug-ins that are wrong on purpose.

# ---- each public header compiles alone, in C11 and in C++17
file(GLOB public_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/harness/include
     ${PROJECT_SOURCE_DIR}/harness/include/dflash/*.h)
set(header_sources)
foreach(header ${public_headers})
  string(MAKE_C_IDENTIFIER ${header} unit)
  foreach(language c cpp)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${unit}.${language})
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n#include \"@header@\"\n" @ONLY)
    list(APPEND header_sources ${source})
  endforeach()
endforeach()
add_executable(test_headers test_headers.c test_headers_cxx.cpp ${header_sources})
target_link_libraries(test_headers PRIVATE dflash_headers dflash_options PkgConfig::CMOCKA)
target_compile_options(test_headers PRIVATE -Wpedantic)
add_test(NAME headers COMMAND test_headers)
set_tests_properties(headers PROPERTIES LABELS unit TIMEOUT 60)

# ---- plug-ins for tests
file(GLOB reference_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/reference/*.c)
list(FILTER reference_sources EXCLUDE REGEX "/entry\\.c$")
add_library(dflash_reference_parts STATIC ${reference_sources} plugins/plugin.c plugins/plugin_stage.c)
target_link_libraries(dflash_reference_parts PUBLIC dflash_base PRIVATE dflash_options)

set(dflash_test_plugins wrong-abi small-struct no-member no-symbol crash-open crash-block hang-block error-block
    nan-stage unwritten-stage overrun-stage unrepeatable)
foreach(plugin ${dflash_test_plugins})
  dflash_backend(${plugin} TEST_ONLY SOURCES plugins/${plugin}.c DEPENDS dflash_reference_parts)
  list(APPEND plugin_targets dflash-backend-${plugin})
endforeach()

foreach(name reference reference_context reference_stages reference_decode reference_select reference_model reference_calls
        reference_golden reference_sums reference_profiles reference_orders plugins)
  dflash_test(${name} LABELS backend LIBS dflash_base ${CMAKE_DL_LIBS})
  target_sources(test_${name} PRIVATE tiny_model.c)
  add_dependencies(test_${name} dflash-backend-reference dflash-backend-template ${plugin_targets})
endforeach()
target_link_libraries(test_reference_golden PRIVATE dflash_load)
target_link_libraries(test_reference_sums PRIVATE dflash_reference_parts dflash_model)
target_link_libraries(test_reference_profiles PRIVATE dflash_model)
# The address sanitiser's allocator ends the program when memory is out, unless told to fail like any other.
set_tests_properties(reference_calls PROPERTIES ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1")

# kernels of the faulty backend
set(faulty_folder ${PROJECT_SOURCE_DIR}/backends/faulty)
dflash_test(faulty_kernels_a LABELS backend LIBS dflash_model ${CMAKE_DL_LIBS})
target_sources(test_faulty_kernels_a PRIVATE tiny_model.c ${faulty_folder}/kernel_matrix.c
  ${faulty_folder}/kernel_matrix_i8.c ${faulty_folder}/kernel_norm.c ${faulty_folder}/stage.c ${faulty_folder}/weights.c
  ${faulty_folder}/values.c ${faulty_folder}/check.c)
dflash_test(faulty_kernels_b LABELS backend LIBS dflash_model ${CMAKE_DL_LIBS})
target_sources(test_faulty_kernels_b PRIVATE tiny_model.c ${PROJECT_SOURCE_DIR}/backends/faulty/kernel_attention.c)
dflash_test(faulty_kernels_c LABELS backend LIBS dflash_model ${CMAKE_DL_LIBS})
target_sources(test_faulty_kernels_c PRIVATE tiny_model.c ${PROJECT_SOURCE_DIR}/backends/faulty/kernel_conv.c
  ${PROJECT_SOURCE_DIR}/backends/faulty/kernel_act.c ${PROJECT_SOURCE_DIR}/backends/faulty/kernel_select.c)
