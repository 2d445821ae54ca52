package flagvalue

import (
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Policy holds the flags for retries, timeouts and the failure handler.
type Policy struct {
	retry            retry // of steps
	runRetry         retry // of the run itself
	stepTimeout      time.Duration
	heartbeatTimeout time.Duration
	executionTimeout time.Duration
	OnFailure        string
	OnFailureQueue   string
}

// retry holds the flags of one retry policy; their names begin with its prefix.
type retry struct {
	prefix      string
	attempts    int32
	initial     time.Duration
	coefficient float64
	maximum     time.Duration
	jitter      float64
	not         []string
}

func (f *retry) register(fs *pflag.FlagSet, prefix, attempts string) {
	f.prefix = prefix
	fs.Int32Var(&f.attempts, prefix+"attempts", 0, attempts)
	fs.Var(milliseconds(&f.initial), prefix+"initial", "delay after the first failure (default 1s)")
	fs.Float64Var(&f.coefficient, prefix+"coefficient", 0,
		"factor by which the delay grows after each failure (default 2)")
	fs.Var(milliseconds(&f.maximum), prefix+"max-interval", "longest delay (default 1m)")
	fs.Float64Var(&f.jitter, prefix+"jitter", 0,
		"random fraction added to a delay, up to 1; negative for none, 0 for the default 0.1")
	fs.StringArrayVar(&f.not, prefix+"not", nil,
		"error type, or start of an error message, that is not retried; may be repeated")
}

func (f *Policy) Register(fs *pflag.FlagSet) {
	f.retry.register(fs, "retry-",
		"attempts of steps including the first, and of the run without --run-retry-…; -1 for no limit, 0 for 3")
	f.runRetry.register(fs, "run-retry-",
		"attempts of the run itself including the first; -1 for no limit, 0 for 3 (default: those of --retry-…, or 1)")
	fs.Var(milliseconds(&f.stepTimeout), "step-timeout", "time limit of one attempt of a step (default 10m)")
	fs.Var(milliseconds(&f.heartbeatTimeout), "heartbeat-timeout",
		"time without a heartbeat after which the worker counts as lost (default: the server's setting)")
	fs.Var(milliseconds(&f.executionTimeout), "execution-timeout",
		"time limit of the whole run, from its start time (default: none)")
	fs.StringVar(&f.OnFailure, "on-failure", "", "workflow type to start when the run fails or times out")
	fs.StringVar(&f.OnFailureQueue, "on-failure-queue", "", "queue of the failure handler (default: the run's own)")
}

// RetryPolicy applies the given flags to a policy of steps, which may be nil. It returns nil if no
// flag was given.
func (f *Policy) RetryPolicy(changed func(string) bool, old *kagziv1.RetryPolicy) *kagziv1.RetryPolicy {
	return f.retry.apply(changed, old)
}

// RunRetryPolicy is RetryPolicy for the policy of the run itself.
func (f *Policy) RunRetryPolicy(changed func(string) bool, old *kagziv1.RetryPolicy) *kagziv1.RetryPolicy {
	return f.runRetry.apply(changed, old)
}

func (f *retry) apply(changed func(string) bool, old *kagziv1.RetryPolicy) *kagziv1.RetryPolicy {
	p := &kagziv1.RetryPolicy{}
	if old != nil {
		p = proto.CloneOf(old)
	}
	given := false
	for flag, set := range map[string]func(){
		"attempts":     func() { p.MaximumAttempts = f.attempts },
		"initial":      func() { p.InitialIntervalMs = f.initial.Milliseconds() },
		"coefficient":  func() { p.BackoffCoefficient = f.coefficient },
		"max-interval": func() { p.MaximumIntervalMs = f.maximum.Milliseconds() },
		"jitter":       func() { p.Jitter = f.jitter },
		"not":          func() { p.NonRetryableErrors = f.not },
	} {
		if changed(f.prefix + flag) {
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
