//go:build linux

package main

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// message encodes a message of Postgres's protocol.
func message(kind byte, parts ...string) []byte {
	return rawMessage(kind, []byte(strings.Join(parts, "\x00")+"\x00"))
}

func rawMessage(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// executes binds and executes a prepared statement.
func executes(name string) []byte {
	return slices.Concat(message('B', "", name), message('E', ""))
}

// row encodes columns that are null or not.
func row(columns ...bool) []byte {
	body := binary.BigEndian.AppendUint16(nil, uint16(len(columns)))
	for _, there := range columns {
		if there {
			body = append(binary.BigEndian.AppendUint32(body, 2), 0, 7)
		} else {
			body = binary.BigEndian.AppendUint32(body, ^uint32(0))
		}
	}
	return rawMessage('D', body)
}

// ours returns the text of one of the store's statements.
func ours(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "backends", "postgres", "sql", name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestACommitIsKnownAndWhetherItCounted(t *testing.T) {
	startup := append(binary.BigEndian.AppendUint32(nil, 8), 0, 3, 0, 0)
	sent := slices.Concat(startup, message('p', "password"))
	for _, name := range []string{"insert_run", "complete_new_step", "complete_run", "claim", "claim_chosen", "heartbeats", "lock_runs",
		"check_started", "get_history"} {
		sent = slices.Concat(sent, message('P', name, ours(t, name), ""))
	}
	sent = slices.Concat(sent, message('P', "begin", "begin", ""), message('P', "commit", "commit", ""),
		message('P', "select", "select 'commit', 'insert into runs'", ""), message('S'))
	ready := func(status byte) []byte { return rawMessage('Z', []byte{status}) }
	prepared := slices.Concat(message('R', "", "", ""), message('1'), ready('I'))
	sync := message('S')
	for name, test := range map[string]struct {
		asked, answered []byte
		kinds, counted  string
	}{
		"a group of starts": {slices.Concat(executes("insert_run"), sync),
			slices.Concat(message('C', "INSERT 0 3"), ready('I')), "starts", "starts"},
		"steps and ends": {slices.Concat(executes("lock_runs"), executes("complete_new_step"),
			executes("complete_run"), sync),
			slices.Concat(message('C', "SELECT 1"), message('C', "INSERT 0 1"), message('C', "UPDATE 2"), ready('I')),
			"steps ends", "ends steps"},
		"steps, and an end that did not fit": {slices.Concat(
			executes("complete_new_step"), executes("complete_run"), sync),
			slices.Concat(message('C', "INSERT 0 1"), message('C', "UPDATE 0"), ready('I')), "steps ends", "steps"},
		"a group that failed": {slices.Concat(executes("complete_new_step"), executes("insert_run"), sync),
			slices.Concat(message('C', "INSERT 0 1"), message('E', "SERROR", ""), ready('I')), "steps starts", ""},
		"a claim": {slices.Concat(executes("claim"), sync),
			slices.Concat(row(true, true, true, true, true, false, false, true), message('C', "SELECT 1"), ready('I')),
			"claims", "claims"},
		"a claim that found nothing": {slices.Concat(executes("claim"), sync),
			slices.Concat(row(true, true, true, true, true, false, false, false), message('C', "SELECT 1"), ready('I')),
			"claims", ""},
		"a claim of chosen runs": {slices.Concat(executes("begin"), executes("claim_chosen"), executes("commit"), sync),
			slices.Concat(message('C', "BEGIN"), row(true, true, true, true, true, true, true, false),
				message('C', "SELECT 1"), message('C', "COMMIT"), ready('I')),
			"explicit claims", "claims explicit"},
		"a claim of chosen runs that others have": {slices.Concat(executes("begin"), executes("claim_chosen"),
			executes("commit"), sync),
			slices.Concat(message('C', "BEGIN"), message('C', "SELECT 0"), message('C', "COMMIT"), ready('I')),
			"explicit claims", "explicit"},
		"heartbeats": {slices.Concat(executes("heartbeats"), sync), slices.Concat(message('C', "UPDATE 4"), ready('I')),
			"others", "others"},
		"a transaction in one batch": {slices.Concat(
			executes("begin"), executes("complete_new_step"), executes("commit"), sync),
			slices.Concat(message('C', "BEGIN"), message('C', "INSERT 0 1"), message('C', "COMMIT"), ready('I')),
			"explicit", "explicit"},
		"a transaction that was rolled back": {slices.Concat(executes("begin"), executes("commit"), sync),
			slices.Concat(message('C', "BEGIN"), message('C', "ROLLBACK"), ready('I')), "explicit", ""},
		"a simple commit": {message('Q', "commit"),
			slices.Concat(message('C', "COMMIT"), ready('I')), "explicit", "explicit"},
		"what reads": {slices.Concat(
			executes("select"), executes("check_started"), executes("get_history"), executes("lock_runs"), sync),
			ready('I'), "", ""},
		"what is not yet at an end": {executes("insert_run"), nil, "", ""},
		"a part of an explicit transaction": {slices.Concat(executes("begin"), executes("insert_run"), sync),
			ready('T'), "", ""},
		"a statement of the name of another": {slices.Concat(message('P', "s3", "insert into runs", ""), sync),
			ready('I'), "", ""},
	} {
		for size := 1; size < len(test.asked)+1; size += 7 {
			var kinds, counted []string
			w := newCommitWatch(func(k []string) fixture.Decision { kinds = k; return fixture.Cut }, func(k []string) {
				counted = k
			})
			w.pass(true, sent)
			w.pass(false, prepared)
			v := max(w.pass(true, test.asked[:min(size, len(test.asked))]),
				w.pass(true, test.asked[min(size, len(test.asked)):]))
			if v != fixture.Pass {
				t.Fatalf("%s: what is asked gets verdict %d, want that it passes", name, v)
			}
			over := fixture.Pass
			for i := range test.answered { // byte by byte
				if over = w.pass(false, test.answered[i:i+1]); over != fixture.Pass && test.kinds == "" ||
					over == fixture.Pass && test.kinds != "" {
					t.Fatalf("%s: verdict %d about byte %d of the answer", name, over, i)
				}
			}
			if test.kinds != "" && over != fixture.Cut {
				t.Errorf("%s: verdict %d at the end of the answer, want that it is cut", name, over)
			}
			if got := strings.Join(kinds, " "); got != test.kinds {
				t.Errorf("%s, in pieces of %d bytes and the rest: commits %q, want %q", name, size, got, test.kinds)
			}
			if got := strings.Join(counted, " "); got != test.counted {
				t.Errorf("%s: %q counted, want %q", name, got, test.counted)
			}
		}
	}
}

func TestAnExplicitTransactionOfSeveralBatches(t *testing.T) {
	var kinds []string
	w := newCommitWatch(func(k []string) fixture.Decision { kinds = append(kinds, k...); return fixture.Pass }, nil)
	startup := append(binary.BigEndian.AppendUint32(nil, 8), 0, 3, 0, 0)
	idle, inside := rawMessage('Z', []byte{'I'}), rawMessage('Z', []byte{'T'})
	begin, insert, commit := message('P', "b", "begin"), message('P', "i", "insert into runs (a) values (1)"),
		message('P', "c", "commit")
	for _, step := range []struct {
		up   bool
		data []byte
		want string
	}{
		{true, slices.Concat(startup, begin, insert, commit, message('S')), ""}, {false, idle, ""},
		{true, slices.Concat(executes("b"), executes("i"), message('S')), ""}, {false, inside, ""},
		{true, slices.Concat(executes("i"), message('S')), ""}, {false, inside, ""},
		{true, slices.Concat(executes("c"), message('S')), commitExplicit}, {false, idle, ""},
		{true, slices.Concat(executes("i"), message('S')), commitStarts}, {false, idle, ""},
	} {
		kinds = nil
		if v := w.pass(step.up, step.data); v != fixture.Pass || strings.Join(kinds, " ") != step.want {
			t.Errorf("%q: verdict %d, commits %q, want %q", step.data, v, kinds, step.want)
		}
	}
}

// TestDecisionsOfAWatch lets the watch of a proxy's connection make one decision after the other about
// echoed data.
func TestDecisionsOfAWatch(t *testing.T) {
	for name, test := range map[string]struct {
		up, down fixture.Decision
		back     string
		broken   bool
	}{
		"pass":            {fixture.Pass, fixture.Pass, "x", false},
		"drop a question": {fixture.Withhold, fixture.Pass, "", false},
		"drop an answer":  {fixture.Pass, fixture.Withhold, "", false},
		"cut an answer":   {fixture.Pass, fixture.Cut, "", true},
		"cut at once":     {fixture.PassCut, fixture.Pass, "", true},
	} {
		p, err := fixture.NewProxy("tcp", echo(t))
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan struct{}, 4) // of each piece
		p.See(func() fixture.Watch {
			return func(up bool, data []byte) fixture.Decision {
				defer func() { seen <- struct{}{} }()
				switch {
				case string(data) != "x":
					return fixture.Pass
				case up:
					return test.up
				}
				return test.down
			}
		})
		conn, err := net.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		got, broken := "", false
		for _, say := range []string{"x", "."} {
			if _, err := conn.Write([]byte(say)); err != nil {
				broken = true
				break
			}
			<-seen
			if test.down == fixture.Withhold && say == "x" {
				<-seen // so that the next one is a separate piece
			}
			for say == "." || test.back != "" || test.broken {
				piece := make([]byte, 1)
				if _, err := conn.Read(piece); err != nil {
					broken = true
					break
				}
				if string(piece) == "." {
					break
				}
				got += string(piece)
				if say == "x" {
					break
				}
			}
		}
		if got != test.back || broken != test.broken {
			t.Errorf("%s: %q came back, broken %t, want %q and %t", name, got, broken, test.back, test.broken)
		}
		conn.Close()
		p.Close()
	}
}

func TestSomeCommitsOfEachKindMustBeCutOff(t *testing.T) {
	cuts := &torture{system: &system{random: newRandom(1)}}
	if v := cuts.cutting([]string{commitEnds}); v != fixture.Cut {
		t.Errorf("about the first of its kind: verdict %d, want that it is cut off", v)
	}
	claims := map[fixture.Decision]bool{}
	for range 200 {
		claims[cuts.cutting([]string{commitClaims})] = true
	}
	if !claims[fixture.Cut] || !claims[fixture.Pass] {
		t.Errorf("of the first plain claims the verdicts were %v, want some that pass and some that are cut off", claims)
	}
	for range leastCuts {
		cuts.cuts.note(commitKinds)
	}
	if got := eachKindCut(cuts); got != nil {
		t.Errorf("some of each were cut off: %q is missing", got)
	}
	cuts.cuts.of[commitEnds] = leastCuts - 1
	if got := eachKindCut(cuts); len(got) != 1 || !strings.Contains(got[0], commitEnds) {
		t.Errorf("hardly an end was cut off: %q is missing", got)
	}
	seen := map[fixture.Decision]bool{}
	for range 200 {
		seen[cuts.cutting([]string{commitOthers})] = true
	}
	if !seen[fixture.Pass] || !seen[fixture.Cut] || !seen[fixture.PassCut] {
		t.Errorf("of many commits the verdicts were %v, want some that pass, some that are cut off, some at once", seen)
	}
}
