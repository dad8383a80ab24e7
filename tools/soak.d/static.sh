# idea: static programs stay as they are
# needs: gcc=gcc
gcc -O1 -fno-builtin -static "$TRIALS/static.c" -o s
./s
rm s
if command -v busybox > /dev/null; then
    busybox sha256sum data.bin
    busybox sort words.txt | busybox md5sum
fi
