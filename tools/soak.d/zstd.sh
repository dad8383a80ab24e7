# idea: levels 1 to 19, threads, long matches, small blocks
# needs: zstd=zstd
for level in 1 3 9; do
    zstd -q -$level -T2 < words.txt > w.$level.zst
    zstd -dc w.$level.zst | cmp - words.txt
done
head -c 3000000 words.txt > some
zstd -q -19 --long=24 some -o l.zst
zstd -dc --long=24 l.zst | cmp - some
zstd -q -1 -B4096 < data.bin > d.zst
zstd -dc d.zst | cmp - data.bin
split -b 3000 some s.
zstd -q --train s.* -o dict --maxdict=20000
