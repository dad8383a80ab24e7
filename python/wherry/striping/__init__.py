"""What the experiment `stripes` reads: scratch or files that are given, a RAID over loop devices; its tables; fio."""
