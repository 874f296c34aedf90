dflash_fuzz(sidecar dflash_model)
dflash_fuzz(checkpoint_config dflash_model)
dflash_fuzz(safetensors dflash_model)
dflash_fuzz(router dflash_model)
