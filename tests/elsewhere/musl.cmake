# Victims on musl: its files are those of the machine, for which no musl-gcc runs here.
find_path(MUSL_LIBRARIES Scrt1.o PATHS /usr/lib/aarch64-linux-musl NO_DEFAULT_PATH)
find_path(MUSL_HEADERS stdio.h PATHS /usr/include/aarch64-linux-musl NO_DEFAULT_PATH)
if(MUSL_LIBRARIES AND MUSL_HEADERS)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=include OUTPUT_VARIABLE compiler_headers OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(musl_c ${CMAKE_C_COMPILER} -std=gnu11 -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -fno-builtin -mno-outline-atomics -nostdinc
    -isystem ${MUSL_HEADERS} -isystem ${compiler_headers} -I${targets})
  foreach(name heaps/known_heap calls/alloc_loop lives/fork_storm lives/thread_churn)
    get_filename_component(program ${name} NAME)
    set(built ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program}_musl)
    set(source ${targets}/${name}.c)
    add_custom_command(OUTPUT ${built} DEPENDS ${source} ${targets}/victim.c ${targets}/victim.h VERBATIM
      COMMAND ${musl_c} -fPIE -pie -nostdlib -Wl,-dynamic-linker,/lib/ld-musl-aarch64.so.1 -o ${built}
        ${MUSL_LIBRARIES}/Scrt1.o ${MUSL_LIBRARIES}/crti.o ${source} ${targets}/victim.c -L${MUSL_LIBRARIES} -lc -lgcc ${MUSL_LIBRARIES}/crtn.o)
    add_custom_target(${program}_musl ALL DEPENDS ${built})
  endforeach()
endif()
