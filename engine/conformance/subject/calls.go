package subject

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func (r *run) step(ctx kagzi.Context, o *op, name string) error {
	var options []kagzi.StepOption
	if p := o.Retry; p != nil {
		options = append(options, kagzi.Retry{Attempts: p.Attempts,
			Initial: time.Duration(p.InitialMS) * time.Millisecond,
			Max:     time.Duration(p.MaxMS) * time.Millisecond, Coefficient: p.Coefficient, Jitter: p.Jitter,
			NonRetryable: p.NonRetryable})
	}
	if o.TimeoutMS != 0 {
		options = append(options, kagzi.Timeout(time.Duration(o.TimeoutMS)*time.Millisecond))
	}
	body := func(stepCtx context.Context) (json.RawMessage, error) { return r.body(ctx, stepCtx, o.Send) }
	var (
		v   json.RawMessage
		err error
	)
	r.at.in(call{kind: callStep}, func() {
		if o.Read != "number" {
			v, err = kagzi.Step(ctx, name, body, options...)
			return
		}
		var n int64
		n, err = kagzi.Step(ctx, name, func(stepCtx context.Context) (int64, error) {
			v, err := body(stepCtx)
			if err != nil {
				return 0, err
			}
			var n int64
			return n, json.Unmarshal(v, &n)
		}, options...)
		v = encoded(n)
	})
	return r.got(name, o.Into, v, err)
}

// each runs a step for each element of a list.
func (r *run) each(ctx kagzi.Context, o *op) error {
	r.mu.Lock()
	var list []string
	err := json.Unmarshal(r.value(o.List), &list)
	r.mu.Unlock()
	if err != nil {
		return kagzi.NonRetryable(fmt.Errorf("variable %s: %w", o.List, err))
	}
	for _, element := range list {
		if err := r.step(ctx, o, o.Prefix+element); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) signal(ctx kagzi.Context, o *op) error {
	c, limit := call{kind: callSignal, name: o.Name}, time.Duration(0)
	if o.LimitMS != nil {
		c.kind, limit = callTimer, time.Duration(*o.LimitMS)*time.Millisecond
	}
	var (
		v   json.RawMessage
		err error
	)
	r.at.in(c, func() {
		if o.Read == "number" {
			var n int64
			n, err = kagzi.WaitSignal[int64](ctx, o.Name, limit)
			v = encoded(n)
			return
		}
		v, err = kagzi.WaitSignal[json.RawMessage](ctx, o.Name, limit)
	})
	return r.got(o.Name, o.Into, v, err)
}

func (r *run) child(ctx kagzi.Context, o *op) error {
	options := kagzi.ChildOptions{ExternalID: o.ExternalID}
	switch o.Close {
	case "cancel":
		options.ParentClose = kagzi.ParentCloseCancel
	case "terminate":
		options.ParentClose = kagzi.ParentCloseTerminate
	}
	kind := Type
	if o.Type != "" {
		kind = o.Type
	}
	c, err := kagzi.StartChild[output](ctx, o.Name, kind, *o.Program, options)
	if err != nil {
		return r.got(o.Name, "", nil, err)
	}
	if o.Wait != nil && !*o.Wait {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.children[o.Name] = c
		return nil
	}
	var out output
	r.at.in(call{kind: callChild, name: o.Name}, func() { out, err = c.Wait(ctx) })
	return r.got(o.Name, o.Into, out.Value, err)
}

// started returns children that were started before.
func (r *run) started(names []string) ([]*kagzi.Child[output], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*kagzi.Child[output], len(names))
	for i, name := range names {
		if all[i] = r.children[name]; all[i] == nil {
			return nil, kagzi.NonRetryable(fmt.Errorf("the program has started no child %q", name))
		}
	}
	return all, nil
}

func (r *run) waitAll(ctx kagzi.Context, o *op) error {
	children, err := r.started(o.Names)
	if err != nil {
		return err
	}
	outs, err := kagzi.WaitAll(ctx, children...)
	values := make([]json.RawMessage, len(outs))
	for i := range outs {
		values[i] = outs[i].Value
	}
	return r.got("wait_all", "", encoded(values), err)
}

// future is a branch that can be waited for.
type future struct {
	*kagzi.Future[struct{}]
	branch *branch
}

func (r *run) fork(ctx kagzi.Context, body []*op) future {
	b := r.at.fork()
	return future{kagzi.Go(ctx, func(ctx kagzi.Context) (struct{}, error) {
		err := r.all(ctx, body)
		r.at.end(b)
		return struct{}{}, err
	}), b}
}

func (r *run) branches(ctx kagzi.Context, bodies [][]*op) error {
	all := make([]future, len(bodies))
	for i, body := range bodies {
		all[i] = r.fork(ctx, body)
	}
	return r.wait(ctx, all)
}

// wait waits for all branches, in order, and returns the first error.
func (r *run) wait(ctx kagzi.Context, all []future) (first error) {
	for _, f := range all {
		var err error
		r.at.in(call{kind: callBranches, branches: []*branch{f.branch}}, func() { _, err = f.Wait(ctx) })
		if first == nil {
			first = err
		}
	}
	return first
}

func (r *run) first(ctx kagzi.Context, o *op) error {
	children, err := r.started(o.Children)
	if err != nil {
		return err
	}
	var (
		all  []future
		wish []kagzi.Awaitable
		i    int
	)
	for _, body := range o.Bodies {
		all = append(all, r.fork(ctx, body))
	}
	for _, f := range all {
		wish = append(wish, f.Future)
	}
	for _, c := range children {
		wish = append(wish, c)
	}
	if len(children) > 0 {
		i = kagzi.First(ctx, wish...)
	} else {
		r.at.in(call{kind: callBranches, branches: branchesOf(all)}, func() { i = kagzi.First(ctx, wish...) })
	}
	if err := r.got("first", "", encoded(i), nil); err != nil || o.Rest != "wait" {
		return err
	}
	_ = r.wait(ctx, all) // their results do not matter
	return nil
}

func branchesOf(all []future) []*branch {
	list := make([]*branch, len(all))
	for i, f := range all {
		list[i] = f.branch
	}
	return list
}

// pool runs bodies in branches, so many at a time.
func (r *run) pool(ctx kagzi.Context, o *op) error {
	all := make([]future, len(o.Bodies))
	var busy []int
	for i, body := range o.Bodies {
		if len(busy) == o.Width {
			wish, branches, ended := make([]kagzi.Awaitable, len(busy)), make([]*branch, len(busy)), 0
			for j, n := range busy {
				wish[j], branches[j] = all[n].Future, all[n].branch
			}
			r.at.in(call{kind: callBranches, branches: branches}, func() { ended = kagzi.First(ctx, wish...) })
			_, _ = all[busy[ended]].Wait(ctx) // it has ended; wait returns its error
			busy = append(busy[:ended:ended], busy[ended+1:]...)
		}
		all[i] = r.fork(ctx, body)
		busy = append(busy, i)
	}
	return r.wait(ctx, all)
}

// body is the code of a step: it does what the gate says.
func (r *run) body(ctx kagzi.Context, stepCtx context.Context, send []string) (json.RawMessage, error) {
	q := program.Question{Key: kagzi.IdempotencyKey(stepCtx), Attempt: kagzi.Attempt(stepCtx)}
	if len(send) > 0 {
		q.Vars = map[string]json.RawMessage{}
		r.mu.Lock()
		for _, name := range send {
			q.Vars[name] = r.value(name)
		}
		r.mu.Unlock()
	}
	for {
		a, err := ask(r.settings.Gate, q)
		if err != nil {
			return nil, fmt.Errorf("gate: %w", err)
		}
		switch a.Do {
		case "return":
			return a.Value, nil
		case "fail":
			return nil, failure(a.Message, a.Type, a.NonRetryable, a.RetryAfterMS)
		case "panic":
			panic(a.Message)
		case "call":
			return kagzi.Step(ctx, "inside", func(context.Context) (json.RawMessage, error) {
				return json.RawMessage("1"), nil
			})
		case "start":
			return r.start(stepCtx, a.Program)
		case "wait":
			<-stepCtx.Done()
			return nil, kagzi.WithType(context.Cause(stepCtx), "stopped")
		case "print":
			fmt.Println(a.Text)
		case "exit":
			os.Exit(3)
		default:
			return nil, kagzi.NonRetryable(fmt.Errorf("the gate said %q", a.Do))
		}
	}
}

// start starts a run with the SDK's client, and returns its id.
func (r *run) start(ctx context.Context, p *program.Program) (json.RawMessage, error) {
	c, err := kagzi.NewClient(kagzi.ClientOptions{Address: r.settings.Address, DialOptions: r.settings.DialOptions})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	started, err := kagzi.Start(ctx, c, Type, *p, kagzi.StartOptions{Queue: r.settings.Queue})
	if err != nil {
		return nil, err
	}
	return encoded(started.ID()), nil
}

// cycle forks two branches that wait for each other, and waits for both.
func (r *run) cycle(ctx kagzi.Context) error {
	var a, b *kagzi.Future[struct{}]
	both := make(chan struct{})
	await := func(other **kagzi.Future[struct{}]) func(kagzi.Context) (struct{}, error) {
		return func(ctx kagzi.Context) (struct{}, error) {
			<-both
			return (*other).Wait(ctx)
		}
	}
	a = kagzi.Go(ctx, await(&b))
	b = kagzi.Go(ctx, await(&a))
	close(both)
	_, err := a.Wait(ctx)
	_, other := b.Wait(ctx)
	return errors.Join(err, other)
}

// ask asks the gate, and waits for as long as it takes.
func ask(gate string, q program.Question) (a program.Answer, err error) {
	resp, err := http.Post(gate, "application/json", bytes.NewReader(encoded(q)))
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return a, err
	}
	if resp.StatusCode != http.StatusOK {
		return a, errors.New(resp.Status)
	}
	return a, json.Unmarshal(data, &a)
}
