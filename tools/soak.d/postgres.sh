# idea: initdb, pgbench with a fixed seed, sorts, hashes and joins of its tables, dump
# needs: initdb=postgresql, pgbench=postgresql-contrib, setpriv=util-linux
port=$(free_port)
mkdir db
cd db
[ "$(id -u)" != 0 ] || chown nobody:nogroup .
"${nobody[@]}" initdb -D d -U me -A trust --no-sync -E UTF8 --locale=C > /dev/null
"${nobody[@]}" postgres -D d -p $port -k "$PWD" -c fsync=off -c synchronize_seqscans=off -c listen_addresses= -c shared_buffers=64MB -c work_mem=1MB -c autovacuum=off \
    > log 2>&1 &
server=$!
at_exit $server
me="-h $PWD -p $port -U me"
sql() { psql $me -At -c "$1" postgres; }
wait_for psql $me -c 'select 1' postgres
served $server
pgbench $me -i -q -s 6 postgres 2> /dev/null
pgbench $me -n -t 4000 -c 1 --random-seed=5 postgres > /dev/null 2>&1
pgbench $me -n -S -t 3000 -c 4 -j 2 postgres > /dev/null 2>&1
sql "select sum(abalance), md5(string_agg(aid::text || abalance, ',' order by aid)) from pgbench_accounts"
sql 'create table t as select i, md5(i::text) m, repeat(md5(i::text), i % 60) r from generate_series(1, 120000) i'
sql 'create index on t (m)'
sql 'select count(distinct m), max(length(r)) from t'
sql "select md5(string_agg(r, '' order by m)) from t where i % 5 = 0"
sql 'select count(*) from t a join t b using (m) where a.r = b.r'
sql 'vacuum full t'
sql "select count(*) from t where m > 'a'"
pg_dump $me -t t postgres | grep -v '^.\(un\)\?restrict' | sort | cksum
"${nobody[@]}" pg_ctl -D d -m fast stop > /dev/null
wait $server || true
cd ..
rm -rf db
