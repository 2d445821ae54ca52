package e2e

import "time"

// promptly is when what is to happen at once is late by any measure, on a machine with other work
// too: whoever missed it would find it by himself no sooner than a minute later. How soon it
// usually comes is for the benchmarks to say.
const promptly = 10 * time.Second
