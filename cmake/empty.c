typedef int dflash_empty; /* stands in for a module without sources */
