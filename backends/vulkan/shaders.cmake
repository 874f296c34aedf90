# Shaders into C: every module of shaders/modules.cmake is compiled, checked, and becomes words of vulkan_modules.

# Whether a program says of itself that it is recent enough: older ones cannot compile, or check, all of the shaders.
function(vulkan_is_recent accepted program pattern needed)
  execute_process(COMMAND ${program} --version OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "${pattern}" OR CMAKE_MATCH_1 VERSION_LESS needed)
    set(${accepted} FALSE PARENT_SCOPE)
  endif()
endfunction()
function(vulkan_accept_compiler accepted program)
  vulkan_is_recent(${accepted} ${program} "Glslang Version: [0-9]+:([0-9.]+)" 13.1)
  set(${accepted} ${${accepted}} PARENT_SCOPE)
endfunction()
function(vulkan_accept_validator accepted program)
  vulkan_is_recent(${accepted} ${program} "SPIRV-Tools v([0-9.]+)" 2023.4)
  set(${accepted} ${${accepted}} PARENT_SCOPE)
endfunction()
find_program(DFLASH_GLSLANG NAMES glslang glslangValidator HINTS ${PROJECT_SOURCE_DIR}/build/shader-tools/bin
             VALIDATOR vulkan_accept_compiler)
find_program(DFLASH_SPIRV_VAL NAMES spirv-val HINTS ${PROJECT_SOURCE_DIR}/build/shader-tools/bin
             VALIDATOR vulkan_accept_validator)

set(shader_folder ${CMAKE_CURRENT_SOURCE_DIR}/shaders)
set(module_folder ${CMAKE_CURRENT_BINARY_DIR}/modules)

# vulkan_shader(NAME SOURCE FOLDER [DEFINES ...]): FOLDER/NAME.h, the checked words of a shader that was compiled with these
# names defined.
function(vulkan_shader name source folder)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE defines)
  set(spirv ${folder}/${name}.spv)
  set(embed ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed.cmake)
  add_custom_command(
    OUTPUT ${spirv}
    COMMAND ${DFLASH_GLSLANG} --target-env vulkan1.2 -V --quiet -DVULKAN_GLSL ${defines} -I${shader_folder}
            --depfile ${spirv}.d -o ${spirv} ${source}
    COMMAND ${DFLASH_SPIRV_VAL} --target-env vulkan1.2 ${spirv}
    DEPENDS ${source} DEPFILE ${spirv}.d COMMENT "Shader module ${name}" VERBATIM)
  add_custom_command(
    OUTPUT ${folder}/${name}.h
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DSPIRV=${spirv} -DOUTPUT=${folder}/${name}.h -P ${embed}
    DEPENDS ${spirv} ${embed} COMMENT "Words of ${name}" VERBATIM)
endfunction()

# vulkan_module(matrix_q4 matrix WEIGHTS_Q4): module matrix_q4 is matrix.comp with these names defined.
macro(vulkan_module name shader)
  vulkan_shader(${name} ${shader_folder}/${shader}.comp ${module_folder} ${ARGN})
  string(APPEND includes "#include \"${name}.h\"\n")
  list(APPEND module_outputs ${module_folder}/${name}.h)
endmacro()

# Sets vulkan_module_sources: modules.c and what it includes.
macro(vulkan_modules)
  set(includes)
  set(module_outputs)
  include(shaders/modules.cmake)
  file(CONFIGURE OUTPUT ${module_folder}/modules.c CONTENT [[
#include "kernel.h"

@includes@
#define MODULE_ROW(id, module, ...) {#module, MODULE_##module},
const VulkanModule vulkan_modules[VULKAN_KERNEL_COUNT] = {VULKAN_KERNELS(MODULE_ROW)};
]] @ONLY)
  set(vulkan_module_sources ${module_folder}/modules.c ${module_outputs})
endmacro()
