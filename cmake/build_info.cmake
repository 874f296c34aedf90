# dflash_build_info.h: version, git revision and state, compiler. Made anew at each build, rewritten only when it
# changes. Included, this file declares the target dflash_build_info; run as a script, it writes the header.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(DFLASH_BUILD_INFO_FOLDER ${PROJECT_BINARY_DIR}/build_info)
  add_custom_target(dflash_build_info
    COMMAND ${CMAKE_COMMAND} -DOUT=${DFLASH_BUILD_INFO_FOLDER}/dflash_build_info.h -DSOURCE=${PROJECT_SOURCE_DIR}
      "-DVERSION=${PROJECT_VERSION}" "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
      "-DFLAGS=${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}" "-DTYPE=${CMAKE_BUILD_TYPE}"
      -P ${CMAKE_CURRENT_LIST_FILE}
    BYPRODUCTS ${DFLASH_BUILD_INFO_FOLDER}/dflash_build_info.h
    COMMENT "" VERBATIM)
  return()
endif()

# The source tree may be an archive without git, or git may be missing.
set(REVISION unknown)
set(DIRTY unknown)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE revision ERROR_QUIET
    RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0)
    set(REVISION ${revision})
    execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes
      ERROR_QUIET RESULT_VARIABLE failed)
    if(failed EQUAL 0 AND changes STREQUAL "")
      set(DIRTY no)
    elseif(failed EQUAL 0)
      set(DIRTY yes)
    endif()
  endif()
endif()

set(text "/* Written by cmake/build_info.cmake. */\n")
foreach(name VERSION REVISION DIRTY COMPILER FLAGS TYPE)
  string(STRIP "${${name}}" value)
  string(REPLACE "\\" "\\\\" value "${value}")
  string(REPLACE "\"" "\\\"" value "${value}")
  string(APPEND text "#define DFLASH_BUILD_${name} \"${value}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
