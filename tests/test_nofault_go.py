"""Fault-tolerant copies in a program of a runtime that lives by SIGSEGV and small stacks: Go's, which makes a panic of
a nil pointer and stops its threads by signals whenever it likes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run

PROGRAM = """
package main

/*
#include <wherry.h>
static int path(void)
{
    struct wherry_nofault_status status;
    wherry_nofault_status(&status);
    return status.path;
}
*/
import "C"

import (
    "os"
    "runtime"
    "syscall"
    "unsafe"
)

const page = 4096

func fail(what string, n int) {
    println(what, n)
    os.Exit(1)
}

// Two pages: the second gives SIGSEGV, or SIGBUS behind the end of a file.
func pages(bus bool) []byte {
    fd, flags := -1, syscall.MAP_ANON|syscall.MAP_PRIVATE
    if bus {
        file, err := os.CreateTemp("", "pages")
        if err != nil || file.Truncate(page) != nil {
            fail("no file", 0)
        }
        defer file.Close()
        defer os.Remove(file.Name())
        fd, flags = int(file.Fd()), syscall.MAP_SHARED
    }
    own, err := syscall.Mmap(fd, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, flags)
    if err != nil {
        fail("no pages", 0)
    }
    if !bus {
        syscall.Mprotect(own[page:], syscall.PROT_NONE)
    }
    for i := 0; i < page; i++ {
        own[i] = byte(i*7 + 1)
    }
    return own
}

func check(what string, n int, left C.size_t, fault C.struct_wherry_fault, own []byte, bus bool) {
    want := C.int(syscall.SIGSEGV)
    if bus {
        want = C.int(syscall.SIGBUS)
    }
    if int(left) != page-n || fault.addr != unsafe.Pointer(&own[page]) || fault.signo != want {
        fail(what, n)
    }
}

func faults(bus bool) {
    own := pages(bus)
    defer syscall.Munmap(own)
    other := make([]byte, page)
    for n := 0; n <= 200; n++ {
        var fault C.struct_wherry_fault
        at, room := unsafe.Pointer(&own[page-n]), unsafe.Pointer(&other[0])
        check("read", n, C.wherry_copy_nofault(room, at, page, &fault), fault, own, bus)
        for i := 0; i < n; i++ {
            if other[i] != own[page-n+i] {
                fail("copied", n)
            }
        }
        check("write", n, C.wherry_copy_nofault(at, room, page, &fault), fault, own, bus)
        check("set", n, C.wherry_set_nofault(at, 9, page, &fault), fault, own, bus)
        for i := 0; i < n; i++ {
            if own[page-n+i] != 9 {
                fail("was set", n)
            }
        }
    }
}

// A fault that is Go's own.
func panics() (told bool) {
    defer func() { told = recover() != nil }()
    var nowhere *int
    *nowhere = 1
    return false
}

func main() {
    if C.wherry_nofault_init() != 0 || C.path() != C.WHERRY_NOFAULT_BY_TABLE {
        fail("not by the table", 0)
    }
    const routines = 16
    done := make(chan bool)
    for i := 0; i < routines; i++ {
        go func(i int) {
            faults(i%2 == 1)
            if !panics() {
                fail("no panic", i)
            }
            runtime.GC()
            done <- true
        }(i)
    }
    for i := 0; i < routines; i++ {
        <-done
    }
    if C.path() != C.WHERRY_NOFAULT_BY_TABLE || !panics() {
        fail("afterwards", 0)
    }
    println("right")
}
"""


@pytest.fixture(scope="module")
def program(build_dir: Path, tmp_path_factory) -> Path:
    go = need_tool("go", "golang-go", "make extras EXTRAS_ARGS=soak")
    directory = tmp_path_factory.mktemp("go")
    (directory / "main.go").write_text(PROGRAM)
    (directory / "go.mod").write_text("module pages\n\ngo 1.19\n")
    libraries = build_dir / "src"
    environment = os.environ | {
        "CGO_ENABLED": "1",
        "CGO_CFLAGS": f"-I{ROOT / 'include'}",
        "CGO_LDFLAGS": f"-L{libraries} -lwherry -Wl,-rpath,{libraries}",
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
        "GOCACHE": str(directory / "cache"),
        "GOPATH": str(directory / "path"),
    }
    made = subprocess.run(
        [go, "build", "-o", "pages", "."],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert made.returncode == 0, made.stderr
    return directory / "pages"


@pytest.mark.parametrize("stopped", ["", "asyncpreemptoff=1"])
def test_faults_are_mended_and_nil_pointers_panic(program: Path, stopped: str):
    for _ in range(3):
        done = run(program, env={**os.environ, "GODEBUG": stopped}, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, "right\n"), done.stderr[-3000:]
