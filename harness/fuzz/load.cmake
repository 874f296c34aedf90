# The checks of golden files, fed with descriptions of attributes, datasets and operations: not with HDF5 files.
dflash_fuzz(golden dflash_load)
# An entry of a dump, after HDF5 has read it.
dflash_fuzz(dump dflash_load)
# Shapes and rows of another engine's values.
dflash_fuzz(candidate dflash_load)
