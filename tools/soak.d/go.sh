# idea: a program with C parts, built and run; the compiler itself is static
# needs: go=golang-go, gcc=gcc
export GOCACHE=$PWD/c GOPATH=$PWD/g GO111MODULE=off GOFLAGS=-p=2 CGO_ENABLED=1
go build -trimpath -o t "$TRIALS/t.go"
./t
chmod -R u+w c
rm -rf .config c g t
