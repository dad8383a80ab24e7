
real	3m38.281s
user	1m17.829s
sys	1m6.351s
