# idea: sort, split, tac, od, dd, checksums of 20 MB
sort words.txt > sorted
sort -k2,2 -k1nr -S 2M words.txt | sha256sum
sort --parallel=2 -R --random-source=data.bin words.txt | cksum
cp data.bin copy.bin
cmp data.bin copy.bin
sha256sum data.bin
b2sum data.bin
tac words.txt | md5sum
split -b 700001 data.bin piece.
cat piece.* | cksum
rm piece.*
od -A x -t x1z data.bin | tail -n 3
dd if=data.bin of=odd.bin bs=1777 skip=3 count=9000 conv=swab 2> /dev/null
base64 data.bin | fold -w 61 | cksum
shuf --random-source=data.bin words.txt | cksum
paste words.txt sorted | expand | tr a-z A-Z | cut -c 3-50 | uniq -c | cksum
