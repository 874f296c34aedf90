# stressed weights and inputs, explicit plans, drawn goldens
dflash_test(stress LIBS dflash_golden LABELS golden)
dflash_test(plan LIBS dflash_golden LABELS golden)
dflash_test(sweep_draw LIBS dflash_golden LABELS golden)
