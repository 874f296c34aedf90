# The Python of reports/, in the virtual environment that ci/python makes; skipped where its packages cannot be had.
foreach(part calibration trends)
  add_test(NAME reports_${part} COMMAND ${PROJECT_SOURCE_DIR}/ci/python -m unittest discover -s
                                        ${PROJECT_SOURCE_DIR}/reports/tests -p test_${part}*.py)
  set_tests_properties(reports_${part} PROPERTIES LABELS reports TIMEOUT 300 SKIP_RETURN_CODE 3)
endforeach()
