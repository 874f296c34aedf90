# Fills a history for measurements; no test, made by its name alone.
add_executable(history_fill EXCLUDE_FROM_ALL history_fill.c)
target_link_libraries(history_fill PRIVATE dflash_store dflash_options)

foreach(name history history_pack history_move history_version history_hostile history_kill)
  dflash_test(${name} LIBS dflash_store)
  target_compile_definitions(test_${name} PRIVATE DFLASH_HISTORY_FILES="${CMAKE_CURRENT_SOURCE_DIR}/history")
endforeach()

dflash_test(cli_history LIBS dflash_load LABELS cli TIMEOUT 300)
target_sources(test_cli_history PRIVATE program.c)
add_dependencies(test_cli_history dflash-harness dflash-backend-reference)

# What docs/history.md says of tables and packs, beside what the program writes.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  set(lines ${PROJECT_SOURCE_DIR}/harness/fuzz/corpus/history_lines)
  add_test(NAME history_document COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/history_document.py
           $<TARGET_FILE:dflash-harness> ${PROJECT_SOURCE_DIR}/docs/history.md ${lines}/all ${lines}/sweep)
  set_tests_properties(history_document PROPERTIES LABELS cli TIMEOUT 60)
endif()
