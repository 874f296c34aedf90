# The Python of reports/, in the virtual environment that ci/python makes; skipped where its packages cannot be had.
foreach(part calibration trends peers)
  add_test(NAME reports_${part} COMMAND ${PROJECT_SOURCE_DIR}/ci/python -m unittest discover -s
                                        ${PROJECT_SOURCE_DIR}/reports/tests -p test_${part}*.py)
  set_tests_properties(reports_${part} PROPERTIES LABELS reports TIMEOUT 300 SKIP_RETURN_CODE 3)
endforeach()

# The report: what it reads, refuses and writes; then its pages in Chromium, whose screenshots stay in the build folder.
add_test(NAME reports_report COMMAND ${PROJECT_SOURCE_DIR}/ci/python -B -m unittest discover -s
                                     ${PROJECT_SOURCE_DIR}/reports/tests -p test_report.py)
add_test(NAME reports_browser COMMAND ${PROJECT_SOURCE_DIR}/ci/python -B
                                      ${PROJECT_SOURCE_DIR}/reports/tests/report_browser.py)
set_tests_properties(reports_report reports_browser PROPERTIES LABELS reports TIMEOUT 600 SKIP_RETURN_CODE 3
  ENVIRONMENT "DFLASH_HARNESS=$<TARGET_FILE:dflash-harness>;DFLASH_SCREENSHOTS=${PROJECT_BINARY_DIR}/report-screenshots")
