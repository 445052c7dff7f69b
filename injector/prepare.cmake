# Everything that looks at the target without touching it.
add_library(memattach_prepare STATIC
  budget.c
  cave.c
  clocks.c
  cfi_program.c
  elf_module.c
  elf_symbols.c
  hook_names.c
  libc.c
  maps.c
  maps_at.c
  module_file.c
  modules.c
  scope.c
  slot_notes.c
  slot_place.c
  slot_resolve.c
  slot_routes.c
  slots.c
  target_file.c
  target_memory.c
  task.c
  tid_offset.c
  unwind_cache.c
  unwind_compile.c
  unwind_source.c
  privileges.c
  unwind_tables.c
  unwind_worker.c
  watchdog.c
  arch/x86_64/code_scan.c
  arch/x86_64/stack_switch.c
  arch/x86_64/unwind_rule.c)
memattach_sanitize(memattach_prepare)
target_include_directories(memattach_prepare PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(memattach_prepare PUBLIC
  PkgConfig::DW PkgConfig::ELF memattach_common Threads::Threads)

# Prints what the preparation finds in a process; for people who work on it, not installed.
add_executable(memattach-inspect inspect.c)
memattach_sanitize(memattach-inspect)
target_link_libraries(memattach-inspect PRIVATE memattach_prepare)
