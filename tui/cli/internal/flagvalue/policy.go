package flagvalue

import (
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Policy holds the flags for retries, timeouts and the failure handler.
type Policy struct {
	retryAttempts    int32
	retryInitial     time.Duration
	retryCoefficient float64
	retryMaximum     time.Duration
	retryJitter      float64
	retryNot         []string
	stepTimeout      time.Duration
	heartbeatTimeout time.Duration
	executionTimeout time.Duration
	OnFailure        string
	OnFailureQueue   string
}

func (f *Policy) Register(fs *pflag.FlagSet) {
	fs.Int32Var(&f.retryAttempts, "retry-attempts", 0,
		"attempts including the first; -1 for no limit, 0 for the default: 3 for steps, 1 for the run")
	fs.Var(milliseconds(&f.retryInitial), "retry-initial", "delay after the first failure (default 1s)")
	fs.Float64Var(&f.retryCoefficient, "retry-coefficient", 0,
		"factor by which the delay grows after each failure (default 2)")
	fs.Var(milliseconds(&f.retryMaximum), "retry-max-interval", "longest delay (default 1m)")
	fs.Float64Var(&f.retryJitter, "retry-jitter", 0,
		"random fraction added to a delay, up to 1; negative for none, 0 for the default 0.1")
	fs.StringArrayVar(&f.retryNot, "retry-not", nil,
		"error type, or start of an error message, that is not retried; may be repeated")
	fs.Var(milliseconds(&f.stepTimeout), "step-timeout", "time limit of one attempt of a step (default 10m)")
	fs.Var(milliseconds(&f.heartbeatTimeout), "heartbeat-timeout",
		"time without a heartbeat after which the worker counts as lost (default: the server's setting)")
	fs.Var(milliseconds(&f.executionTimeout), "execution-timeout",
		"time limit of the whole run, from its start time (default: none)")
	fs.StringVar(&f.OnFailure, "on-failure", "", "workflow type to start when the run fails or times out")
	fs.StringVar(&f.OnFailureQueue, "on-failure-queue", "", "queue of the failure handler (default: the run's own)")
}

// RetryPolicy applies the given flags to a policy, which may be nil. It returns nil if no flag was
// given.
func (f *Policy) RetryPolicy(changed func(string) bool, old *kagziv1.RetryPolicy) *kagziv1.RetryPolicy {
	p := &kagziv1.RetryPolicy{}
	if old != nil {
		p = proto.CloneOf(old)
	}
	given := false
	for flag, set := range map[string]func(){
		"retry-attempts":     func() { p.MaximumAttempts = f.retryAttempts },
		"retry-initial":      func() { p.InitialIntervalMs = f.retryInitial.Milliseconds() },
		"retry-coefficient":  func() { p.BackoffCoefficient = f.retryCoefficient },
		"retry-max-interval": func() { p.MaximumIntervalMs = f.retryMaximum.Milliseconds() },
		"retry-jitter":       func() { p.Jitter = f.retryJitter },
		"retry-not":          func() { p.NonRetryableErrors = f.retryNot },
	} {
		if changed(flag) {
			given = true
			set()
		}
	}
	if !given {
		return nil
	}
	return p
}

// Timeouts applies the given flags to timeouts, which may be nil. It returns nil if no flag was
// given.
func (f *Policy) Timeouts(changed func(string) bool, old *kagziv1.TimeoutConfig) *kagziv1.TimeoutConfig {
	t := &kagziv1.TimeoutConfig{}
	if old != nil {
		t = proto.CloneOf(old)
	}
	given := false
	for flag, set := range map[string]func(){
		"step-timeout":      func() { t.StartToCloseTimeoutMs = f.stepTimeout.Milliseconds() },
		"heartbeat-timeout": func() { t.HeartbeatTimeoutMs = f.heartbeatTimeout.Milliseconds() },
		"execution-timeout": func() { t.ExecutionTimeoutMs = f.executionTimeout.Milliseconds() },
	} {
		if changed(flag) {
			given = true
			set()
		}
	}
	if !given {
		return nil
	}
	return t
}
