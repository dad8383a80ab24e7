# idea: its own tests of what copies
"$PYTHON" -c 'import test.test_bytes' 2> /dev/null || skip "needs Debian package libpython3-testsuite"
for module in test_bytes test_array test_struct test_memoryview test_mmap test_ctypes test_buffer test_pickle \
    test_zlib test_io; do
    status=0
    "$PYTHON" -m test -q $module > log 2>&1 || status=$?
    echo "$module: $status"
    grep -h '^Result' log || true
done
rm -f log
