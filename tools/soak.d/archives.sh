# idea: tar, gzip, bzip2, xz there and back
# needs: gzip=gzip, bzip2=bzip2, xz=xz-utils
tar --sort=name --owner=0 --group=0 --mtime=@0 -chf all.tar tree words.txt data.bin
sha256sum all.tar
gzip -6nk all.tar
gzip -dc all.tar.gz | cmp - all.tar
mkdir out
tar -xf all.tar -C out
diff -r tree/ out/tree/
rm all.tar
head -c 9000000 words.txt > some
bzip2 -k some
bunzip2 -c some.bz2 | cmp - some
xz -k -2 -T2 some
xz -dc some.xz | cmp - some
