// Calls libc's memcpy and memset under google-benchmark, at places like those of a row with walk=stream and one buffer:
// the same bytes every time, both sides in L1. `wherry bench --self-check` compiles and runs it, and compares what it
// says with what wherry-run says. Arguments: OP:SIZE:SRC_OFF:DELTA ..., then google-benchmark's own.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kArena = std::size_t{1} << 20;
// Short, since the caller alternates between both tools: a phase of a slower clock then spoils one turn, not all.
constexpr double kSeconds = 0.004;
constexpr int kRepetitions = 5;

using Copy = void *(*)(void *, const void *, std::size_t);
using Set = void *(*)(void *, int, std::size_t);

char *Arena() {
  void *memory = mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::memset(memory, 1, kArena);
  return static_cast<char *>(memory);
}

// By name at run time, as wherry-run has it: the compiler knows nothing of the function and puts nothing in its place.
template <typename Function>
Function Find(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

bool Add(const std::string &cell, char *from, char *to) {
  char op[8] = "";
  std::size_t size = 0, src_off = 0, delta = 0;
  if (std::sscanf(cell.c_str(), "%7[a-z]:%zu:%zu:%zu", op, &size, &src_off, &delta) != 4) return false;
  if (src_off >= kPage || delta >= kPage || size == 0 || size > kArena - 2 * kPage) return false;
  const char *src = from + src_off;
  char *dst = to + (src_off + delta) % kPage;
  benchmark::internal::Benchmark *added = nullptr;
  if (std::strcmp(op, "copy") == 0) {
    const Copy copy = Find<Copy>("memcpy");
    added = benchmark::RegisterBenchmark(cell.c_str(), [=](benchmark::State &state) {
      for (auto _ : state) copy(dst, src, size);
    });
  } else if (std::strcmp(op, "set") == 0) {
    const Set set = Find<Set>("memset");
    added = benchmark::RegisterBenchmark(cell.c_str(), [=](benchmark::State &state) {
      for (auto _ : state) set(dst, 0xa5, size);
    });
  }
  if (!added) return false;
  added->MinTime(kSeconds)->Repetitions(kRepetitions);
  return true;
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  char *from = Arena(), *to = Arena();
  for (int i = 1; i < argc; i++) {
    if (!from || !to || !Add(argv[i], from, to)) {
      std::fprintf(stderr, "cannot take %s; give OP:SIZE:SRC_OFF:DELTA, as in copy:1024:64:2048\n", argv[i]);
      return 2;
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
