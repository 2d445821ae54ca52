//go:build race

package cron_test

// thin divides the samples, since the race detector makes each of them some eight times slower.
const thin = 8
