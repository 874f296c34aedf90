# Records and waivers, which users give to compare-runs and gate.
dflash_fuzz(runs dflash_run)
dflash_fuzz(waivers dflash_run)
