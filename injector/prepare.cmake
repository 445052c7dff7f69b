# The order is that of tests/check (FOLDERS).
set(injector_folders ${CMAKE_CURRENT_SOURCE_DIR})
foreach(folder process census elf python got unwind entry recording threads remote session launch)
  list(APPEND injector_folders ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
endforeach()

# Everything that looks at the target without touching it.
add_library(memattach_prepare STATIC
  process/budget.c
  process/clocks.c
  process/maps.c
  process/maps_at.c
  process/say.c
  process/schedule.c
  process/stop_signals.c
  process/privileges.c
  process/proc_status.c
  process/target_file.c
  process/target_memory.c
  process/task.c
  process/trigger.c
  process/watchdog.c
  elf/elf_module.c
  elf/elf_symbols.c
  elf/libc.c
  elf/loader_locks.c
  elf/module_file.c
  elf/modules.c
  elf/modules_find.c
  elf/scope.c
  elf/tid_offset.c
  python/python_find.c
  python/python_object.c
  python/python_proof.c
  python/python_releases.c
  python/python_attached.c
  python/python_specific.c
  python/python_containers.c
  python/python_paths.c
  python/python_stack.c
  python/python_version.c
  got/hook_names.c
  got/allocator_notes.c
  got/entry_place.c
  got/entry_resolve.c
  got/entry_routes.c
  got/got_plan.c
  unwind/allocator_code.c
  unwind/cache_dir.c
  unwind/cfi_program.c
  unwind/stack_base.c
  unwind/unwind_cache.c
  unwind/unwind_compile.c
  unwind/unwind_source.c
  unwind/table_writer.c
  unwind/unwind_worker.c
  entry/allocator_callers.c
  entry/allocator_entries.c
  entry/allocator_find.c
  entry/allocator_identify.c
  entry/allocator_layers.c
  entry/allocator_names.c
  entry/allocator_quiet.c
  entry/allocator_registers.c
  entry/debug_data.c
  entry/entry_hooks.c
  entry/evaluator_code.c
  entry/function_body.c
  entry/function_table.c
  entry/module_names.c
  entry/python_allocators.c
  entry/function_alias.c
  entry/stored_pointers.c
  remote/cave.c
  arch/x86_64/code_references.c
  arch/x86_64/code_scan.c
  arch/x86_64/detour_code.c
  arch/x86_64/entry_code.c
  arch/x86_64/instruction.c
  arch/x86_64/stack_switch.c
  arch/x86_64/thread_variable.c
  arch/x86_64/word_references.c
  arch/x86_64/rule_encode.c)
memattach_sanitize(memattach_prepare)
target_include_directories(memattach_prepare PUBLIC ${injector_folders})
target_link_libraries(memattach_prepare PUBLIC
  PkgConfig::DW PkgConfig::ELF PkgConfig::LZMA PkgConfig::NETTLE zydis memattach_common Threads::Threads)
