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

# cuda_images(SOURCES NAME...): kernels/NAME.cu compiled, and a C file with the table of them; SOURCES gets its name.
function(cuda_images sources)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/images)
  set(text "#include \"device.h\"\n\n")
  set(rows "")
  foreach(name ${ARGN})
    set(image ${folder}/${name}.fatbin)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${name}.cu)
    set(targets ${DFLASH_CUDA_TARGETS})
    if(DEFINED DFLASH_CUDA_TARGETS_${name})
      set(targets ${DFLASH_CUDA_TARGETS_${name}})
    endif()
    add_custom_command(
      OUTPUT ${image}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND ${DFLASH_NVCC} -std=c++17 -O3 --threads 2 ${targets} -Xfatbin -compress-all
              -Werror all-warnings -MD -MF ${image}.d -MT ${image} --fatbin -o ${image} ${source}
      DEPENDS ${source} DEPFILE ${image}.d COMMENT "CUDA kernels ${name}" VERBATIM)
    list(APPEND images ${image})
    string(APPEND text "__asm__(\".section .rodata\\n.balign 64\\n.globl cuda_image_${name}\\n.hidden cuda_image_${name}\\n\"\n"
                       "        \"cuda_image_${name}:\\n.incbin \\\"${image}\\\"\\n.byte 0\\n.previous\\n\");\n"
                       "extern const unsigned char cuda_image_${name}[];\n")
    string(APPEND rows "{\"${name}\", cuda_image_${name}}, ")
  endforeach()
  string(APPEND text "\nconst CudaModule cuda_modules[] = {${rows}{0}};\n")
  file(CONFIGURE OUTPUT ${folder}/images.c CONTENT "${text}" @ONLY)
  set_source_files_properties(${folder}/images.c PROPERTIES OBJECT_DEPENDS "${images}")
  set(${sources} ${folder}/images.c PARENT_SCOPE)
endfunction()
