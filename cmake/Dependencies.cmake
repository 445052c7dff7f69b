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
memattach_require(LZMA liblzma liblzma-dev)

find_library(IBERTY_LIBRARY iberty)
find_path(IBERTY_INCLUDE demangle.h PATH_SUFFIXES libiberty)
if(NOT IBERTY_LIBRARY OR NOT IBERTY_INCLUDE)
  message(FATAL_ERROR "libiberty was not found; on Debian: apt install libiberty-dev")
endif()
add_library(iberty INTERFACE IMPORTED)
target_include_directories(iberty INTERFACE ${IBERTY_INCLUDE})
target_link_libraries(iberty INTERFACE ${IBERTY_LIBRARY})

# Debian's package has no file for pkg-config.
find_library(ZYDIS_LIBRARY Zydis)
find_path(ZYDIS_INCLUDE Zydis/Zydis.h)
if(NOT ZYDIS_LIBRARY OR NOT ZYDIS_INCLUDE)
  message(FATAL_ERROR "Zydis was not found; on Debian: apt install libzydis-dev")
endif()
add_library(zydis INTERFACE IMPORTED)
target_include_directories(zydis INTERFACE ${ZYDIS_INCLUDE})
target_link_libraries(zydis INTERFACE ${ZYDIS_LIBRARY})

if(BUILD_TESTING)
  memattach_require(CMOCKA cmocka libcmocka-dev)
endif()
