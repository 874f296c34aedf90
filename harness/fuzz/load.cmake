# The checks of golden files, fed with descriptions of attributes, datasets and operations: not with HDF5 files.
dflash_fuzz(golden dflash_load)
