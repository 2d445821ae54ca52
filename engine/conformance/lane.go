package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
	"github.com/kagzi/kagzi/engine/conformance/subject"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// lane is a private server with a subject, and what stands between them. Its programs run one after the
// other where faults concern all of them.
type lane struct {
	host  *host
	proxy *proxy // nil for the reference
	gate  *gate
	name  string

	command []string          // of the subject; nil for the Go SDK in this process
	more    map[string]string // variables beside the usual ones
	process *process
	worker  func()         // ends the worker in this process
	watch   *subject.Watch // of the worker in this process

	busy atomic.Int64 // when the subject last did something, as nanoseconds since 1970
}

const (
	queue     = "conformance"
	build     = "build-a"
	stopLimit = 15 * time.Second
)

// startLimit limits how long a subject may take to register. Tests make it shorter.
var startLimit = 2 * time.Minute

// newLane starts a lane without its subject.
func newLane(stores Stores, name string, command []string, pages bool, lease time.Duration) (*lane, error) {
	h, err := newHost(stores, pages, lease)
	if err != nil {
		return nil, err
	}
	l := &lane{host: h, name: name, command: command}
	active := func() { l.busy.Store(time.Now().UnixNano()) }
	if l.gate, err = newGate(h.changes); err == nil && command != nil {
		l.proxy, err = newProxy(h.address, active)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.gate.asked = active
	return l, nil
}

// begin starts the subject and waits until it is registered.
func (l *lane) begin(ctx context.Context, more map[string]string) error {
	l.more = more
	if l.command == nil {
		return l.beginHere(ctx)
	}
	env := map[string]string{"KAGZI_ADDRESS": l.proxy.address(), "KAGZI_NAMESPACE": namespace, "KAGZI_CONFIG": "off",
		"KAGZI_CONFORMANCE_QUEUE": queue, "KAGZI_CONFORMANCE_GATE": l.gate.next(), "KAGZI_CONFORMANCE_BUILD": build}
	for name, value := range more {
		env[name] = value
	}
	p, err := startProcess(l.command, env)
	if err != nil {
		return err
	}
	l.process = p
	if err := ready(ctx, l.host, p.over, startLimit); err != nil {
		p.kill()
		l.process = nil
		return fmt.Errorf("%w\n%s", err, p.out)
	}
	return nil
}

// beginHere starts the Go SDK's worker in this process.
func (l *lane) beginHere(ctx context.Context) error {
	variant, _ := strconv.Atoi(l.more["KAGZI_CONFORMANCE_VARIANT"])
	l.watch = subject.NewWatch(l.host.changes.ring)
	w, err := subject.Worker(subject.Settings{Address: l.host.address, Queue: queue, Gate: l.gate.next(), Build: build,
		Variant: variant, Watch: l.watch, Signals: []os.Signal{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	l.worker = func() {
		stop()
		<-ended
	}
	return ready(ctx, l.host, func() error { return nil }, startLimit)
}

// alive starts the subject again if it has ended, and returns why it had.
func (l *lane) alive(ctx context.Context) error {
	if l.command == nil || l.process != nil && l.process.over() == nil {
		return nil
	}
	var crash error
	if l.process != nil {
		crash = l.process.over()
	}
	return errors.Join(crash, l.again(ctx))
}

// again kills the subject and starts it again; its runs are free at once.
func (l *lane) again(ctx context.Context) error { return l.change(ctx, l.more) }

func (l *lane) change(ctx context.Context, more map[string]string) error {
	l.end()
	if err := l.host.takeOffline(ctx); err != nil {
		return err
	}
	return l.begin(ctx, more)
}

// end ends the subject at once.
func (l *lane) end() {
	if l.process != nil {
		l.process.kill()
		l.process = nil
	}
	if l.worker != nil {
		l.worker()
		l.worker = nil
	}
}

func (l *lane) close() {
	if l.gate != nil {
		l.gate.close()
	}
	l.end()
	if l.proxy != nil {
		l.proxy.close()
	}
	l.host.close()
}

// start starts a program.
func (l *lane) start(ctx context.Context, p *program.Program,
	change func(*kagziv1.StartWorkflowRequest)) (*family, error) {
	input, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	r := &kagziv1.StartWorkflowRequest{Namespace: namespace, TaskQueue: queue, WorkflowType: subject.Type,
		Input: &kagziv1.Payload{Data: input, Metadata: map[string]string{"content-type": "application/json"}}}
	if change != nil {
		change(r)
	}
	started, err := l.host.runs.StartWorkflow(ctx, r)
	if err != nil {
		return nil, err
	}
	return newFamily(l.host, started.GetRunId()), nil
}

// abandon ends what is left of a program.
func (l *lane) abandon(ctx context.Context, f *family) {
	all, err := f.members(ctx)
	if err != nil {
		return
	}
	for _, m := range all {
		if !ended(m.run.GetStatus()) {
			_, _ = l.host.runs.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{Namespace: namespace,
				RunId: m.run.GetRunId(), Reason: "the case is over"})
		}
		l.gate.forget(m.run.GetRunId())
		if l.watch != nil {
			l.watch.Forget(m.run.GetRunId())
		}
	}
}

// lateError says that a subject did nothing for too long.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string {
	return "the subject has done nothing for " + e.after.String()
}

// lookEvery is the longest time between two looks of a suite that is not kept waiting itself.
const lookEvery = 100 * time.Millisecond

// while waits until done, for as long as the subject does something. It fails when the process has ended.
// On a machine that is too busy to look often, it waits longer.
func (l *lane) while(ctx context.Context, done func() (bool, error)) error {
	began, busy, looks := time.Now(), int64(0), time.Duration(0)
	return await(ctx, func() (bool, error) {
		if l.process != nil {
			if err := l.process.over(); err != nil {
				return false, err
			}
		}
		ok, err := done()
		if at := l.busy.Load(); at != busy {
			busy, looks = at, 0
		}
		looks++
		if !ok && err == nil && looks*lookEvery > eventLimit && time.Since(began) > eventLimit &&
			time.Since(time.Unix(0, busy)) > eventLimit {
			return false, &lateError{eventLimit}
		}
		return ok, err
	}, l.host.changes)
}
