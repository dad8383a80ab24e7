/* The thresholds that glibc's routines read. glibc fills them when it starts; the routines taken from its archive come
 * without that code, so whoever builds this gives what glibc 2.43 chooses for the CPU at hand:
 *   NON_TEMPORAL  three quarters of the last-level cache
 *   REP_MOVSB     2048 for SSE2, 8192 and 16384 for wider vectors, 2112 with FSRM; on AMD as NON_TEMPORAL: never
 *   REP_STOSB     2048; on AMD never
 */
#define GIVEN(type, name, value) __attribute__((visibility("hidden"))) type name = value

GIVEN(long, __x86_shared_non_temporal_threshold, NON_TEMPORAL);
GIVEN(long, __x86_memset_non_temporal_threshold, NON_TEMPORAL);
GIVEN(long, __x86_rep_movsb_threshold, REP_MOVSB);
GIVEN(long, __x86_rep_movsb_stop_threshold, NON_TEMPORAL);
GIVEN(long, __x86_rep_stosb_threshold, REP_STOSB);
GIVEN(int, __x86_string_control, 0);
