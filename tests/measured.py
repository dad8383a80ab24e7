"""What tests of the measuring half of wherry-run share: a way to ask it, and peers that tell what they were given."""

import json
import subprocess
import textwrap

import pytest
from conftest import need_tool

LIMIT_S = 300
QUICK = "rounds=3 batch_us=20"


@pytest.fixture
def runner(wherry_run):
    return wherry_run


def measure(runner, rows, *options, status=0):
    """Runs `wherry-run measure` on rows; returns its events and what it said to standard error."""
    done = subprocess.run(
        [runner, "measure", "--seed", "1", *options],
        input="".join(row + "\n" for row in rows),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == status, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def of(events, kind):
    return [event for event in events if event["event"] == kind]


PEERS = """
#define _GNU_SOURCE
#include <stddef.h>
#include <unistd.h>
void *good_memcpy(void *d, const void *s, size_t n)
{ char *p = d; const char *q = s; while (n--) { *p++ = *q++; __asm__(""); } return d; }
void *some_memcpy_v2(void *d, const void *s, size_t n) { return good_memcpy(d, s, n); }
void *wrong_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n); if (n > 100) ((char *)d)[n - 1] ^= 1; return d; }
void *beyond_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n); ((char *)d)[n] ^= 1; return d; }
void *downward_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n); __asm__ volatile("std"); return d; }
void *checking_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n);
  __asm__ volatile("sub $128, %%rsp; pushfq; orl $0x40000, (%%rsp); popfq; add $128, %%rsp" ::: "cc", "memory");
  return d; }
void *crash_memcpy(void *d, const void *s, size_t n)
{ (void)d; (void)s; (void)n; __builtin_trap(); }
void *hang_memcpy(void *d, const void *s, size_t n)
{ (void)d; (void)s; (void)n; for (;;) pause(); }
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* What each call found: nothing of what it writes, only that, or some of it. */
static unsigned long found[3];
void *witness_memset(void *d, int c, size_t n)
{ unsigned char *p = d; size_t same = 0;
  for (size_t i = 0; i < n; i++) same += p[i] == (unsigned char)c;
  __atomic_fetch_add(&found[same == 0 ? 0 : same == n ? 1 : 2], 1, __ATOMIC_RELAXED);
  for (size_t i = 0; i < n; i++) { p[i] = (unsigned char)c; __asm__(""); } return d; }
__attribute__((destructor)) static void tell(void)
{ const char *path = getenv("WITNESS"); FILE *file = path ? fopen(path, "w") : NULL;
  if (file) { fprintf(file, "%lu %lu %lu", found[0], found[1], found[2]); fclose(file); } }
#include <sys/mman.h>
/* The first and the last page of what a call writes: both missing, one of them, neither. */
static unsigned long missing[3];
static int is_there(void *at)
{ unsigned char there = 0;
  mincore((void *)((unsigned long)at & ~4095ul), 1, &there);
  return there & 1; }
static void look(char *d, size_t n)
{ __atomic_fetch_add(&missing[is_there(d) + is_there(d + n - 1)], 1, __ATOMIC_RELAXED); }
void *new_memcpy(void *d, const void *s, size_t n) { look(d, n); return good_memcpy(d, s, n); }
void *new_memset(void *d, int c, size_t n)
{ char *p = d; look(d, n); while (n--) { *p++ = (char)c; __asm__(""); } return d; }
__attribute__((destructor)) static void tell_missing(void)
{ const char *path = getenv("MISSING"); FILE *file = path ? fopen(path, "w") : NULL;
  if (file) { fprintf(file, "%lu %lu %lu", missing[0], missing[1], missing[2]); fclose(file); } }
#include <stdint.h>
/* Where calls lie: by alignment of each side; both sides alike; overlapping, and with the destination below. */
static unsigned long src_at[7], dst_at[7], same, met, down;
static int exponent(uintptr_t at)
{ int e = 0; while (e < 6 && !(at >> e & 1)) e++; return e; }
static void note(const char *d, const char *s, size_t n)
{ int to = exponent((uintptr_t)d), from = exponent((uintptr_t)s);
  dst_at[to]++; src_at[from]++; same += to == from;
  if (n && d < s + n && s < d + n) met++, down += d < s; }
void *placed_memcpy(void *d, const void *s, size_t n)
{ note(d, s, n); return good_memcpy(d, s, n); }
void *placed_memmove(void *d, const void *s, size_t n)
{ char *p = d; const char *q = s; note(p, q, n);
  if (p <= q) return good_memcpy(d, s, n);
  while (n--) { p[n] = q[n]; __asm__(""); } return d; }
void *placed_memset(void *d, int c, size_t n)
{ char *p = d; note(p, p, 0); while (n--) { *p++ = (char)c; __asm__(""); } return d; }
static void row_of(FILE *file, const char *name, const unsigned long *at)
{ fprintf(file, "\\"%s\\": [%lu", name, at[0]);
  for (int i = 1; i < 7; i++) fprintf(file, ", %lu", at[i]);
  fprintf(file, "], "); }
__attribute__((destructor)) static void tell_places(void)
{ const char *path = getenv("PLACES"); FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  fprintf(file, "{"); row_of(file, "src", src_at); row_of(file, "dst", dst_at);
  fprintf(file, "\\"same\\": %lu, \\"met\\": %lu, \\"down\\": %lu}", same, met, down); fclose(file); }
static unsigned long walked[2][1 << 16], walked_count;
void *walked_memcpy(void *d, const void *s, size_t n)
{ if (walked_count < sizeof walked[0] / sizeof *walked[0]) {
    walked[0][walked_count] = (unsigned long)s; walked[1][walked_count++] = (unsigned long)d; }
  return good_memcpy(d, s, n); }
__attribute__((destructor)) static void tell_walk(void)
{ const char *path = getenv("WALK"); FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  for (unsigned long i = 0; i < walked_count; i++) fprintf(file, "%lu %lu\\n", walked[0][i], walked[1][i]);
  fclose(file); }
/* Whose turn it is, call by call. */
static char turns[1 << 20];
static unsigned long turn_count;
static void *in_turn(char who, void *d, const void *s, size_t n)
{ if (turn_count < sizeof turns) turns[turn_count++] = who;
  return good_memcpy(d, s, n); }
void *a_memcpy(void *d, const void *s, size_t n) { return in_turn('a', d, s, n); }
void *b_memcpy(void *d, const void *s, size_t n) { return in_turn('b', d, s, n); }
void *c_memcpy(void *d, const void *s, size_t n) { return in_turn('c', d, s, n); }
__attribute__((destructor)) static void tell_turns(void)
{ const char *path = getenv("TURNS"); FILE *file = path ? fopen(path, "w") : NULL;
  if (file) { fwrite(turns, 1, turn_count, file); fclose(file); } }
/* Of MOVES "EACH CPU CPU": after EACH calls it goes to the other one of these. */
#include <sched.h>
void *moving_memcpy(void *d, const void *s, size_t n)
{ static unsigned long each, made; static int two[2];
  if (!each) sscanf(getenv("MOVES"), "%lu %d %d", &each, &two[0], &two[1]);
  if (++made % each == 0) {
    cpu_set_t one; CPU_ZERO(&one); CPU_SET(two[made / each % 2], &one);
    sched_setaffinity(0, sizeof one, &one); }
  return good_memcpy(d, s, n); }
static unsigned short listed[1 << 20];
static unsigned long listed_count;
void *listed_memcpy(void *d, const void *s, size_t n)
{ if (listed_count < sizeof listed / sizeof *listed) listed[listed_count++] = (unsigned short)n;
  return good_memcpy(d, s, n); }
__attribute__((destructor)) static void tell_sizes(void)
{ const char *path = getenv("SIZES"); FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  for (unsigned long i = 0; i < listed_count; i++) fprintf(file, "%u ", listed[i]);
  fclose(file); }
/* Two hundred lines of code that do nothing: they have room in any instruction cache, a neighbour beside them. */
void *large_memcpy(void *d, const void *s, size_t n)
{ __asm__ volatile(".rept 200\\n\\tjmp 1f\\n\\t.p2align 6\\n1:\\n\\t.endr" ::: "memory");
  return good_memcpy(d, s, n); }
static unsigned long calls;
/* Leaves something in the upper half of a vector register; and looks whether it finds something there. */
#include <cpuid.h>
static int tells_upper(void)
{ static int known = -1; unsigned a = 0, b, c, d;
  if (known < 0) known = __builtin_cpu_supports("avx") && __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a >> 2 & 1);
  return known; }
__attribute__((target("avx"))) void *dirty_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n);
  if (tells_upper()) __asm__ volatile("vcmptrueps %%ymm15, %%ymm15, %%ymm15" ::: "xmm15");
  return d; }
static unsigned long looked, found_dirty;
void *looking_memcpy(void *d, const void *s, size_t n)
{ unsigned low = 0, high; if (tells_upper()) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  looked++; found_dirty += low >> 2 & 1;
  return good_memcpy(d, s, n); }
__attribute__((destructor)) static void tell_looked(void)
{ const char *path = getenv("LOOKED"); FILE *file = path ? fopen(path, "w") : NULL;
  if (file) { fprintf(file, "%lu %lu", looked, found_dirty); fclose(file); } }
void *chatty_memcpy(void *d, const void *s, size_t n)
{ static int words; if (words < 100) {
    words++; printf("{\\"event\\":\\"end\\"}\\nhello"); if (write(1, "hello", 5) != 5) abort(); }
  return good_memcpy(d, s, n); }
void *leaving_memcpy(void *d, const void *s, size_t n)
{ static unsigned long count; if (++count == 5000) _exit(0); return good_memcpy(d, s, n); }
void *slow_memcpy(void *d, const void *s, size_t n)
{
    usleep(1000);
    return good_memcpy(d, s, n);
}

void *tired_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n); if (++calls > 3000) ((char *)d)[n / 2] ^= 1; return d; }
"""


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    compiler = need_tool("cc", "gcc")
    folder = tmp_path_factory.mktemp("peers")
    (folder / "peers.c").write_text(textwrap.dedent(PEERS))
    subprocess.run(
        [
            compiler,
            "-O1",
            "-fno-builtin",
            "-shared",
            "-fPIC",
            "-o",
            folder / "peers.so",
            folder / "peers.c",
        ],
        check=True,
    )
    return folder / "peers.so"
