# Dumps of failing values, and values that other engines wrote.
dflash_backend(off-crash TEST_ONLY SOURCES plugins/off-crash.c DEPENDS dflash_reference_parts)
dflash_test(cli_dump LIBS dflash_load LABELS cli TIMEOUT 300)
target_sources(test_cli_dump PRIVATE program.c)
add_dependencies(test_cli_dump dflash-harness dflash-backend-reference dflash-backend-faulty dflash-backend-off-crash
                 ${plugin_targets} ${run_plugin_targets})

foreach(name cli_compare cli_compare_refuse)
  dflash_test(${name} LIBS dflash_load LABELS cli TIMEOUT 300)
  target_sources(test_${name} PRIVATE program.c candidate_file.c)
  add_dependencies(test_${name} dflash-harness)
endforeach()
target_compile_definitions(test_cli_compare PRIVATE DFLASH_DOCS_FOLDER="${PROJECT_SOURCE_DIR}/docs")
