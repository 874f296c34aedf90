# The gate against itself: the catalogue of defects, and the harness with a part of it replaced.
foreach(base reference blas)
  add_test(NAME selftest_${base} COMMAND dflash-harness selftest --quiet --option base=${base})
  set_tests_properties(selftest_${base} PROPERTIES LABELS selftest TIMEOUT 600 PROCESSORS 2)
endforeach()

# dflash_mutant(always-pass always_pass.c WRAPS a b): the program with functions a and b replaced.
function(dflash_mutant name source)
  cmake_parse_arguments(arg "" "" "WRAPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/harness/cli/*.c)
  add_executable(mutant-${name} ${sources} mutants/${source})
  target_link_libraries(mutant-${name} PRIVATE dflash_run dflash_options dflash_report_places)
  target_compile_definitions(mutant-${name} PRIVATE DFLASH_VERSION="${PROJECT_VERSION}"
    DFLASH_BACKEND_FOLDER="${PROJECT_BINARY_DIR}/backends")
  foreach(function ${arg_WRAPS})
    target_link_options(mutant-${name} PRIVATE -Wl,--wrap=${function})
  endforeach()
  set_target_properties(mutant-${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mutants)
  add_dependencies(test_mutants mutant-${name})
endfunction()

dflash_backend(noop-block TEST_ONLY SOURCES plugins/noop-block.c DEPENDS dflash_reference_parts)
dflash_test(mutants LIBS dflash_load LABELS selftest TIMEOUT 300)
target_sources(test_mutants PRIVATE program.c)
target_compile_definitions(test_mutants PRIVATE DFLASH_MUTANT_FOLDER="${PROJECT_BINARY_DIR}/mutants")
add_dependencies(test_mutants dflash-harness dflash-backend-reference dflash-backend-faulty dflash-backend-noop-block)
dflash_mutant(always-pass always_pass.c WRAPS dflash_compare_values dflash_compare_tokens)
dflash_mutant(constant-clock constant_clock.c WRAPS dflash_clock_ns)
dflash_mutant(own-golden own_golden.c WRAPS dflash_oracle_stage)

dflash_test(selftest LIBS dflash_load LABELS "selftest;cli" TIMEOUT 120)
target_sources(test_selftest PRIVATE program.c)
add_dependencies(test_selftest dflash-harness dflash-backend-reference dflash-backend-faulty)
