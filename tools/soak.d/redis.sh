# idea: redis-benchmark, 300,000 commands written and read back, saved and loaded
# needs: redis-server=redis-server, redis-benchmark=redis-tools, awk=mawk
port=$(free_port)
cli="redis-cli -p $port"
start() {
    redis-server --port $port --save '' --dir . --dbfilename d.rdb --bind 127.0.0.1 > log 2>&1 &
    server=$!
    at_exit $server
    wait_for $cli -e ping # which fails as long as it loads
}
stop() {
    $cli shutdown nosave || true
    wait $server || true
}
start
served $server
redis-benchmark -p $port -q -n 40000 -d 1500 -P 8 -t set,get,lpush,lrange_100,sadd,hset,zadd,mset > /dev/null
$cli flushall
awk '{ print "SET k" NR, "\"" $0 "\""; print "RPUSH l" NR % 99, $1; print "HSET h" NR % 77, $1, NR
       print "APPEND a" NR % 9, $2 } NR == 75000 { exit }' words.txt | $cli --pipe | tail -n 1
look() {
    $cli dbsize
    $cli get a3 | cksum
    $cli hgetall h5 | sort | cksum
    $cli lrange l7 0 -1 | cksum
}
look
$cli save
stop
start
look
stop
rm -f d.rdb log
