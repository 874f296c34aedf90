# Records, waivers and peers, which users give to compare-runs, gate and bench.
dflash_fuzz(runs dflash_run)
dflash_fuzz(waivers dflash_run)
dflash_fuzz(peers dflash_run)
