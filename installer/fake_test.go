package installer

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// fakeManager is a service manager in memory. It fails at the calls in failAt, numbered from 1.
type fakeManager struct {
	text    string // the registered definition
	there   bool
	phase   string
	calls   []string
	failAt  map[string]error // by call: "start", or "register 2" for the second one
	counted map[string]int
	said    string // output of the service
	begun   func() // called when the service starts
	vendor  string // where a package has a definition
	over    bool   // text overrides the package's
	added   []string
	at      string // where the definition is stored
}

func (m *fakeManager) did(call string) error {
	if m.counted == nil {
		m.counted = map[string]int{}
	}
	m.calls = append(m.calls, call)
	m.counted[call]++
	if err := m.failAt[call]; err != nil && m.counted[call] == 1 {
		return err
	}
	return nil
}

func (m *fakeManager) available(context.Context) error { return m.failAt["available"] }
func (m *fakeManager) place() string                   { return orElse(m.at, "fake") }

func (m *fakeManager) packaged() (place string, inEffect bool) {
	return m.vendor, m.vendor != "" && !m.over
}
func (m *fakeManager) additions() []string { return m.added }

func (m *fakeManager) definition(context.Context) (string, bool, error) { return m.text, m.there, nil }

func (m *fakeManager) register(_ context.Context, text string) error {
	err := m.did("register")
	if err == nil || m.failAt["register leaves"] != nil { // a failure may leave something behind
		m.text, m.there = text, true
	}
	return err
}

func (m *fakeManager) unregister(context.Context) error {
	err := m.did("unregister")
	if err == nil {
		m.text, m.there = "", false
	}
	return err
}

func (m *fakeManager) start(context.Context) error {
	if m.begun != nil {
		m.begun()
	}
	err := m.did("start")
	if err == nil {
		m.phase = running
	}
	return err
}

func (m *fakeManager) stop(context.Context) error {
	m.phase = stopped
	return m.did("stop")
}

func (m *fakeManager) restart(context.Context) error {
	err := m.did("restart")
	m.phase = failed
	if err == nil {
		m.phase = running
	}
	return err
}

func (m *fakeManager) state(context.Context) (State, error) {
	return State{Phase: orElse(m.phase, stopped)}, nil
}

func (m *fakeManager) logs(_ context.Context, w io.Writer, _ int, _ bool) error {
	_, err := io.WriteString(w, m.said)
	return err
}

var errTest = errors.New("it broke")

// wantCode fails unless an error has an exit code and contains all parts.
func wantCode(t *testing.T, err error, code int, parts ...string) {
	t.Helper()
	if err == nil || codeOf(err) != code {
		t.Fatalf("error %v, want one with code %d", err, code)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want it to say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q has more than one line", err)
	}
}
