//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "torture: faults can be injected on Linux only")
	os.Exit(77)
}
