package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/sandbox"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
)

// begin is when the days of the tests begin.
var begin = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// master is a played day that shops are copied from.
var master struct {
	db  *memory.Database
	at  *sandbox.Snapshot
	day *scenario.Day
}

func TestMain(m *testing.M) {
	box := sandbox.New(sandbox.Options{Seed: 1, Begin: begin.Add(-scenario.Running), Version: "0.4.0-demo",
		Open: func(h sandbox.Hooks) engine.Store {
			master.db = memory.New(memoryFor(h))
			return master.db.Open(nil)
		}})
	var err error
	if master.day, err = scenario.Play(box, 1, begin); err != nil {
		panic(err)
	}
	master.at = box.Snapshot()
	os.Exit(m.Run())
}

func memoryFor(h sandbox.Hooks) memory.Options {
	return memory.Options{Now: h.Now, Due: h.Due, Notify: h.Notify, Outcomes: h.Outcomes, Wrote: h.Wrote}
}

// shop is a real server, in memory, with the day of a shop. Its clock stands still.
type shop struct {
	*scenario.Day
	conn grpc.ClientConnInterface
	box  *sandbox.Sandbox
	db   *memory.Database
}

func newShop() *shop {
	w := &shop{}
	w.box = master.at.Open(func(h sandbox.Hooks) engine.Store {
		w.db = master.db.CloneWith(memoryFor(h))
		return w.db.Open(nil)
	})
	w.Day, w.conn = master.day.On(w.box), w.box.Direct()
	return w
}

// browser is a client of a page that keeps cookies and follows no redirects.
type browser struct {
	t       *testing.T
	handler http.Handler
	cookies map[string]string
	header  http.Header
	host    string
}

// visit returns a browser at the page of a shop.
func visit(t *testing.T, w *shop, change func(*Options)) *browser {
	o := Options{API: tui.Over(w.conn), Version: "v1.2.3", Now: w.box.Now}
	if change != nil {
		change(&o)
	}
	return &browser{t: t, handler: Handler(o), cookies: map[string]string{}, header: http.Header{},
		host: "127.0.0.1:50052"}
}

func (b *browser) do(method, address, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, address, strings.NewReader(body))
	r.Host = b.host
	for name, values := range b.header {
		r.Header[name] = values
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookies == nil {
			continue
		}
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

// get returns a page, which must be there.
func (b *browser) get(address string) string {
	b.t.Helper()
	w := b.do("GET", address, "")
	if w.Code != http.StatusOK {
		b.t.Fatalf("GET %s = %d %s", address, w.Code, w.Body)
	}
	return w.Body.String()
}

// post sends a form.
func (b *browser) post(address string, pairs ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.do("POST", address, form.Encode())
}

// hidden returns the value of a hidden field of a page.
func hiddenValue(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("the page has no field %s", name)
	}
	return value
}

// shows fails unless the page has all of the texts.
func shows(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not show %q", text)
		}
	}
}
