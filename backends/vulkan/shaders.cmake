# Shaders into C: every module of shaders/modules.cmake is compiled, checked, and becomes words of vulkan_modules.

find_program(DFLASH_GLSLANG NAMES glslang glslangValidator HINTS ${PROJECT_SOURCE_DIR}/build/shader-tools/bin)
find_program(DFLASH_SPIRV_VAL NAMES spirv-val HINTS ${PROJECT_SOURCE_DIR}/build/shader-tools/bin)

set(shader_folder ${CMAKE_CURRENT_SOURCE_DIR}/shaders)
set(module_folder ${CMAKE_CURRENT_BINARY_DIR}/modules)
file(GLOB shaders CONFIGURE_DEPENDS ${shader_folder}/*.comp)

# vulkan_module(matrix_q4 matrix WEIGHTS_Q4): module matrix_q4 is matrix.comp with these names defined. A module whose
# shader is not there has no words, and its kernel cannot be made.
function(vulkan_module name shader)
  set(source ${shader_folder}/${shader}.comp)
  if(NOT source IN_LIST shaders)
    set(includes "${includes}#define MODULE_${name} NULL, 0\n" PARENT_SCOPE)
    set(module_missing ${module_missing} ${name} PARENT_SCOPE)
    return()
  endif()
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE defines)
  set(spirv ${module_folder}/${name}.spv)
  add_custom_command(
    OUTPUT ${spirv}
    COMMAND ${DFLASH_GLSLANG} --target-env vulkan1.2 -V --quiet -DVULKAN_GLSL ${defines} -I${shader_folder}
            --depfile ${spirv}.d -o ${spirv} ${source}
    COMMAND ${DFLASH_SPIRV_VAL} --target-env vulkan1.2 ${spirv}
    DEPENDS ${source} DEPFILE ${spirv}.d COMMENT "Shader module ${name}" VERBATIM)
  add_custom_command(
    OUTPUT ${module_folder}/${name}.h
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DSPIRV=${spirv} -DOUTPUT=${module_folder}/${name}.h
            -P ${CMAKE_CURRENT_SOURCE_DIR}/embed.cmake
    DEPENDS ${spirv} ${CMAKE_CURRENT_SOURCE_DIR}/embed.cmake COMMENT "Words of ${name}" VERBATIM)
  set(includes "${includes}#include \"${name}.h\"\n" PARENT_SCOPE)
  set(module_outputs ${module_outputs} ${module_folder}/${name}.h PARENT_SCOPE)
endfunction()

# Sets vulkan_module_sources: modules.c and what it includes.
macro(vulkan_modules)
  set(includes)
  set(module_outputs)
  set(module_missing)
  include(shaders/modules.cmake)
  if(module_missing)
    message(STATUS "vulkan: modules without a shader: ${module_missing}")
  endif()
  file(CONFIGURE OUTPUT ${module_folder}/modules.c CONTENT [[
#include "kernel.h"

@includes@
#define MODULE_ROW(id, module, ...) {#module, MODULE_##module},
const VulkanModule vulkan_modules[VULKAN_KERNEL_COUNT] = {VULKAN_KERNELS(MODULE_ROW)};
]] @ONLY)
  set(vulkan_module_sources ${module_folder}/modules.c ${module_outputs})
endmacro()
