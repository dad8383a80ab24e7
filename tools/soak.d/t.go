package main

/*
#include <stdlib.h>
#include <string.h>

static unsigned sum(const unsigned char *bytes, size_t n)
{
    unsigned char *copy = malloc(n + 99);
    memset(copy, 1, n + 99);
    memcpy(copy + 3, bytes, n);
    memmove(copy, copy + 3, n);
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + copy[i];
    free(copy);
    return sum;
}
*/
import "C"

import (
	"crypto/sha256"
	"fmt"
	"os"
	"unsafe"
)

func main() {
	data, _ := os.ReadFile("data.bin")
	fmt.Printf("%x\n", sha256.Sum256(data))
	for n := 1; n < 3000000; n = n*2 + 1 {
		fmt.Println(C.sum((*C.uchar)(unsafe.Pointer(&data[0])), C.size_t(n)))
		part := append([]byte{}, data[:n]...)
		copy(part[n/3:], part)
		fmt.Printf("%x\n", sha256.Sum256(part))
	}
}
