//go:build !linux

package bench

import "time"

// What other processes use is not known here without further tools: reports leave it out.

func processorTime(int) (used time.Duration, known bool)   { return 0, false }
func residentBytes(int) (n int64, known bool)              { return 0, false }
func postgresTime(string) (used time.Duration, known bool) { return 0, false }
func processorModel() string                               { return "" }
