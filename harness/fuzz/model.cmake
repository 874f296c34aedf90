dflash_fuzz(geometry dflash_model)
dflash_fuzz(storage dflash_model)
