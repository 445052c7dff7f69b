# memattach_add_cases(RUN STRESS_OPTIONS [LABEL OPTIONS]): one test for each case of the Python files in the folders beside RUN, named
# <first label>_<case>, or <first label>_harm_<case> if harm is among its labels; with LABEL only for those that have it, each
# with OPTIONS. `RUN --list` is the single list; a file that changes lets CMake
# look again. Cases with the label alone run while no other test does.
function(memattach_add_cases run stress_options)
  find_program(PYTHON3 NAMES python3 HINTS /usr/bin REQUIRED)
  get_filename_component(folder ${run} DIRECTORY)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folder}/*.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(work ${CMAKE_CURRENT_BINARY_DIR}/work)
  if(CMAKE_CROSSCOMPILING)
    set(work /tmp) # the shared tree is slow in an emulated machine (scripts/arm64), and has no sockets
  endif()
  file(MAKE_DIRECTORY ${work})
  execute_process(COMMAND ${PYTHON3} ${run} --list OUTPUT_VARIABLE cases COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${cases}" cases)
  string(REPLACE "\n" ";" cases "${cases}")
  foreach(line IN LISTS cases)
    string(REPLACE " " ";" fields "${line}")
    list(GET fields 0 name)
    list(GET fields 1 labels)
    list(GET fields 2 timeout)
    string(REPLACE "," ";" labels "${labels}")
    if(ARGC GREATER 2 AND NOT "${ARGV2}" IN_LIST labels)
      continue()
    endif()
    list(GET labels 0 label)
    list(GET labels 1 module) # the file
    math(EXPR timeout "${timeout} + 60") # run.py ends it before, and what it has started
    set(options ${ARGV3})
    set(prefix)
    if("harm" IN_LIST labels)
      set(prefix harm_)
    endif()
    if(label STREQUAL "stress")
      list(APPEND options ${stress_options})
    endif()
    add_test(NAME ${label}_${prefix}${name}
      COMMAND ${PYTHON3} ${run} --memattach $<TARGET_FILE:memattach> --memanalyze $<TARGET_FILE:memanalyze>
        --targets ${CMAKE_BINARY_DIR}/tests/targets --work ${work} --module ${module} ${options} ${name})
    set_tests_properties(${label}_${prefix}${name} PROPERTIES
      LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
    if("alone" IN_LIST labels)
      set_tests_properties(${label}_${prefix}${name} PROPERTIES RUN_SERIAL TRUE)
    endif()
  endforeach()
endfunction()
