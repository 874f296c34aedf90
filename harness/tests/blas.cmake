# The blas backend, by what its entry gives: stages against f64, context against a plain model, calls and errors.
if(TARGET dflash-backend-blas)
  foreach(name blas blas_stages blas_context blas_select)
    dflash_test(${name} LABELS backend TIMEOUT 300 LIBS dflash_model ${CMAKE_DL_LIBS})
    target_sources(test_${name} PRIVATE blas_fixture.c blas_naive.c)
    add_dependencies(test_${name} dflash-backend-blas)
  endforeach()
  # The address sanitiser's allocator ends the program when memory is out, unless told to fail like any other.
  set_tests_properties(blas PROPERTIES ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1")
endif()
