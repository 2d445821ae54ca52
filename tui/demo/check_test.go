package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// did returns an attempt that ended with a result; it started ms after the epoch.
func did(name string, ms int, output string) attempt {
	at := epoch.Add(time.Duration(ms) * time.Millisecond)
	return attempt{name: name, kind: "function", status: "COMPLETED", number: 1, output: output, started: at,
		finished: at.Add(200 * time.Millisecond)}
}

func ran(steps ...string) (all []execution) {
	for _, s := range steps {
		all = append(all, execution{Step: s, Worker: "worker-1", PID: 1})
	}
	return all
}

func sagaFacts() facts {
	ship := did("ship-parcel", 2, "")
	ship.status, ship.errType = "FAILED", "no_courier"
	return facts{
		status: kagzi.StatusCompleted, output: json.RawMessage(
			`{"shipped":false,"reason":"no_courier","undone":["refund-card","release-stock"]}`),
		steps: []attempt{did("reserve-stock", 0, `""`), did("charge-card", 1, `""`), ship, did("refund-card", 3, `""`),
			did("release-stock", 4, `""`)},
		ledger: ran("reserve-stock", "charge-card", "ship-parcel", "refund-card", "release-stock"),
	}
}

func fanFacts() facts {
	f := facts{status: kagzi.StatusCompleted, output: json.RawMessage(`42925`)}
	for n := 1; n <= fanWidth; n++ {
		name := fmt.Sprintf("square-%02d", n)
		f.steps = append(f.steps, did(name, n, fmt.Sprint(n*n)))
		f.ledger = append(f.ledger, ran(name)...)
	}
	return f
}

func flakyFacts() facts {
	f := facts{status: kagzi.StatusCompleted, output: json.RawMessage(`3`),
		ledger: ran("call-service", "call-service", "call-service")}
	for i, ms := range []int{0, 260, 770} {
		a := did("call-service", ms, "")
		a.number = i + 1
		if i < flakyFails {
			a.status, a.errText = "FAILED", fmt.Sprintf("service out of order, call %d", i+1)
		}
		f.steps = append(f.steps, a)
	}
	return f
}

func napFacts() facts {
	nap := did("nap", 1, "")
	nap.kind, nap.wakeUp = "sleep", epoch.Add(3*time.Second)
	return facts{
		status: kagzi.StatusCompleted, output: json.RawMessage(`"rested"`), waits: []string{waitForNap},
		took:  3010 * time.Millisecond,
		steps: []attempt{did("before", 0, `""`), nap, did("after", 3002, `""`)}, ledger: ran("before", "after"),
	}
}

func tenFacts() facts {
	f := facts{status: kagzi.StatusCompleted, killed: &kill{worker: "worker-2"}}
	var stamps []stamp
	for n := 1; n <= tenSteps; n++ {
		s := stamp{Worker: "worker-2", PID: 22}
		if n > 5 {
			s = stamp{Worker: "worker-3", PID: 33}
		}
		stamps = append(stamps, s)
		data, _ := json.Marshal(s)
		step := did(stepName(n), n*200, string(data))
		f.steps = append(f.steps, step)
		if n <= 5 {
			f.killed.recorded = append(f.killed.recorded, step)
		}
		if n == 6 {
			f.ledger = append(f.ledger, execution{stepName(n), "worker-2", 22})
		}
		f.ledger = append(f.ledger, execution{stepName(n), s.Worker, s.PID})
	}
	f.output, _ = json.Marshal(stamps)
	return f
}

// clone isolates a case's changes from the others.
func (f facts) clone() facts {
	f.steps, f.ledger = slices.Clone(f.steps), slices.Clone(f.ledger)
	if f.killed != nil {
		k := *f.killed
		f.killed = &k
	}
	if f.schedule != nil {
		s := *f.schedule
		f.schedule = &s
	}
	f.signals, f.waits, f.runs = slices.Clone(f.signals), slices.Clone(f.waits), slices.Clone(f.runs)
	for i := range f.runs {
		f.runs[i] = f.runs[i].clone()
	}
	return f
}

func TestCorrectFactsPass(t *testing.T) {
	for name, c := range map[string]struct {
		facts facts
		check func(*check) string
	}{
		"saga": {sagaFacts(), checkSaga}, "fan-out": {fanFacts(), checkFanOut}, "flaky": {flakyFacts(), checkFlaky},
		"nap": {napFacts(), checkNap}, "kill": {tenFacts(), checkTenSteps},
		"approval": {approvalFacts(), checkApproval}, "schedule": {scheduleFacts(), checkSchedule},
	} {
		k := check{facts: c.facts}
		if note := c.check(&k); len(k.differs) > 0 || note == "" {
			t.Errorf("%s: differs %q, note %q", name, k.differs, note)
		}
	}
}

func TestTheStepInFlightAtTheKillMayAlsoRunOnce(t *testing.T) {
	f := tenFacts()
	f.ledger = slices.Delete(f.ledger, 5, 6)
	k := check{facts: f}
	if note := checkTenSteps(&k); len(k.differs) > 0 || !strings.Contains(note, "in flight once") {
		t.Errorf("differs %q, note %q", k.differs, note)
	}
}

// tampering is a wrong fact that a check must find.
type tampering struct {
	name   string
	facts  facts
	check  func(*check) string
	tamper func(f *facts)
	says   string
}

func TestTamperedFactsAreFound(t *testing.T) {
	for _, c := range slices.Concat([]tampering{
		{"saga: the run failed", sagaFacts(), checkSaga, func(f *facts) {
			f.status, f.err = kagzi.StatusFailed, "boom"
		}, "boom"},
		{"saga: the parcel was shipped", sagaFacts(), checkSaga, func(f *facts) {
			f.output = json.RawMessage(`{"shipped":true}`)
		}, "result is"},
		{"saga: undone in the order done", sagaFacts(), checkSaga, func(f *facts) {
			f.steps[3], f.steps[4] = f.steps[4], f.steps[3]
		}, "recorded steps"},
		{"saga: a compensation ran twice", sagaFacts(), checkSaga, func(f *facts) {
			f.ledger = append(f.ledger, ran("release-stock")...)
		}, "ran as"},
		{"saga: the failure lost its type", sagaFacts(), checkSaga, func(f *facts) {
			f.steps[2].errType = ""
		}, "no_courier"},
		{"saga: not JSON", sagaFacts(), checkSaga, func(f *facts) { f.output = json.RawMessage(`{`) }, "result"},

		{"fan-out: a wrong sum", fanFacts(), checkFanOut, func(f *facts) {
			f.output = json.RawMessage(`42924`)
		}, "want 42925"},
		{"fan-out: a step is missing", fanFacts(), checkFanOut, func(f *facts) { f.steps = f.steps[:49] }, "square-50"},
		{"fan-out: a step is recorded twice", fanFacts(), checkFanOut, func(f *facts) {
			f.steps = append(f.steps, f.steps[0])
		}, "square-01"},
		{"fan-out: a step ran twice", fanFacts(), checkFanOut, func(f *facts) {
			f.ledger = append(f.ledger, ran("square-07")...)
		}, "ran 2 times"},
		{"fan-out: one after the other", fanFacts(), checkFanOut, func(f *facts) {
			for i := range f.steps {
				f.steps[i].started = epoch.Add(time.Duration(i) * time.Second)
				f.steps[i].finished = f.steps[i].started.Add(time.Millisecond)
			}
		}, "same time"},

		{"flaky: one call too few", flakyFacts(), checkFlaky, func(f *facts) {
			f.steps, f.ledger = f.steps[1:], f.ledger[1:]
		}, "ran as"},
		{"flaky: an attempt is not recorded", flakyFacts(), checkFlaky, func(f *facts) {
			f.steps = f.steps[1:]
		}, "2 attempts"},
		{"flaky: a failure counts as success", flakyFacts(), checkFlaky, func(f *facts) {
			f.steps[1].status = "COMPLETED"
		}, "attempt 2"},
		{"flaky: an error text is lost", flakyFacts(), checkFlaky, func(f *facts) {
			f.steps[0].errText = ""
		}, "attempt 1 failed with"},
		{"flaky: no delay", flakyFacts(), checkFlaky, func(f *facts) {
			f.steps[2].started = f.steps[1].started
		}, "want at least 500ms"},

		{"nap: too short", napFacts(), checkNap, func(f *facts) { f.took = 2 * time.Second }, "took 2s"},
		{"nap: never parked", napFacts(), checkNap, func(f *facts) { f.waits = nil }, "SLEEPING"},
		{"nap: woken early", napFacts(), checkNap, func(f *facts) {
			f.steps[2].started = epoch.Add(time.Second)
		}, "after the sleep's end"},
		{"nap: woken late", napFacts(), checkNap, func(f *facts) {
			f.steps[2].started = epoch.Add(time.Minute)
		}, "after the sleep's end"},
		{"nap: a step ran again", napFacts(), checkNap, func(f *facts) {
			f.ledger = ran("before", "before", "after")
		}, "ran as"},

		{"kill: nobody was killed", tenFacts(), checkTenSteps, func(f *facts) {
			f.killed = nil
		}, "no worker was killed"},
		{"kill: a recorded step ran again", tenFacts(), checkTenSteps, func(f *facts) {
			f.ledger = append(f.ledger, ran("step-05")...)
		}, "step-05 ran 2 times"},
		{"kill: two steps ran twice", tenFacts(), checkTenSteps, func(f *facts) {
			f.ledger = append(f.ledger, ran("step-07")...)
		}, "step-07 ran 2 times"},
		{"kill: a step ran three times", tenFacts(), checkTenSteps, func(f *facts) {
			f.ledger = append(f.ledger, ran("step-06")...)
		}, "step-06 ran 3 times"},
		{"kill: a step never ran", tenFacts(), checkTenSteps, func(f *facts) {
			f.ledger = f.ledger[:len(f.ledger)-1]
		}, "step-10 ran 0 times"},
		{"kill: a recorded result changed", tenFacts(), checkTenSteps, func(f *facts) {
			f.killed.recorded = slices.Clone(f.killed.recorded)
			f.killed.recorded[0].output = `{"worker":"worker-2","pid":99}`
		}, "recorded result of step step-01"},
		{"kill: a step is not recorded", tenFacts(), checkTenSteps, func(f *facts) {
			f.steps = f.steps[:9]
		}, "step-10 is not recorded"},
		{"kill: a step has failed", tenFacts(), checkTenSteps, func(f *facts) {
			f.steps[9].status = "FAILED"
		}, "step-10 is FAILED"},
		{"kill: the caller got other stamps", tenFacts(), checkTenSteps, func(f *facts) {
			f.output = json.RawMessage(`[]`)
		}, "result is []"},
		{"kill: the killed worker did all", tenFacts(), checkTenSteps, func(f *facts) {
			f.killed.worker = "worker-9"
		}, "of the killed worker"},
	}, approvalTamperings(), scheduleTamperings()) {
		t.Run(c.name, func(t *testing.T) {
			k := check{facts: c.facts.clone()}
			c.tamper(&k.facts)
			c.check(&k)
			if !strings.Contains(strings.Join(k.differs, "\n"), c.says) {
				t.Errorf("differs %q, want one that says %q", k.differs, c.says)
			}
		})
	}
}

func TestOneWrongResultMakesTheDemoFail(t *testing.T) {
	right, wrong := verdict{title: "nap"}, verdict{title: "saga", differs: []string{"status is \x1b[31mFAILED"}}
	if err := judge([]verdict{right, right}); err != nil {
		t.Errorf("judge of right results: %v", err)
	}
	if err := judge([]verdict{right, wrong}); err == nil || !strings.Contains(err.Error(), "1 of 2") {
		t.Errorf("judge = %v, want an error that counts 1 of 2", err)
	}
	var out strings.Builder
	summarize(screen{out: &out}, []verdict{right, wrong}, time.Second)
	if got := out.String(); !strings.Contains(got, `differs  saga: status is \x1b[31mFAILED`) ||
		!strings.Contains(got, "1 of 2 results are correct") {
		t.Errorf("summary:\n%s", got)
	}
}
