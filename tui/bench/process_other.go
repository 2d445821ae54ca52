//go:build !linux

package bench

import "time"

// The usage of other processes is unknown here without other tools: reports omit it.

func processorTime(int) (used time.Duration, known bool)   { return 0, false }
func familyTime(int) (used time.Duration, known bool)      { return 0, false }
func residentBytes(int) (n int64, known bool)              { return 0, false }
func postgresTime(string) (used time.Duration, known bool) { return 0, false }
func processorModel() string                               { return "" }
