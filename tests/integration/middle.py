# SPDX-License-Identifier: MIT
"""The cases of the middle set (label middle): one or two of each kind, and one for each way to load, hook, launch and end."""

MIDDLE = {
    "attach and detach": ("redis_under_load", "python3_default", "python_objects_are_all_there", "idle_sleeper_is_as_before", "alloc_loop_now", "dlopen_storm",
                          "detach_from_elsewhere", "ctrl_c"),
    "ways to load": ("own_loader_exact", "loader_of_the_target_beside_threads"),
    "ways to hook": ("entry_hooks_keep_registers", "entry_held_between_the_jumps_of_free", "vfork_child_at_detach", "static_programs_exact",
                     "linked_allocators_exact"),
    "registers of a borrowed thread": ("flags_and_x87_survive", "restartable_sequences_are_aborted"),
    "launches": ("launched_from_its_main_on", "launched_ends_as_it_ends", "launched_inherits_what_it_would", "children_of_a_command"),
    "ends": ("duration", "recording_stops_when_the_lease_runs_out", "exec_before_detach"),
    "sessions by themselves": ("when_memory_grows", "every_time_after_a_failure"),
    "reports": ("known_heap_exact", "known_heap_64k", "known_heap_text", "read_while_running"),
    "kills": ("memattach_killed_then_detach", "killed_while_signals_wait", "second_session_takes_over", "target_killed"),
    "refusals": ("refuse_static_and_zombie", "refuse_gone_and_own", "refuse_traced_by_strace", "refuse_another_user",
                 "doctor_touches_nothing", "doctor_tells_all_of_it"),
    "two at once": ("two_at_once_storm", "second_one_is_refused_by_the_first", "two_detaches_at_once"),
    "names": ("container_is_gone_names_stay", "names_are_looked_for_without_rights", "names_are_given_up_by_a_signal"),
    "disk of the dump": ("full_disk_tmpfs", "dump_is_truncated", "dump_gives_way_to_another_file"),
    "a payload without its name or loader": ("chroot_without_proc", "mapped_payload_of_a_dead_memattach"),
    "life of the target": ("stopped_state_is_kept", "signals_come_once_and_in_order", "exit_during_session", "exec_during_session",
                           "child_that_shares_the_memory", "scribbling_target"),
}
# On other machines than x86-64 (label elsewhere).
ELSEWHERE = ("known_heap_exact", "known_heap_64k", "idle_sleeper_is_as_before", "attached_target_has_no_tracer_and_no_descriptors",
             "stopped_target_stays_stopped", "alloc_loop_now", "alloc_loop_lazy", "alloc_loop_signed", "alloc_loop_exact",
             "thread_churn", "fork_storm", "signals", "dlopen_storm", "cxx_exceptions", "entry_cycles_thread_churn",
             "entry_cycles_fork_storm", "entry_cycles_cxx_exceptions", "cycles_alloc_loop", "cycles_sleeper",
             "redis_under_load", "redis_idle", "nginx_under_load", "python3_malloc", "python_lines_have_made_their_blocks",
             "python_objects_are_all_there", "doctor_shows_python_stacks", "memattach_killed_then_detach", "ctrl_c", "target_killed",
             "killed_storm", "killed_poll", "killed_epoll", "forged_frames_of_a_stub", "breakpoint_at_an_entry", "killed_tight", "vectors",
             "two_at_once_storm", "two_detaches_at_once", "detach_from_elsewhere",
             "launched_from_its_main_on", "launched_ends_as_it_ends", "static_programs_exact",
             "linked_allocators_exact", "entry_hooks_exact", "known_heap_exact_musl",
             "java_amounts_are_known_to_their_lines",
             "census_accounts_for_all", "census_of_jemalloc", "census_of_tcmalloc", "census_of_mimalloc", "census_by_type", "census_by_holder",
             "unreachable_after_the_first_thread",
             "second_session_is_refused", "recording_stops_when_the_lease_runs_out")
# Runs again with a sanitized memattach (label middle_sanitized); it needs the program alloc_loop.
SANITIZED = "memattach_killed_then_detach"
