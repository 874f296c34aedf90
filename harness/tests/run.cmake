# The runner's parts, and the program as a user runs it.
set(dflash_run_plugins crash-cut hang-full exit-block crash-close crash-load talk helper off-stage
    keeps-rows late-overrun second-plain false-cover load-swaps half-clock)
foreach(plugin ${dflash_run_plugins})
  dflash_backend(${plugin} TEST_ONLY SOURCES plugins/${plugin}.c DEPENDS dflash_reference_parts)
  list(APPEND run_plugin_targets dflash-backend-${plugin})
endforeach()

foreach(name tally names options reproduce verdict)
  dflash_test(${name} LIBS dflash_run)
endforeach()
foreach(name isolate loader)
  dflash_test(${name} LIBS dflash_run LABELS cli)
  add_dependencies(test_${name} dflash-backend-reference ${plugin_targets} ${run_plugin_targets})
endforeach()
dflash_test(arguments LIBS dflash_run)
target_sources(test_arguments PRIVATE ${PROJECT_SOURCE_DIR}/harness/cli/arguments.c)

foreach(name cli_usage cli_golden cli_verify cli_resume cli_plugins cli_bench cli_peers cli_full_disk
        cli_damage)
  dflash_test(${name} LIBS dflash_load LABELS cli TIMEOUT 300)
  target_sources(test_${name} PRIVATE program.c)
  add_dependencies(test_${name} dflash-harness dflash-backend-reference dflash-backend-blas dflash-backend-template ${plugin_targets}
                   ${run_plugin_targets})
endforeach()
target_sources(test_cli_damage PRIVATE golden_copy.c)

# Times compared, and the gate.
foreach(name cli_compare_runs cli_gate cli_gate_history)
  dflash_test(${name} LIBS dflash_load LABELS cli TIMEOUT 300)
  target_sources(test_${name} PRIVATE program.c bench_records.c)
  add_dependencies(test_${name} dflash-harness dflash-backend-reference dflash-backend-faulty)
endforeach()
dflash_test(gate_waivers LIBS dflash_run)
