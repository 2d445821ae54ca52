package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/scenario"
)

// inShop returns options for a shop; w is that shop once the bubble runs.
func inShop(w **shop, open string) func() Options {
	return func() Options {
		*w = newShop()
		return Options{API: *w, Open: open, Now: (*w).Now}
	}
}

func TestNoKeyMeansTwoThings(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 120, 32, func(r *fixture) {
		for _, command := range everyView(w) {
			if err := r.app.command(command); err != nil {
				t.Errorf(":%s: %v", command, err)
				continue
			}
			r.settle()
			own := r.app.trails.top().Actions()
			keys, names := map[string]string{}, map[string]string{}
			for _, action := range slices.Concat(own, r.app.shared(r.app.trails.top()), r.app.global()) {
				if action.Help == "" || action.Run == nil {
					t.Errorf(":%s: the action %q has no help or does nothing", command, action.Name)
				}
				for _, name := range append(action.Aliases, action.Name) {
					if other, taken := names[name]; taken && !slices.Contains(own, action) {
						t.Errorf(":%s: %q is the name of %q and of %q", command, name, other, action.Name)
					}
					names[name] = action.Name
				}
				for _, key := range action.Keys {
					other, taken := keys[key]
					if taken && !(command != "runs" && strings.Contains("0123456789-", key)) {
						// a run's tabs are on the digits, its zoom on + and -
						t.Errorf(":%s: the key %q is of %q and of %q", command, key, other, action.Name)
					}
					keys[key] = action.Name
				}
			}
		}
	})
}

// everyView returns a command for each view.
func everyView(w *shop) []string {
	commands := []string{"overview", "runs", "workers", "schedules", "queues", "namespaces", "server", "events",
		"keys", "audit", "audit --keys"}
	return append(commands, "run "+firstRun(w), "worker "+firstWorker(w), "schedule "+firstSchedule(w))
}

func TestEscapeGoesBackToTheSamePlace(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs status:completed"), 100, 20, func(r *fixture) {
		r.press("pgdn", "j", "j", "j")
		before := r.draw()
		p := r.app.trails.top()
		r.press("enter")
		if r.app.trails.top() == p {
			t.Fatal("enter opened nothing")
		}
		r.press("esc")
		if after := r.draw(); after != before {
			t.Errorf("after esc the screen is\n%s\nwant\n%s", after, before)
		}
		r.press("7")
		r.shows("queues")
		r.press("-")
		if after := r.draw(); after != before {
			t.Errorf("after - the screen is\n%s\nwant\n%s", after, before)
		}
	})
}

func TestAPageThatOneComesBackToGoesOn(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "queues"), 100, 20, func(r *fixture) {
		for _, there := range [][]string{{"enter", "esc"}, {"6", "-"}, {"6", "["}} {
			before := r.draw()
			r.press(there[0])
			w.Advance(10 * time.Minute)
			r.pass(time.Second)
			r.press(there[1])
			r.pass(2 * time.Second)
			if r.shows("Queues"); r.draw() == before {
				t.Errorf("after %v nothing has changed within ten minutes:\n%s", there, before)
			}
		}
	})
}

func TestNewRunsComeInAboveWithoutMovingTheCursor(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 20, func(r *fixture) {
		r.press("j", "j", "j", "j")
		p := r.app.trails.top().(*runsPage)
		id, _ := p.tab.Selected()
		for range 60 {
			w.Advance(500 * time.Millisecond)
			r.pass(500 * time.Millisecond)
			if now, _ := p.tab.Selected(); now != id {
				t.Fatalf("the cursor went from %s to %s", id, now)
			}
		}
		if p.runs.Len() == 0 || p.tab.Index() <= 4 {
			t.Errorf("nothing came in above within 30 s: the cursor is on row %d", p.tab.Index())
		}
	})
}

func TestFrozenNothingChangesUntilItIsLetGoOn(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 20, func(r *fixture) {
		r.press("p")
		r.shows("frozen")
		p := r.app.trails.top().(*runsPage)
		before := p.runs.Len()
		newest, _ := p.runs.Row(0)
		w.Advance(30 * time.Second)
		r.pass(3 * time.Second)
		if now, _ := p.runs.Row(0); now.GetRunId() != newest.GetRunId() || p.runs.Len() != before {
			t.Error("a frozen list has changed")
		}
		r.press("p")
		r.pass(3 * time.Second)
		if now, _ := p.runs.Row(0); now.GetRunId() == newest.GetRunId() {
			t.Error("a list that goes on has not caught up")
		}
		r.shows("live")
	})
}

func TestCommandsAreCompletedRememberedAndCorrected(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 100, 24, func(r *fixture) {
		r.press(":")
		r.enter("queu")
		r.press("tab", "enter")
		r.shows("Queues")
		r.press(":")
		r.enter("rnus")
		r.press("enter")
		r.shows("did you mean runs?")
		r.press("esc", ":", "up", "enter")
		r.shows("Queues")
		r.press(":")
		r.enter("runs status:failed")
		r.press("enter")
		r.shows("Runs", "status:failed")
		r.press(":")
		r.enter("filter save broken")
		r.press("enter")
		r.press("esc")
		r.press(":")
		r.enter("filter broken")
		r.press("enter")
		r.shows("status:failed")
	})
}

func TestWhatCanBeDoneIsInTheHelpAndWhatChangesIsGoneWhenLookingOnly(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		t.Run(fmt.Sprint("read-only ", readOnly), func(t *testing.T) {
			options := func() Options {
				w := newShop()
				return Options{API: w, Open: "runs", Now: w.Now, ReadOnly: readOnly}
			}
			onFixture(t, options, 120, 60, func(r *fixture) {
				for _, command := range []string{"runs", "workers", "schedules", "namespaces"} {
					if err := r.app.command(command); err != nil {
						t.Fatal(err)
					}
					changes := 0
					for _, action := range r.app.actions() {
						if action.Changes {
							changes++
						}
					}
					if readOnly != (changes == 0) {
						t.Errorf(":%s: %d actions change something, looking only is %v", command, changes, readOnly)
					}
				}
				if err := r.app.command("runs"); err != nil {
					t.Fatal(err)
				}
				r.press("?")
				if readOnly {
					r.lacks(":cancel", ":terminate")
				} else {
					r.shows(":cancel", ":terminate")
				}
			})
		})
	}
}

func TestALostConnectionCountsDownToTheNextTry(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 80, 24, func(r *fixture) {
		if pace := r.app.pace(); pace != slowPace {
			t.Errorf("the pace is %s while connected, want %s", pace, slowPace)
		}
		w.Down(errGone)
		r.pass(3 * time.Second)
		r.shows("reconnecting in")
		if pace := r.app.pace(); pace != time.Second {
			t.Errorf("the pace is %s while the screen counts down, want 1s", pace)
		}
	})
}

func TestWhatCanBeDoneAboutAConnectionDependsOnWhatIsWrong(t *testing.T) {
	const start = "Start one with"
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"nobody is there": {errGone, []string{"no server answers",
			"Check that a server runs there and is reachable from here"}},
		"no key": {status.Error(codes.Unauthenticated,
			"an API key is needed: give --api-key-file or KAGZI_API_KEY, or in other clients"),
			[]string{"Cannot show this: an API key is needed: give a key with --api-key-file",
				"Give a key with:  kagzi tui --address db:1 --api-key-file FILE"}},
		"too weak a key": {status.Error(codes.PermissionDenied, "the API key may not read here"),
			[]string{"may not read here", "kagzi doctor --address db:1"}},
		"another authority": {status.Error(codes.Unavailable,
			`connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`),
			[]string{"Cannot show this: the certificate of the server is signed by an authority", "--tls-ca ca.crt"}},
		"no TLS here": {status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: EOF"`),
			[]string{"it may speak TLS", "Encrypt the connection with --tls"}},
		"a stop": {status.Error(codes.Unavailable, "the server is stopping; try again"),
			[]string{"the server is stopping", "kagzi doctor --address db:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			options := func() Options {
				w := newShop()
				w.Down(c.err)
				return Options{API: w, Open: "overview", Now: w.Now, Address: "db:1"}
			}
			onFixture(t, options, 100, 24, func(r *fixture) {
				r.shows(c.want...)
				r.lacks(start)
			})
		})
	}
	for address, want := range map[string]string{
		"": "Start one with:  kagzi server  ", "127.0.0.1:7": "Start one with:  kagzi server --listen 127.0.0.1:7"} {
		t.Run("nobody is there at "+address, func(t *testing.T) {
			options := func() Options {
				w := newShop()
				w.Down(errGone)
				return Options{API: w, Open: "overview", Now: w.Now, Address: address}
			}
			onFixture(t, options, 100, 24, func(r *fixture) { r.shows(want) })
		})
	}
}

func TestHelpStaysInItsColumn(t *testing.T) {
	var w *shop
	for _, e := range views {
		if e.args != "" && e.args != filterArgs {
			continue
		}
		onFixture(t, inShop(&w, e.name), 120, 40, func(r *fixture) {
			for _, action := range r.app.actions() {
				if render.Width(action.Help) >= helpText {
					t.Errorf("%s: the help of %s runs into its command: %q", e.name, action.Name, action.Help)
				}
			}
		})
	}
	onFixture(t, inShop(&w, "runs"), 60, 40, func(r *fixture) {
		r.press("?")
		r.shows("load more runs for a local filter")
		for _, line := range strings.Split(r.draw(), "\n") {
			if _, rest, found := strings.Cut(line, "│  :cancel"); found {
				t.Errorf("help goes on below its keys: %q", rest)
			}
		}
	})
}

func TestHelpIsInColumnsInASmallWindow(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 80, 24, func(r *fixture) {
		r.press("?")
		r.shows("ctrl-y          copy the row under the cursor as JSON", "\u2502                  :copy-json")
		for _, line := range strings.Split(r.draw(), "\n") {
			if _, rest, found := strings.Cut(line, "\u2502  "); found && strings.HasPrefix(rest, "the cursor") {
				t.Errorf("help goes on below its keys: %q", rest)
			}
		}
	})
}

func TestACommandWithMoreThanItTakesDoesNothing(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs status:sleeping"), 120, 24, func(r *fixture) {
		for command, why := range map[string]string{
			"overview now":        `overview takes no argument, got "now"`,
			"pulse now":           `overview takes no argument, got "now"`,
			"mark all":            `mark takes no argument, got "all"`,
			"pin order-1 order-2": `pin takes no argument, got "order-1 order-2"`,
			"terminate all":       `terminate takes no argument, got "all"`,
			"close now":           `close takes no argument, got "now"`,
		} {
			err := r.app.command(command)
			r.settle()
			if err == nil || err.Error() != why || r.app.layer() != nil ||
				len(r.app.trails.top().(sortable).table().Marked()) != 0 {
				t.Errorf(":%s: %v, want %s and nothing done", command, err, why)
			}
		}
	})
}

func TestAFilterInACommandKeepsItsQuotes(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "queues"), 120, 24, func(r *fixture) {
		for _, command := range []string{`runs tag.x="a b"`, `filter tag.x="a b"`, `  events   "a b"`} {
			if err := r.app.command(command); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			_, want, _ := strings.Cut(strings.TrimSpace(command), " ")
			if got := r.app.trails.top().(filtered).Filter(); got != strings.TrimSpace(want) {
				t.Errorf("after %s the filter is %s, want %s", command, got, strings.TrimSpace(want))
			}
		}
	})
}

func TestInAWindowThatIsTooSmallNoKeyDoesAnythingButQuit(t *testing.T) {
	onPiece(t, scenario.Growing, 120, 32, func(r *fixture, _ *shop, p *runPage) {
		r.press("x") // a dialog, with text to be typed into it
		before := r.draw()
		r.screen.SetSize(24, 4)
		r.shows("24x4 is too small,", "60x15 is needed.", "q quits.")
		r.press("a", "tab", "enter", "esc", "2")
		newFrame(r.app).PasteHandler()("pasted", nil)
		r.screen.SetSize(120, 32)
		if after := r.draw(); after != before {
			t.Errorf("what was pressed blindly did something:\n%s\nbefore\n%s", after, before)
		}
		r.press("esc")
		if len(r.app.layers) > 0 || r.app.quitting {
			t.Fatalf("%d layers are left after esc, quitting is %t", len(r.app.layers), r.app.quitting)
		}
		r.screen.SetSize(24, 4)
		r.press("q")
		if !r.app.quitting {
			t.Error("q does not quit")
		}
	})
}

func TestWhatTheOptionsAskForAndCannotBeHadIsToldAndNothingShown(t *testing.T) {
	for _, try := range []struct {
		name   string
		ask    func(o *Options)
		reason string // empty: it is shown
	}{
		{"a view that there is not", func(o *Options) {
			o.Open = "rums"
		}, `there is no command "rums"; did you mean runs?`},
		{"a filter that is none", func(o *Options) { o.Open = "runs status:sideways" }, "sideways"},
		{"a theme that there is not", func(o *Options) { o.Theme = "pink" }, `there is no theme "pink"; there are `},
		{"a theme of the settings that there is not", func(o *Options) { o.Config.Theme = "pink" }, ""},
	} {
		t.Run(try.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				screen := &simulated{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}
				if err := screen.Init(); err != nil {
					t.Fatal(err)
				}
				w := newShop()
				o := Options{API: w, Open: "runs", Screen: screen, Now: w.Now, Lookup: func(string) (string, bool) {
					return "", false
				}}
				try.ask(&o)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, cancel)
				err := Run(ctx, o)
				var wrong *OptionError
				switch {
				case try.reason == "" && (err != nil || ctx.Err() == nil):
					t.Errorf("Run returned %v before it was told to", err)
				case try.reason != "" && (!errors.As(err, &wrong) || !strings.Contains(wrong.Error(), try.reason) ||
					ctx.Err() != nil):
					t.Errorf("Run returned %v, want an option error at once that says %q", err, try.reason)
				case screen.finished == 0:
					t.Error("the terminal was not given back")
				}
				cancel()
			})
		})
	}
}
