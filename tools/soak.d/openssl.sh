# idea: digests, ciphers and signatures of 24 MB
# needs: openssl=openssl
for digest in sha512 sha3-256 blake2b512; do
    openssl dgst -$digest data.bin
done
key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f iv=00112233445566778899aabbccddeeff
for cipher in aes-256-cbc chacha20; do
    openssl enc -$cipher -K $key -iv $iv -in data.bin -out e
    sha256sum e
    openssl enc -d -$cipher -K $key -iv $iv -in e | cmp - data.bin
done
for cipher in aes-128-ctr camellia-128-cbc; do
    openssl enc -$cipher -K ${key:0:32} -iv $iv -in data.bin -out e
    sha256sum e
    openssl enc -d -$cipher -K ${key:0:32} -iv $iv -in e | cmp - data.bin
done
rm e
openssl enc -base64 -in data.bin | openssl enc -d -base64 | cmp - data.bin
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out k.pem 2> /dev/null
openssl pkey -in k.pem -pubout -out p.pem
openssl dgst -sha256 -sign k.pem -out s data.bin
openssl dgst -sha256 -verify p.pem -signature s data.bin
rm k.pem p.pem s
