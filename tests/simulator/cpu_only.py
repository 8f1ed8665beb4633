"""Tests of the runtime that run on the CPU only, and why. A name is that of a file or of a test."""

from __future__ import annotations

_GRAPH = "TensorRT for RTX does not build this graph; the build says so, see tests/engines"
_TYPE = "no such element type, sequence or unknown rank in TensorRT; the build says so"
_DEFAULT = "TensorRT makes a constant of an input that has a value in the model; the build says so"
_CPU_TEXT = "it is about the CPU engine: its name, its files, its library or its messages"
_PROCESS = "a process of its own, where nothing installs the simulator"
_OPEN = "it is about ranges without an upper end, which this target refuses"
_STOP = "it stops a run; what runs on a device cannot be stopped, see tests/runtime/test_device.py"
_NULL = "it is about the null backend"

CPU_ONLY = {
    "test_verdicts.py": "it judges made-up machines and opens nothing",
    "test_reloads.py": "it counts objects of ONNX Runtime's engine; the simulator keeps objects of its own",
    # test_trace.py
    "test_nodes_lie_inside_the_execution_of_their_call_on_its_thread": _CPU_TEXT,
    "test_a_trace_of_several_nodes_is_sound": _CPU_TEXT,
    "test_a_call_that_waits_for_a_slot_when_the_trace_ends_runs_all_the_same": _CPU_TEXT,
    "test_the_file_is_in_chromes_format": _CPU_TEXT,
    "test_a_session_of_one_profile_is_traced_in_that_profile": _CPU_TEXT,
    # test_borrow.py, test_run.py
    "test_a_failing_engine_inside_borrow_ends_the_lease": _CPU_TEXT,
    "test_views_on_a_device_are_refused_where_the_engine_has_none": _CPU_TEXT,
    "test_a_failed_call_gives_its_slot_back_and_the_next_one_is_right": _CPU_TEXT,
    # test_cancel.py
    "test_a_running_call_stops_and_the_next_one_is_right": _STOP,
    "test_a_call_with_late_outputs_stops_as_well": _STOP,
    "test_a_cancelled_token_stops_a_call_before_it_starts": _STOP,
    "test_a_token_that_is_cancelled_after_its_call_changes_nothing": _STOP,
    "test_a_cancel_between_reading_the_call_and_running_it_is_not_lost": _STOP,
    "test_a_token_can_serve_one_call_after_the_other_but_not_two_at_once": _STOP,
    # test_close.py, test_ending.py
    "test_a_child_that_drops_the_session_and_ends_like_a_program_keeps_its_exit_code": _PROCESS,
    "test_daemon_threads_in_calls_leave_the_exit_code_as_it_is": _PROCESS,
    "test_no_call_begins_once_slots_are_withheld": _PROCESS,
    # test_inputs_left_out.py
    "test_positions_count_along_any_axis_and_to_any_length": _OPEN,
    "test_an_input_with_a_value_in_the_model_takes_it_unless_another_is_given": _DEFAULT,
    "test_a_large_default_survives_optimisation_and_stays_overridable": _DEFAULT,
    "test_optional_inputs_of_rank_zero_do_not_collide_with_leaving_everything_out": _DEFAULT,
    # test_kinds.py
    "test_an_output_that_depends_on_the_data_has_its_real_size_in_every_call": _GRAPH,
    "test_a_late_result_is_owned_by_the_caller": _GRAPH,
    "test_an_input_of_unknown_rank_takes_any_shape": _TYPE,
    "test_strings_go_in_and_come_out": _TYPE,
    "test_strings_beside_numbers_keep_their_own_values_between_calls": _TYPE,
    "test_no_reference_to_an_unplaced_input_outlives_its_call": _TYPE,
    "test_a_sequence_goes_in_and_comes_out": _TYPE,
    "test_elements_that_numpy_lacks_go_in_and_come_out": _TYPE,
    "test_elements_that_numpy_lacks_may_have_a_size_that_the_data_decides": _GRAPH,
    "test_strings_beside_elements_that_numpy_lacks_are_refused_with_advice": _TYPE,
    # test_load.py
    "test_running_a_bundle_needs_the_library_of_its_target_and_not_onnx": _PROCESS,
    "test_an_engine_is_loaded_by_name_or_the_first_that_fits": _CPU_TEXT,
    "test_a_host_that_lacks_something_is_refused_with_the_reason": _CPU_TEXT,
    "test_a_patch_release_of_the_library_still_fits": _CPU_TEXT,
    "test_an_engine_that_was_never_verified_is_refused_and_the_way_out_is_named": _CPU_TEXT,
    "test_a_backend_that_is_not_installed_is_named_with_its_command": _CPU_TEXT,
    "test_a_backend_of_a_newer_version_is_a_verdict_and_no_crash": _CPU_TEXT,
    "test_auto_passes_over_what_does_not_fit_and_never_takes_the_null_engine": _CPU_TEXT,
    "test_an_altered_blob_is_refused_before_the_library_sees_it": _CPU_TEXT,
    "test_a_session_that_cannot_have_its_memory_closes_its_engine": _CPU_TEXT,
    "test_explain_says_which_engine_and_how_sizes_run": _CPU_TEXT,
    "test_skipping_digests_still_checks_sizes": _CPU_TEXT,
    "test_a_host_is_compared_by_what_the_engine_needs_and_nothing_else": _CPU_TEXT,
    "test_the_null_backend_loads_and_gives_zeros_of_the_right_shape": _NULL,
    # test_memory.py, test_request.py, test_routes.py
    "test_slots_with_open_maxima_grow_and_are_counted": _OPEN,
    "test_a_growing_slot_that_hits_the_budget_fails_and_keeps_serving_what_fits": _OPEN,
    "test_a_session_says_what_it_is": _CPU_TEXT,
    "test_a_full_table_of_a_session_forgets_routes_and_results_stay_right": _OPEN,
}
