# Golden files: fixtures, writing, hashes, refusals, damage.
dflash_test(load_stored LIBS dflash_load)
foreach(name load_fixtures load_write load_hash load_accept load_refuse load_hostile load_full_disk)
  dflash_test(${name} LIBS dflash_load)
  target_sources(test_${name} PRIVATE golden_copy.c)
endforeach()
