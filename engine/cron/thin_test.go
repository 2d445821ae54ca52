//go:build !race

package cron_test

const thin = 1
