// SPDX-License-Identifier: MIT
// See rounds.c. What is kept comes from C.malloc; Go's own heap has garbage only.
package main

/*
#include <stdlib.h>
#include <string.h>
static int is_all(const unsigned char *block, int value) {
	for (int i = 0; i < 10000; i++)
		if (block[i] != value)
			return 0;
	return 1;
}
*/
import "C"
import (
	"fmt"
	"time"
	"unsafe"
)

var garbage []byte

func main() {
	go func() {
		for i := 0; ; i++ {
			C.free(C.malloc(C.size_t(16 + i*37%2000)))
			garbage = make([]byte, 4096)
			time.Sleep(time.Millisecond / 10)
		}
	}()
	var kept []unsafe.Pointer
	for round := 1; ; round++ {
		for i := 0; i < 8; i++ {
			block := C.malloc(10000)
			C.memset(block, C.int(len(kept)%251), 10000)
			kept = append(kept, block)
		}
		i, word := round*7%len(kept), "WRONG"
		if C.is_all((*C.uchar)(kept[i]), C.int(i%251)) == 1 {
			word = "OK"
		}
		fmt.Printf("ROUND %d LIVE %d %s\n", round, len(kept)*10000, word)
		time.Sleep(20 * time.Millisecond)
	}
}
