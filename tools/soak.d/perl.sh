# idea: hashes, patterns, pack, long strings
# needs: perl=perl
perl -e '
    open F, "words.txt";
    my (%c, @all);
    while (<F>) { $c{$_}++ for split; push @all, $_ }
    print scalar(keys %c), "\n";
    my $s = join "", @all;
    $s =~ s/(\w+) (\w+)/$2 $1/g;
    print length $s, " ", unpack("%32C*", $s), "\n";
    print unpack("%32C*", pack("w/a* N n a300", $s, 1, 2, reverse $s)), "\n";
    substr($s, $_ * 977, 20) = "x" x ($_ % 4096) for 1 .. 600;
    print unpack("%32C*", scalar reverse $s), "\n";
    print join(",", sort { $c{$a} <=> $c{$b} || $a cmp $b } keys %c) =~ tr/a-e//, "\n"'
