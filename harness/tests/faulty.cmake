# The faulty backend: right without a defect, and its catalogue.
dflash_test(faulty LABELS backend LIBS dflash_golden ${CMAKE_DL_LIBS})
target_sources(test_faulty PRIVATE tiny_model.c)
add_dependencies(test_faulty dflash-backend-faulty dflash-backend-reference)
if(TARGET dflash-backend-blas)
  add_dependencies(test_faulty dflash-backend-blas)
endif()
