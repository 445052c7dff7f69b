# Everything that looks at the target without touching it.
add_library(memattach_prepare INTERFACE)
target_include_directories(memattach_prepare INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(memattach_prepare INTERFACE
  PkgConfig::DW PkgConfig::ELF PkgConfig::ZLIB memattach_common Threads::Threads)
