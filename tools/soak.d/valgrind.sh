# idea: sort, perl, tar and gzip under memcheck: no error that it does not find without
# needs: valgrind=valgrind, perl=perl
head -n 3000 words.txt > few
v="valgrind -q --error-exitcode=9 --leak-check=no"
$v sort -R --random-source=data.bin few | cksum
$v perl -e 'open F, "few"; my $s = join "", <F>; $s =~ s/(\w+) (\w+)/$2 $1/g; print unpack("%32C*", $s x 9), "\n"'
$v tar --sort=name --owner=0 --group=0 --mtime=@0 -chf - few tree/docs | cksum
$v gzip -9nc few | cksum
