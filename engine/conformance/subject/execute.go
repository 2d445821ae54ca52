package subject

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagzi "github.com/kagzi/kagzi/sdk"
)

type (
	input  = program.Program
	output = program.Result
	op     = program.Op
)

// run is what all branches of a program share. The SDK hands results to them one at a time, so the
// trace has the order of results.
type run struct {
	settings Settings
	mu       sync.Mutex
	out      output
	children map[string]*kagzi.Child[output]
	at       *place
}

// errReturn ends a program early.
var errReturn = errors.New("return")

func execute(ctx kagzi.Context, s Settings, in input) (*output, error) {
	r := &run{settings: s, at: s.Watch.begin(kagzi.Info(ctx).RunID), children: map[string]*kagzi.Child[output]{},
		out: output{Trace: []program.Entry{}, Vars: map[string]json.RawMessage{}, Value: json.RawMessage("null")}}
	if err := r.all(ctx, in.Ops); err != nil && !errors.Is(err, errReturn) {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.out, nil
}

func (r *run) all(ctx kagzi.Context, ops []*op) error {
	for i := range ops {
		if err := r.do(ctx, ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) do(ctx kagzi.Context, o *op) error {
	switch o.Op {
	case "step":
		return r.step(ctx, o, o.Name)
	case "each":
		return r.each(ctx, o)
	case "sleep":
		r.at.in(call{kind: callTimer}, func() { kagzi.Sleep(ctx, o.Name, time.Duration(o.MS)*time.Millisecond) })
		return r.got(o.Name, "", nil, nil)
	case "sleep_until":
		at, err := time.Parse(time.RFC3339, o.At)
		if err != nil {
			return kagzi.NonRetryable(err)
		}
		r.at.in(call{kind: callTimer}, func() { kagzi.SleepUntil(ctx, o.Name, at) })
		return r.got(o.Name, "", nil, nil)
	case "signal":
		return r.signal(ctx, o)
	case "child":
		return r.child(ctx, o)
	case "wait_all":
		return r.waitAll(ctx, o)
	case "branches":
		return r.branches(ctx, o.Bodies)
	case "first":
		return r.first(ctx, o)
	case "pool":
		return r.pool(ctx, o)
	case "cycle":
		return r.cycle(ctx)
	case "repeat":
		for range o.Times {
			if err := r.all(ctx, o.Ops); err != nil {
				return err
			}
		}
		return nil
	case "try":
		return r.try(ctx, o)
	case "cleanup":
		return r.all(kagzi.Cleanup(ctx), o.Ops)
	case "patched":
		if kagzi.Patched(ctx, o.ID) {
			return r.all(ctx, o.Then)
		}
		return r.all(ctx, o.Else)
	case "variant":
		if n := r.settings.Variant; n < len(o.Cases) {
			return r.all(ctx, o.Cases[n])
		}
		return nil
	case "continue":
		_, err := kagzi.ContinueAsNew[output](ctx, *o.Program)
		return err
	}
	return r.plain(ctx, o)
}

// plain does the ops that wait for nothing.
func (r *run) plain(ctx kagzi.Context, o *op) error {
	switch o.Op {
	case "push":
		return r.push(o)
	case "now":
		return r.set(o.Into, kagzi.Now(ctx))
	case "random":
		return r.set(o.Into, kagzi.Random(ctx).Uint32())
	case "uuid":
		return r.set(o.Into, kagzi.NewUUID(ctx).String())
	case "info":
		i := kagzi.Info(ctx)
		return r.set(o.Into, map[string]any{"type": i.WorkflowType, "queue": i.Queue, "namespace": i.Namespace,
			"external_id": i.ExternalID, "version": i.Version, "attempt": i.Attempt})
	case "note":
		kagzi.Note(ctx, o.Text)
		return nil
	case "fail":
		return failure(o.Message, o.Type, o.NonRetryable, o.RetryAfterMS)
	case "panic":
		panic(o.Message)
	case "return":
		r.mu.Lock()
		defer r.mu.Unlock()
		r.out.Value = o.Value
		return errReturn
	case "block":
		time.Sleep(time.Duration(o.MS) * time.Millisecond)
		return nil
	}
	return kagzi.NonRetryable(fmt.Errorf("the program has an unknown op %q", o.Op))
}

// failure makes an error of the application.
func failure(message, kind string, final bool, after int64) error {
	err := errors.New(message)
	if kind != "" {
		err = kagzi.WithType(err, kind)
	}
	if after > 0 {
		err = kagzi.RetryAfter(err, time.Duration(after)*time.Millisecond)
	}
	if final {
		err = kagzi.NonRetryable(err)
	}
	return err
}

// got appends to the trace what a call returned, sets the variable into, and returns err.
func (r *run) got(label, into string, value json.RawMessage, err error) error {
	if err != nil {
		value = encoded(failureOf(err))
	} else if value == nil {
		value = json.RawMessage("null")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Trace = append(r.out.Trace, program.Entry{encoded(label), value})
	if err == nil && into != "" {
		r.out.Vars[into] = value
	}
	return err
}

func failureOf(err error) program.Failure {
	var f program.Failure
	var (
		step  *kagzi.StepError
		child *kagzi.RunError
		typed kagzi.Typed
	)
	switch {
	case errors.As(err, &step):
		f.Code = string(step.Code)
	case errors.As(err, &child):
		f.Code = string(child.Code)
	case errors.Is(err, kagzi.ErrCancelled):
		f.Code = string(kagzi.CodeCancelled)
	}
	if errors.As(err, &typed) {
		f.Type = typed.ErrorType()
	}
	return f
}

func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers
	}
	return data
}

func (r *run) set(name string, value any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Vars[name] = encoded(value)
	return nil
}

func (r *run) push(o *op) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []json.RawMessage
	if err := json.Unmarshal(r.value(o.List), &list); err != nil {
		return kagzi.NonRetryable(fmt.Errorf("variable %s: %w", o.List, err))
	}
	r.out.Vars[o.List] = encoded(append(list, r.value(o.Var)))
	return nil
}

// value returns a variable. Needs r.mu.
func (r *run) value(name string) json.RawMessage {
	if v, ok := r.out.Vars[name]; ok {
		return v
	}
	return json.RawMessage("null")
}

// try ends as its ops do, unless it catches their failure.
func (r *run) try(ctx kagzi.Context, o *op) error {
	err := r.all(ctx, o.Ops)
	failed := failureOfProgram(err)
	switch {
	case err == nil:
	case errors.Is(err, kagzi.ErrCancelled):
		if undo := r.all(kagzi.Cleanup(ctx), o.Cancelled); undo != nil {
			return undo
		}
	case failed && o.Catch != nil:
		return r.all(ctx, o.Catch)
	}
	return err
}

// failureOfProgram reports whether the program failed, rather than ended.
func failureOfProgram(err error) bool {
	var typed kagzi.Typed
	return err != nil && !errors.Is(err, errReturn) && !(errors.As(err, &typed) && typed.ErrorType() == "continue_as_new")
}
