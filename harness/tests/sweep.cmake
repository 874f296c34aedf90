# Stressed weights and inputs, explicit plans, drawn goldens.
foreach(name stress plan sweep_draw)
  dflash_test(${name} LIBS dflash_golden LABELS golden)
endforeach()
dflash_test(sweep LIBS dflash_run)
dflash_test(cli_sweep LIBS dflash_load LABELS cli TIMEOUT 300)
target_sources(test_cli_sweep PRIVATE program.c)
add_dependencies(test_cli_sweep dflash-harness dflash-backend-reference dflash-backend-template ${plugin_targets}
                 ${run_plugin_targets})

foreach(backend reference blas)
  if(TARGET dflash-backend-${backend})
    add_test(NAME sweep_${backend} COMMAND dflash-harness sweep --backend ${backend} --count 200 --jobs 2 --quiet)
    set_tests_properties(sweep_${backend} PROPERTIES LABELS sweep TIMEOUT 600 PROCESSORS 2)
  endif()
endforeach()
