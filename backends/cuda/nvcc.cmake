# Kernels into the backend: each .cu file of kernels/ becomes one image for all targets, which the driver chooses from.

function(cuda_accept_nvcc accepted program)
  execute_process(COMMAND ${program} --version OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "release ([0-9.]+)" OR CMAKE_MATCH_1 VERSION_LESS 12.8)
    set(${accepted} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(DFLASH_NVCC nvcc HINTS ${PROJECT_SOURCE_DIR}/build/cuda-tools/cuda/bin /usr/local/cuda/bin
             VALIDATOR cuda_accept_nvcc)

# Machine code for these, and PTX of the first, which later devices compile when they load it.
set(DFLASH_CUDA_TARGETS -gencode=arch=compute_80,code=[sm_80,compute_80] -gencode=arch=compute_90a,code=sm_90a
                        -gencode=arch=compute_100,code=sm_100 -gencode=arch=compute_120,code=sm_120)

# The fast path is written for one architecture; a driver of another device finds no code in its image.
set(DFLASH_CUDA_TARGETS_fast -gencode=arch=compute_90a,code=sm_90a)
set(DFLASH_CUDA_TARGETS_fast_f16 ${DFLASH_CUDA_TARGETS_fast})
set(DFLASH_CUDA_TARGETS_fast_f16_tall ${DFLASH_CUDA_TARGETS_fast})

# cuda_image(IMAGE SOURCE OPTIONS...): SOURCE, a .cu file, compiled to the file IMAGE.
function(cuda_image image source)
  add_custom_command(
    OUTPUT ${image}
    COMMAND ${DFLASH_NVCC} -std=c++17 -O3 --threads 2 ${ARGN} -Xfatbin -compress-all -MD -MF ${image}.d -MT ${image}
            --fatbin -o ${image} ${source}
    DEPENDS ${source} DEPFILE ${image}.d COMMENT "CUDA kernels ${image}" VERBATIM)
endfunction()

# cuda_table(FILE TABLE ROWS...): a C file with a table of images; a row is "name symbol image", symbol of this table alone.
function(cuda_table file table)
  set(text "#include \"device.h\"\n\n")
  set(rows "")
  set(all "")
  foreach(row ${ARGN})
    separate_arguments(row UNIX_COMMAND "${row}")
    list(GET row 0 name)
    list(GET row 1 symbol)
    list(GET row 2 image)
    set(symbol ${table}_${symbol})
    list(APPEND all ${image})
    string(APPEND text "__asm__(\".section .rodata\\n.balign 64\\n.globl ${symbol}\\n.hidden ${symbol}\\n\"\n"
                       "        \"${symbol}:\\n.incbin \\\"${image}\\\"\\n.byte 0\\n.previous\\n\");\n"
                       "extern const unsigned char ${symbol}[];\n")
    string(APPEND rows "{\"${name}\", ${symbol}}, ")
  endforeach()
  string(APPEND text "\nextern const CudaModule ${table}[];\nconst CudaModule ${table}[] = {${rows}{0}};\n")
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  set_source_files_properties(${file} PROPERTIES OBJECT_DEPENDS "${all}")
endfunction()

# cuda_images(SOURCES NAME...): kernels/NAME.cu compiled, and a C file with the table of them; SOURCES gets its name, and
# SOURCES_rows the table's rows.
function(cuda_images sources)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/images)
  file(MAKE_DIRECTORY ${folder})
  set(rows "")
  foreach(name ${ARGN})
    set(targets ${DFLASH_CUDA_TARGETS})
    if(DEFINED DFLASH_CUDA_TARGETS_${name})
      set(targets ${DFLASH_CUDA_TARGETS_${name}})
    endif()
    cuda_image(${folder}/${name}.fatbin ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${name}.cu ${targets} -Werror all-warnings)
    list(APPEND rows "${name} ${name} ${folder}/${name}.fatbin")
  endforeach()
  cuda_table(${folder}/images.c cuda_modules ${rows})
  set(${sources} ${folder}/images.c PARENT_SCOPE)
  set(${sources}_rows ${rows} PARENT_SCOPE)
endfunction()
