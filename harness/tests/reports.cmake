# The Python of reports/, in the virtual environment that ci/python makes; skipped where its packages cannot be had.
add_test(NAME reports_calibration COMMAND ${PROJECT_SOURCE_DIR}/ci/python -m unittest discover -s
                                          ${PROJECT_SOURCE_DIR}/reports/tests)
set_tests_properties(reports_calibration PROPERTIES LABELS reports TIMEOUT 300 SKIP_RETURN_CODE 3)
