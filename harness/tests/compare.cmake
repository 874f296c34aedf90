dflash_test(compare_values LIBS dflash_compare)
dflash_test(compare_tokens LIBS dflash_compare)
dflash_test(compare_pattern LIBS dflash_compare)
dflash_test(compare_relation LIBS dflash_compare)
