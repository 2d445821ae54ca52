package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// flakyModel breaks its second stream off after the first word.
type flakyModel struct {
	stubModel
	calls atomic.Int64
}

func (m *flakyModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.calls.Add(1) == 2 {
		send(w, Message{Text: "It "})
		panic(http.ErrAbortHandler)
	}
	m.stubModel.ServeHTTP(w, r)
}

// answer runs the agent on a model. Connections end with each call: none may be left over in the
// bubble of the test.
func answer(t *testing.T, model http.Handler, weather func(context.Context, string) (string, error)) (text string) {
	t.Helper()
	server := httptest.NewServer(model)
	defer server.Close()
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		agent := &Agent{
			URL:   server.URL,
			HTTP:  &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
			Tools: map[string]func(context.Context, string) (string, error){"weather": weather},
		}
		kagzi.Handle(env.Worker, "answer", agent.Answer)
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "answer", "What is the weather in Berlin?",
			kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if text, err = kagzi.Result[string](t.Context(), run); err != nil {
			t.Fatal(err)
		}
		d, err := run.Describe(t.Context())
		if err != nil || d.Note == "" || !strings.HasPrefix(text, d.Note) {
			t.Errorf("the run's note is %q, %v, want the beginning of the answer", d.Note, err)
		}
	})
	return text
}

// The broken stream parks the run; the code that goes on after it is a replay, in which the first
// call of the model and the tool return what is recorded.
func TestBrokenStreamRepeatsOneCallOnly(t *testing.T) {
	model, looked := &flakyModel{}, 0
	text := answer(t, model, func(_ context.Context, city string) (string, error) {
		looked++
		return "snow in " + city, nil
	})
	if text != "It is snow in Berlin. " {
		t.Errorf("got %q", text)
	}
	if n := model.calls.Load(); n != 3 || looked != 1 {
		t.Errorf("%d calls of the model and %d of the tool, want 3 and 1", n, looked)
	}
}

func TestModelHearsOfAFailedTool(t *testing.T) {
	text := answer(t, stubModel{}, func(context.Context, string) (string, error) {
		return "", kagzi.NonRetryable(errors.New("the window is shut"))
	})
	if text != "It is error: the window is shut. " {
		t.Errorf("got %q", text)
	}
}
