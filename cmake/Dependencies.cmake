# Finds the libraries with pkg-config and names the Debian package when one is missing.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

function(memattach_require target module package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} was not found; on Debian: apt install ${package}")
  endif()
endfunction()

memattach_require(UNWIND_PTRACE libunwind-ptrace libunwind-dev)
memattach_require(UNWIND_GENERIC libunwind-generic libunwind-dev)
memattach_require(ELF libelf libelf-dev)
memattach_require(DW libdw libdw-dev)

find_library(IBERTY_LIBRARY iberty)
find_path(IBERTY_INCLUDE demangle.h PATH_SUFFIXES libiberty)
if(NOT IBERTY_LIBRARY OR NOT IBERTY_INCLUDE)
  message(FATAL_ERROR "libiberty was not found; on Debian: apt install libiberty-dev")
endif()
add_library(iberty INTERFACE IMPORTED)
target_include_directories(iberty INTERFACE ${IBERTY_INCLUDE})
target_link_libraries(iberty INTERFACE ${IBERTY_LIBRARY})

if(BUILD_TESTING)
  memattach_require(CMOCKA cmocka libcmocka-dev)
endif()
