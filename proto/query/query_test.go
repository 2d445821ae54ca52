package query

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func stamp(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }

// workers are what the queries of the tests select from.
func workers() []*kagziv1.Worker {
	return []*kagziv1.Worker{
		{WorkerId: "w1", Status: kagziv1.WorkerStatus_WORKER_STATUS_ONLINE, TaskQueue: "a", TaskQueues: []string{"a", "b"},
			Hostname: "box-1", ActiveWorkflowCount: 3, RegisteredAt: stamp(-time.Hour), Labels: map[string]string{"zone": "a"}},
		{WorkerId: "w2", Status: kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE, TaskQueue: "a", Hostname: "box-2",
			RegisteredAt: stamp(-48 * time.Hour), Labels: map[string]string{"zone": ""}},
		{WorkerId: "w3*", Status: kagziv1.WorkerStatus_WORKER_STATUS_DRAINING, TaskQueue: "c", Hostname: "mac",
			ActiveWorkflowCount: 12},
	}
}

func selected(t *testing.T, text string) string {
	t.Helper()
	q, err := Workers.Parse(text, noon)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var ids []string
	for _, w := range workers() {
		if q == nil || q.Matches(w) {
			ids = append(ids, w.WorkerId)
		}
	}
	return strings.Join(ids, " ")
}

func TestAQuerySelectsWhatItSays(t *testing.T) {
	for text, want := range map[string]string{
		"": "w1 w2 w3*", "  ": "w1 w2 w3*",
		"id = w1":                                     "w1",
		`id != "w1"`:                                  "w2 w3*",
		"host = box*":                                 "w1 w2",
		"host != 'box*'":                              "w3*",
		"host in (box-2, m*)":                         "w2 w3*",
		"host = *o*1":                                 "w1",
		`host = "*a*"`:                                "w3*",
		`host = "b\*"`:                                "",
		"host = *":                                    "w1 w2 w3*",
		`id = "\\*"`:                                  "",
		"host not in (box-2, mac)":                    "w1",
		`id = "w3\*"`:                                 "w3*",
		`id = "w\*"`:                                  "",
		"queue = b":                                   "w1",
		"queue != b":                                  "w2 w3*",
		"status = online":                             "w1",
		"status in (ONLINE, draining)":                "w1 w3*",
		"not status = online":                         "w2 w3*",
		"active > 2":                                  "w1 w3*",
		"active >= 3 and active < 12":                 "w1",
		"active in (0, 12)":                           "w2 w3*",
		"active not in (0)":                           "w1 w3*",
		"label.zone = a":                              "w1",
		`label.zone = ""`:                             "w2",
		`label."zone" = ""`:                           "w2",
		"label.zone != a":                             "w2 w3*",
		"label.none = a":                              "",
		"registered > -2h":                            "w1",
		"registered <= -1d":                           "w2",
		"registered < 2026-11-28":                     "w2",
		"registered = none":                           "w3*",
		"registered != none":                          "w1 w2",
		"not registered > -2h":                        "w2 w3*",
		"id = w1 or id = w2 and host = mac":           "w1",
		"(id = w1 or id = w2) and host = box-2":       "w2",
		"not (id = w1 or id = w2)":                    "w3*",
		"NOT id = w1 AND NOT (id = w2)":               "w3*",
		"not not id = w1":                             "w1",
		"id = w1 or id = w2 or id = 'w3\\*'":          "w1 w2 w3*",
		"registered >= 2026-11-28T11:00:00Z":          "w1",
		"registered > 2026-11-28T11:00:00Z":           "",
		"registered > +1h or registered < 1970-01-02": "",
	} {
		if got := selected(t, text); got != want {
			t.Errorf("%s selects %q, want %q", text, got, want)
		}
	}
}

func TestAnErrorNamesThePlaceAndWhatIsPossible(t *testing.T) {
	for text, want := range map[string]string{
		"colour = red":               "position 1: expected a field of workers: id, status, namespace, ",
		"id ~ x":                     "position 4: expected a field, an operator or a value, found '~'",
		"id < x":                     "position 4: expected an operator of id: =, !=, in, not in, found \"<\"",
		"registered = 2026-11-28":    "position 14: expected none, or one of <, <=, >, >= with a time, found \"2026-11-28\"",
		"registered > soon":          "position 14: expected a time such as 2026-11-20T12:00:00Z, 2026-11-20 or -24h, found ",
		"registered > 24h":           "position 14: expected a time such as",
		"active > many":              "position 10: expected a number, found \"many\"",
		"status = asleep":            "position 10: expected one of ONLINE, DRAINING, OFFLINE, found \"asleep\"",
		"status =":                   "position 9: expected a value (ONLINE, DRAINING, OFFLINE), found the end",
		"id = w1 id = w2":            "position 9: expected \"and\", \"or\" or the end, found \"id\"",
		"(id = w1":                   "position 9: expected \"and\", \"or\" or \")\", found the end",
		"id in w1":                   "position 7: expected \"(\" and values, found \"w1\"",
		"id in (w1 w2)":              "position 11: expected \",\" or \")\", found \"w2\"",
		"not":                        "position 4: expected a field of workers: ",
		"label. = x":                 "position 8: expected a key after label., found \"=\"",
		`id = "w`:                    "position 8: expected the closing \", found the end",
		"ü = x":                      "position 1: expected a field, an operator or a value, found 'ü'",
		"id = w1 and \"id\" = w":     "position 13: did you mean id? expected a field of workers: ",
		"stauts = online":            "position 1: did you mean status? expected a field of workers: ",
		"status in (online, offlin)": "position 20: did you mean OFFLINE? expected one of ONLINE, DRAINING, OFFLINE",
		"id = \xff":                  "position 6: expected UTF-8 text, found \"\\xff\"",
		strings.Repeat("(", 60):      "position 52: expected at most 50 parentheses and nots inside each other",
		strings.Repeat("not ", 60):   "position 205: expected at most 50 parentheses and nots inside each other",
		strings.Repeat(" ", 5000):    "position 1: expected at most 4096 bytes, found 5000",
		"id = a" + strings.Repeat(" or id = a", 100): "position 1001: expected at most 100 comparisons",
	} {
		_, err := Workers.Parse(text, noon)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s…", text, err, want)
		}
	}
}

func TestAQuerySaysWhatEveryItemHas(t *testing.T) {
	for text, want := range map[string]string{
		"subject_id = a": "a - -",
		"method = x and (subject_id = a and at > -1h)": "a 11:00 -",
		"subject_id = a or method = x":                 " - -",
		"not subject_id = a":                           " - -",
		"subject_id = a* and at < -1h and at <= -2h":   " - 10:00",
		`subject_id = "a\*"`:                           "a* - -",
		"at > -1h or at < -5h":                         " - -",
		"at = none and not at > -1h":                   " - -",
		"subject_id in (a)":                            " - -",
	} {
		q, err := Audit.Parse(text, noon)
		if err != nil {
			t.Fatal(err)
		}
		from, to := q.Between("at")
		shown := func(t time.Time) string {
			if t.IsZero() {
				return "-"
			}
			return t.Format("15:04")
		}
		if got := fmt.Sprint(q.Only("subject_id"), " ", shown(from), " ", shown(to)); got != want {
			t.Errorf("%s: every item has %q, want %q", text, got, want)
		}
	}
}

// model is a query built at random, with its text and what it selects, decided apart.
func model(r *rand.Rand, depth int) (string, func(*kagziv1.Worker) bool) {
	if depth > 0 && r.IntN(3) > 0 {
		a, inA := model(r, depth-1)
		switch b, inB := model(r, depth-1); r.IntN(3) {
		case 0:
			return "(" + a + ") and (" + b + ")", func(w *kagziv1.Worker) bool { return inA(w) && inB(w) }
		case 1:
			return "(" + a + ") or (" + b + ")", func(w *kagziv1.Worker) bool { return inA(w) || inB(w) }
		}
		return "not (" + a + ")", func(w *kagziv1.Worker) bool { return !inA(w) }
	}
	switch r.IntN(4) {
	case 0:
		id := []string{"w1", "w2", "box"}[r.IntN(3)]
		return "id = " + id, func(w *kagziv1.Worker) bool { return w.WorkerId == id }
	case 1:
		n := r.Int32N(14)
		return fmt.Sprint("active < ", n), func(w *kagziv1.Worker) bool { return w.ActiveWorkflowCount < n }
	case 2:
		hours := r.IntN(60)
		return fmt.Sprintf("registered >= -%dh", hours), func(w *kagziv1.Worker) bool {
			return w.RegisteredAt != nil && !w.RegisteredAt.AsTime().Before(noon.Add(-time.Duration(hours)*time.Hour))
		}
	}
	q := []string{"a", "b", "c"}[r.IntN(3)]
	return "queue in (" + q + ")", func(w *kagziv1.Worker) bool {
		return w.TaskQueue == q || slices.Contains(w.TaskQueues, q)
	}
}

func seed(t *testing.T) uint64 {
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("KAGZI_TEST_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestRandomQueriesSelectAsTheirPartsSay(t *testing.T) {
	s := seed(t)
	r := rand.New(rand.NewPCG(s, 1))
	for range 2000 {
		text, in := model(r, 4)
		q, err := Workers.Parse(text, noon)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", s, text, err)
		}
		for _, w := range workers() {
			if q.Matches(w) != in(w) {
				t.Fatalf("seed %d: %s selects %s: %v, want %v", s, text, w.WorkerId, !in(w), in(w))
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`status = online and not (label."x" in (a, 'b*') or registered > -7d)`)
	f.Add(`id = "\x41\u00e9\*"`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func() error{
			func() error { _, err := Workers.Parse(text, noon); return err },
			func() error { _, err := Keys.Parse(text, noon); return err },
		} {
			if err := parse(); err != nil && err.(*Error).Position() < 1 {
				t.Errorf("error %v has no place", err)
			}
		}
	})
}
