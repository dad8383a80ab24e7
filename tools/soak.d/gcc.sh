# idea: compiles and links a tree of C at -O2 and -O3
# needs: gcc=gcc
# The maps of names make the debugging information the same wherever this runs.
options=(-O2 -g -D_GNU_SOURCE '-DWHERRY_VERSION="0"' "-fdebug-prefix-map=$PWD=." -Itree/src -Itree/runner -Itree/include)
mkdir o
for file in $(find -L tree -name '*.c' ! -path '*/routines/*' ! -path '*/planfile/*' | sort); do
    gcc "${options[@]}" -c "$file" -o "o/${file//\//_}.o" 2> said || { echo "$file: not compiled"; cksum < said; }
done
rm said
for file in tree/src/cpu/*.c tree/src/plan/*.c; do
    gcc -O3 -S -Itree/src "$file" -o - | cksum
done
printf '#include <stdio.h>\nint main(void) { return puts("built") < 0; }\n' > p.c
gcc -O2 -flto p.c -o p
./p
rm p
