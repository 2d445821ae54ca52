package engine

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"
)

// TestVectorsOfBackoff checks the numbers that proto/vectors promises to authors of SDKs.
func TestVectorsOfBackoff(t *testing.T) {
	data, err := os.ReadFile("../proto/vectors/backoff.json")
	if err != nil {
		t.Fatal(err)
	}
	type policy struct {
		RetryPolicy
		Errors []string `json:"non_retryable_errors"` // the wire's name
	}
	var v struct {
		Delays []struct {
			Policy policy
			N      int
			Random float64
			MS     float64
		}
		Verdicts []struct {
			Policy policy
			N      int
			Error  struct {
				Message, Type string
				NonRetryable  bool `json:"non_retryable"`
			}
			Retried bool
		}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Delays) < 15 || len(v.Verdicts) < 11 {
		t.Fatal("the file has fewer vectors than it had")
	}
	for _, c := range v.Delays {
		if got := c.Policy.Backoff(c.N, c.Random); math.Abs(float64(got)/float64(time.Millisecond)-c.MS) > 0.001 {
			t.Errorf("%+v after failure %d: %s, want %v ms", c.Policy, c.N, got, c.MS)
		}
	}
	for _, c := range v.Verdicts {
		c.Policy.NonRetryable = c.Policy.Errors
		f := Failure{Message: c.Error.Message, Type: c.Error.Type, NonRetryable: c.Error.NonRetryable}
		if got := AfterStepFailed(nil, &c.Policy.RetryPolicy, c.N, f, time.Now(), 0); got.Retry != c.Retried {
			t.Errorf("%+v after failure %d with %+v: retried %t", c.Policy, c.N, c.Error, got.Retry)
		}
	}
}
