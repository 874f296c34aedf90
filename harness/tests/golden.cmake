dflash_test(draw LIBS dflash_golden)
dflash_test(cases LIBS dflash_golden)
dflash_test(recipe LIBS dflash_golden)
dflash_test(exact LIBS dflash_golden LABELS golden)
dflash_test(generate LIBS dflash_golden LABELS golden TIMEOUT 600)
dflash_test(check LIBS dflash_golden LABELS golden)

# the oracle
foreach(name oracle oracle_scale oracle_exact oracle_select evaluate)
  dflash_test(${name} LIBS dflash_golden)
  target_sources(test_${name} PRIVATE test_oracle_model.c test_oracle_f32.c test_oracle_naive.c)
endforeach()
set_tests_properties(evaluate PROPERTIES LABELS "golden")
dflash_test(oracle_likeness LIBS dflash_golden)

# golden make, as a user runs it
dflash_test(golden_make LIBS dflash_load LABELS cli TIMEOUT 300)
target_sources(test_golden_make PRIVATE program.c)
add_dependencies(test_golden_make dflash-harness)

# profile i8
dflash_test(golden_i8 LIBS dflash_golden LABELS golden)
foreach(name oracle_i8 oracle_i8_scale)
  dflash_test(${name} LIBS dflash_golden LABELS golden)
  target_sources(test_${name} PRIVATE test_oracle_i8_model.c test_oracle_i8_naive.c test_oracle_model.c test_oracle_f32.c)
endforeach()

# profiles f16 and bf16
foreach(name oracle_half oracle_half_attention oracle_half_chain)
  dflash_test(${name} LIBS dflash_golden)
  target_sources(test_${name} PRIVATE test_oracle_half_rows.c test_oracle_half_ways.c test_oracle_model.c
    test_oracle_f32.c)
endforeach()
