dflash_test(clock LIBS dflash_time)
dflash_test(statistics LIBS dflash_time)
dflash_test(sample LIBS dflash_time)
