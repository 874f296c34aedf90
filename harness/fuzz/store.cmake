# Records in a history, and the lines that import reads.
dflash_fuzz(history_pack dflash_store)
dflash_fuzz(history_lines dflash_store)
