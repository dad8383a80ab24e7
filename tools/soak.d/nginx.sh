# idea: files of 1 B to 24 MB under load, straight and through a proxy, plain and compressed
# needs: nginx=nginx-light, ab=apache2-utils, curl=curl
port=$(free_port)
second=$((port + 1))
mkdir www t
for n in 1 100 1448 4096 65537 1000000; do head -c $n data.bin > www/f$n; done
cp -L data.bin www/big
cp -L words.txt www/words.txt
chmod -R a+rwX .
cat > n.conf <<END
daemon off; error_log stderr; pid $PWD/t/pid; worker_processes 2; events { }
http {
    access_log off; sendfile off; gzip on; gzip_types text/plain; types { text/plain txt; }
    client_body_temp_path $PWD/t/b; proxy_temp_path $PWD/t/p; fastcgi_temp_path $PWD/t/f;
    uwsgi_temp_path $PWD/t/u; scgi_temp_path $PWD/t/s;
    server { listen 127.0.0.1:$port; root $PWD/www; }
    server { listen 127.0.0.1:$second; location / { proxy_pass http://127.0.0.1:$port; } }
}
END
nginx -c "$PWD/n.conf" -p "$PWD" 2> log &
server=$!
at_exit $server
wait_for curl -sf 127.0.0.1:$port/f1
served $server
for n in 1 100 1448 4096 65537 1000000; do
    for p in $port $second; do
        ab -q -n 1500 -c 16 -k 127.0.0.1:$p/f$n | grep -E 'Complete requests|Failed requests|Document Length'
        curl -s 127.0.0.1:$p/f$n | cmp - www/f$n
    done
done
for i in $(seq 12); do curl -s 127.0.0.1:$((port + i % 2))/big | cmp - data.bin; done
curl -s --compressed 127.0.0.1:$port/words.txt | cmp - words.txt
curl -s -r 1000-70000 127.0.0.1:$port/big | cksum
kill -QUIT $server
wait $server || true
rm -rf t n.conf log www
