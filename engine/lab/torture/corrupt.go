//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// copiesAtFullScale is the number of damaged copies at scale 1.
const copiesAtFullScale = 500

// corrupt is F-48: a file with known runs is damaged in many ways. Everything that a server then
// answers must be true, or an error.
func corrupt(ctx context.Context, o options) (*report, error) {
	sound, known, err := soundFile(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, errors.New("the sound file has no runs to ask for")
	}
	random := rand.New(rand.NewPCG(o.seed, 48))
	counts := map[fate]int{}
	line := check.Line{ID: "F-48", Of: "damaged copies"}
	for n := range max(10, int(copiesAtFullScale*o.scale)) {
		one := o
		one.dir = filepath.Join(o.dir, fmt.Sprint(n))
		what, err := damage(sound, filepath.Join(one.dir, "data"), random)
		if err != nil {
			return nil, err
		}
		came, detail, err := askDamaged(ctx, one, known)
		if err != nil {
			return nil, err
		}
		line.Checked++
		counts[came]++
		if came == wrong || came == broken {
			line.Violations = append(line.Violations, fmt.Sprintf("copy %d (%s): %s: %s", n, what, came, detail))
			continue // keep the copy for inspection
		}
		if err := os.RemoveAll(one.dir); err != nil {
			return nil, err
		}
	}
	line.Note = fmt.Sprintf(
		"; %d harmless, %d refused at the start, %d noticed later, %d wrong, %d panics, hangs or no word of what to do",
		counts[harmless], counts[refusedStart], counts[noticed], counts[wrong], counts[broken])
	r := &report{lines: []check.Line{line}}
	if counts[refusedStart]+counts[noticed] == 0 {
		r.vacuous = append(r.vacuous, "no damage was noticed")
	}
	return r, nil
}

// fate is the outcome of a damaged copy.
type fate string

const (
	harmless     fate = "harmless"
	refusedStart fate = "refused"
	noticed      fate = "noticed"
	wrong        fate = "a wrong answer"
	broken       fate = "a panic, a hang or no word of what to do"
)

// soundFile makes a file with some hundred ended runs.
func soundFile(ctx context.Context, o options) (string, []check.Run, error) {
	o.dir = filepath.Join(o.dir, "sound")
	if err := os.Mkdir(o.dir, 0o755); err != nil {
		return "", nil, err
	}
	r, err := one(ctx, o, func(s *shape) { s.Workers, s.Slots = 2, 50 })
	defer r.close()
	if err != nil {
		return "", nil, err
	}
	m := workload.Mix{Flaky: 0.1, Fanned: 0.2, Longest: 10}
	l, err := workload.NewLoad(m, o.seed, standardRate, r.doors(), clients)
	if err != nil {
		return "", nil, err
	}
	defer l.Close()
	starting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l.Run(starting, ctx)
	l.Wait()
	r.stop()
	d, err := dump(ctx, o.program, o.dir, r.url(), nil)
	return r.sqliteFile(), d.Runs, err
}

// damage makes a copy with flipped bits, pages that are empty or swapped, or a missing end.
func damage(sound, dir string, random *rand.Rand) (what string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	data, err := os.ReadFile(sound)
	if err != nil {
		return "", err
	}
	const page = 4096
	switch random.IntN(4) {
	case 0:
		n := 1 + random.IntN(64)
		for range n {
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		}
		what = fmt.Sprintf("%d bits turned", n)
	case 1:
		n := 1 + random.IntN(8)
		for range n {
			at := random.IntN(len(data)/page) * page
			clear(data[at:min(at+page, len(data))])
		}
		what = fmt.Sprintf("%d pages empty", n)
	case 2:
		data = data[:1+random.IntN(len(data)-1)] // an empty file is a new database
		what = fmt.Sprintf("cut to %d bytes", len(data))
	case 3:
		pages := len(data) / page
		one := random.IntN(pages)
		other := (one + 1 + random.IntN(pages-1)) % pages
		a, b := data[one*page:][:page], data[other*page:][:page]
		moved := bytes.Clone(a)
		copy(a, b)
		copy(b, moved)
		what = fmt.Sprintf("pages %d and %d exchanged", one+1, other+1)
	}
	return what, os.WriteFile(filepath.Join(dir, "kagzi.db"), data, 0o600)
}

// askDamaged starts a server on a damaged file and compares everything that it says about the runs
// with what is known.
func askDamaged(ctx context.Context, o options, known []check.Run) (fate, string, error) {
	r, err := one(ctx, o, func(s *shape) { s.Ends = []fixture.Ending{fixture.ExitDamaged} })
	defer r.close()
	if err != nil {
		return notServed(r, err)
	}
	s := r.servers[0]
	l, err := workload.NewLoad(workload.Standard, o.seed, standardRate, r.doors(), 1)
	if err != nil {
		return "", "", err
	}
	defer l.Close()
	service := kagziv1.NewWorkflowServiceClient(l.Clients[0].SDK.Conn())
	came, detail := harmless, ""
	for _, want := range known {
		call, cancel := context.WithTimeout(ctx, workload.CallLimit)
		answer, err := service.GetWorkflow(call, &kagziv1.GetWorkflowRequest{RunId: want.ID})
		cancel()
		if call.Err() == context.DeadlineExceeded {
			return broken, "no answer within " + workload.CallLimit.String(), nil
		}
		if err != nil && !strings.Contains(err.Error(), "NotFound") {
			came = noticed
			if s.current().Ended() {
				break
			}
			continue
		}
		w := answer.GetWorkflow()
		if err != nil || history.Digest(w.GetInput().GetData()) != want.Input ||
			history.Digest(w.GetOutput().GetData()) != want.Output || workload.StatusName(w.Status) != want.Status {
			came, detail = wrong, fmt.Sprintf("run %s: %v, %s, input %.60q, output %.60q; want %+v", want.ID, err,
				workload.StatusName(w.GetStatus()), w.GetInput().GetData(), w.GetOutput().GetData(), want)
			break
		}
	}
	for n := range 5 {
		once, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		l.Clients[0].Start(once, l.Mix.Errand(o.seed, 1_000_000+n))
		cancel()
		if s.current().Ended() {
			break
		}
	}
	return afterAnswers(r, came, detail)
}

// afterAnswers returns the outcome of a server that has answered: a wrong answer stays wrong,
// whatever the server noticed later.
func afterAnswers(r *system, came fate, detail string) (fate, string, error) {
	life := r.servers[0].current()
	switch {
	case came == wrong:
		return came, detail, nil
	case life.Ended():
		return notServed(r, nil)
	case strings.Contains(life.Out.Tail(), "panic"):
		return broken, life.Out.Tail(), nil
	}
	return came, detail, nil
}

// notServed distinguishes a server that refused a file properly from one that did not.
func notServed(r *system, err error) (fate, string, error) {
	if len(r.servers) == 0 || r.servers[0].current() == nil {
		return "", "", err
	}
	life := r.servers[0].current()
	if !life.Ended() {
		return broken, "it neither serves nor ends", nil
	}
	if life.Ending() != fixture.ExitDamaged || !strings.Contains(life.Out.Tail(), "kagzi db restore") {
		return broken, fmt.Sprintf("%s, want exit code %d and what to do: %s", life.Cmd.ProcessState,
			fixture.ExitDamaged, life.Out.Tail()), nil
	}
	if err != nil {
		return refusedStart, "", nil
	}
	return noticed, "", nil
}
