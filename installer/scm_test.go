package installer

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeSCM is a Windows service manager in memory. Stopping and deleting take time; a service opened
// elsewhere is only marked for deletion.
type fakeSCM struct {
	calls    []string
	fail     string // the call that fails
	text     string
	there    bool
	watched  bool // opened in a window
	phase    string
	lastExit string
	later    time.Time // when a stop or deletion completes
	crashes  bool      // when started
	service  winService
}

func (m *fakeSCM) did(call string) error {
	m.calls = append(m.calls, call)
	if call == m.fail {
		return errTest
	}
	return nil
}

func (m *fakeSCM) Definition(string) (string, bool, error) {
	gone := !m.later.IsZero() && m.phase == "deleted" && !time.Now().Before(m.later) && !m.watched
	return m.text, m.there && !gone, nil
}

func (m *fakeSCM) Create(s winService) error {
	err := m.did("create")
	m.there, m.phase, m.service = err == nil, stopped, s
	return err
}

func (m *fakeSCM) Configure(s winService, text string) error {
	err := m.did("configure")
	if err == nil {
		m.text, m.service = text, s
	}
	return err
}

func (m *fakeSCM) Delete(string) error {
	m.phase, m.later = "deleted", time.Now().Add(3*time.Second)
	return m.did("delete")
}

func (m *fakeSCM) Start(string) error {
	m.phase, m.later = starting, time.Now().Add(2*time.Second)
	return m.did("start")
}

func (m *fakeSCM) Stop(string) error {
	m.phase, m.later = stopping, time.Now().Add(5*time.Second)
	return m.did("stop")
}

func (m *fakeSCM) Query(string) (State, error) {
	if !time.Now().Before(m.later) {
		switch {
		case m.phase == starting && m.crashes:
			m.phase, m.lastExit = failed, "error 1067"
		case m.phase == starting:
			m.phase = running
		case m.phase == stopping:
			m.phase = stopped
		}
	}
	return State{Phase: m.phase, LastExit: m.lastExit}, nil
}

func windowsDefinition(t *testing.T) string {
	t.Helper()
	text, err := winDefinition(specs()["windows"])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAWindowsServiceIsCreatedOnceAndThenConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeSCM{}
		m := &winManager{name: "kagzi", scm: fake}
		text := windowsDefinition(t)
		for range 2 {
			if err := m.register(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"create", "configure", "configure"}; !slices.Equal(fake.calls, want) {
			t.Errorf("calls = %q, want %q", fake.calls, want)
		}
		if fake.text != text || fake.service.Account != `NT SERVICE\kagzi` || len(fake.service.Recovery) != 3 ||
			!fake.service.RecoverFromBadExits {
			t.Errorf("service = %+v, want what the definition says", fake.service)
		}
	})
}

func TestAWindowsServiceThatCannotBeConfiguredIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeSCM{fail: "configure"}
		m := &winManager{name: "kagzi", scm: fake}
		if err := m.register(t.Context(), windowsDefinition(t)); err == nil {
			t.Fatal("register = nil, want an error")
		}
		if want := []string{"create", "configure", "delete"}; !slices.Equal(fake.calls, want) {
			t.Errorf("calls = %q, want %q", fake.calls, want)
		}
	})
}

func TestAWindowsServiceIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeSCM{there: true, phase: stopped}
		m := &winManager{name: "kagzi", scm: fake}
		begun := time.Now()
		for _, step := range []struct {
			do   func() error
			took time.Duration
			want string
		}{
			{func() error { return m.start(t.Context()) }, 2 * time.Second, running},
			{func() error { return m.start(t.Context()) }, 0, running},
			{func() error { return m.restart(t.Context()) }, 7 * time.Second, running},
			{func() error { return m.stop(t.Context()) }, 5 * time.Second, stopped},
			{func() error { return m.stop(t.Context()) }, 0, stopped},
			{func() error { return m.unregister(t.Context()) }, 3 * time.Second, "deleted"},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took != step.took || fake.phase != step.want {
				t.Errorf("took %v and is %s, want %v and %s", took, fake.phase, step.took, step.want)
			}
			begun = time.Now()
		}
		if want := []string{"start", "stop", "start", "stop", "delete"}; !slices.Equal(fake.calls, want) {
			t.Errorf("calls = %q, want %q", fake.calls, want)
		}
	})
}

func TestAWindowsServiceThatSomebodyLooksAtIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &winManager{name: "kagzi", scm: &fakeSCM{there: true, phase: stopped, watched: true}}
		if err := m.unregister(t.Context()); err == nil || !strings.Contains(err.Error(), "close the Services window") {
			t.Errorf("unregister = %v, want what to close", err)
		}
	})
}

func TestAWindowsServiceThatEndsWhileItStartsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &winManager{name: "kagzi", scm: &fakeSCM{there: true, phase: stopped, crashes: true}}
		if err := m.start(t.Context()); err == nil || !strings.Contains(err.Error(), "error 1067") {
			t.Errorf("start = %v, want how it ended", err)
		}
	})
}
