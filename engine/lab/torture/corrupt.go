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

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// copiesAtFullScale is how many damaged copies are tried at scale 1.
const copiesAtFullScale = 500

// corrupt is F-48: a file with runs that are known is damaged in many ways; what a server then answers has to be true, or an error.
func corrupt(ctx context.Context, o options) (*report, error) {
	sound, known, err := soundFile(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, errors.New("the sound file has no runs to ask for")
	}
	luck := rand.New(rand.NewPCG(o.seed, 48))
	counts := map[fate]int{}
	line := check.Line{ID: "F-48", Of: "damaged copies"}
	for n := range max(10, int(copiesAtFullScale*o.scale)) {
		one := o
		one.dir = filepath.Join(o.dir, fmt.Sprint(n))
		what, err := damage(sound, filepath.Join(one.dir, "data"), luck)
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
			continue // the copy stays for a look
		}
		if err := os.RemoveAll(one.dir); err != nil {
			return nil, err
		}
	}
	line.Note = fmt.Sprintf("; %d harmless, %d refused at the start, %d noticed later, %d wrong, %d panics, hangs or no word of what to do",
		counts[harmless], counts[refusedStart], counts[noticed], counts[wrong], counts[broken])
	r := &report{lines: []check.Line{line}}
	if counts[refusedStart]+counts[noticed] == 0 {
		r.vacuous = append(r.vacuous, "no damage was noticed")
	}
	return r, nil
}

// fate is what came of a damaged copy.
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
	m := mix{Flaky: 0.1, Fanned: 0.2, Longest: 10}
	l, err := newLoad(m, o.seed, standardRate, r.servers, clients)
	if err != nil {
		return "", nil, err
	}
	defer l.close()
	starting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l.run(starting, ctx)
	l.wait()
	r.stop()
	d, err := dump(ctx, o.program, o.dir, r.url(), nil)
	return r.sqliteFile(), d.Runs, err
}

// damage makes a copy in which bits are turned, pages are empty or in each other's place, or the end is missing.
func damage(sound, dir string, luck *rand.Rand) (what string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	data, err := os.ReadFile(sound)
	if err != nil {
		return "", err
	}
	const page = 4096
	switch luck.IntN(4) {
	case 0:
		n := 1 + luck.IntN(64)
		for range n {
			data[luck.IntN(len(data))] ^= 1 << luck.IntN(8)
		}
		what = fmt.Sprintf("%d bits turned", n)
	case 1:
		n := 1 + luck.IntN(8)
		for range n {
			at := luck.IntN(len(data)/page) * page
			clear(data[at:min(at+page, len(data))])
		}
		what = fmt.Sprintf("%d pages empty", n)
	case 2:
		data = data[:1+luck.IntN(len(data)-1)] // a file of nothing is a new database
		what = fmt.Sprintf("cut to %d bytes", len(data))
	case 3:
		pages := len(data) / page
		one := luck.IntN(pages)
		other := (one + 1 + luck.IntN(pages-1)) % pages
		a, b := data[one*page:][:page], data[other*page:][:page]
		moved := bytes.Clone(a)
		copy(a, b)
		copy(b, moved)
		what = fmt.Sprintf("pages %d and %d exchanged", one+1, other+1)
	}
	return what, os.WriteFile(filepath.Join(dir, "kagzi.db"), data, 0o600)
}

// askDamaged starts a server on a damaged file and compares all that it says of the runs with what is known.
func askDamaged(ctx context.Context, o options, known []check.Run) (fate, string, error) {
	r, err := one(ctx, o, func(s *shape) { s.Ends = []ending{exitDamaged} })
	defer r.close()
	if err != nil {
		return notServed(r, err)
	}
	s := r.servers[0]
	l, err := newLoad(standard, o.seed, standardRate, r.servers, 1)
	if err != nil {
		return "", "", err
	}
	defer l.close()
	service := kagziv1.NewWorkflowServiceClient(l.clients[0].sdk.Conn())
	came, detail := harmless, ""
	for _, want := range known {
		call, cancel := context.WithTimeout(ctx, callLimit)
		answer, err := service.GetWorkflow(call, &kagziv1.GetWorkflowRequest{RunId: want.ID})
		cancel()
		if call.Err() == context.DeadlineExceeded {
			return broken, "no answer within " + callLimit.String(), nil
		}
		if err != nil && !strings.Contains(err.Error(), "NotFound") {
			came = noticed
			if s.current().ended() {
				break
			}
			continue
		}
		w := answer.GetWorkflow()
		if err != nil || history.Digest(w.GetInput().GetData()) != want.Input || history.Digest(w.GetOutput().GetData()) != want.Output || statusName(w.Status) != want.Status {
			came, detail = wrong, fmt.Sprintf("run %s: %v, %s, input %.60q, output %.60q; want %+v", want.ID, err, statusName(w.GetStatus()), w.GetInput().GetData(), w.GetOutput().GetData(), want)
			break
		}
	}
	for n := range 5 {
		once, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		l.clients[0].start(once, l.mix.errand(o.seed, 1_000_000+n))
		cancel()
		if s.current().ended() {
			break
		}
	}
	return afterAnswers(r, came, detail)
}

// afterAnswers is what came of a server that has been asked: a wrong answer stays one, whatever the server has noticed since.
func afterAnswers(r *rig, came fate, detail string) (fate, string, error) {
	life := r.servers[0].current()
	switch {
	case came == wrong:
		return came, detail, nil
	case life.ended():
		return notServed(r, nil)
	case strings.Contains(life.out.tail(), "panic"):
		return broken, life.out.tail(), nil
	}
	return came, detail, nil
}

// notServed tells a server that refused a file in good order from one that did not.
func notServed(r *rig, err error) (fate, string, error) {
	if len(r.servers) == 0 || r.servers[0].current() == nil {
		return "", "", err
	}
	life := r.servers[0].current()
	if !life.ended() {
		return broken, "it neither serves nor ends", nil
	}
	if life.ending() != exitDamaged || !strings.Contains(life.out.tail(), "kagzi db restore") {
		return broken, fmt.Sprintf("%s, want exit code %d and what to do: %s", life.cmd.ProcessState, exitDamaged, life.out.tail()), nil
	}
	if err != nil {
		return refusedStart, "", nil
	}
	return noticed, "", nil
}
