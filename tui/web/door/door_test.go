package door

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
)

// opened serves a page that says "in" until the test ends.
func opened(t *testing.T) *Door {
	t.Helper()
	d, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- d.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "in "+r.URL.RequestURI())
		}))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return d
}

func ask(t *testing.T, c *http.Client, method, address string, change func(*http.Request)) (int, string,
	*http.Response) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer
}

func TestTheTokenOpensThePageAndLeavesTheAddress(t *testing.T) {
	d := opened(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	plain, _, _ := strings.Cut(d.URL("/n/default/runs"), "?")
	if code, text, _ := ask(t, browser, http.MethodGet, plain, nil); code != http.StatusForbidden {
		t.Errorf("without the token: %d %q, want 403", code, text)
	}
	code, text, answer := ask(t, browser, http.MethodGet, d.URL("/n/default/runs"), nil)
	if code != http.StatusOK || text != "in /n/default/runs" || answer.Request.URL.RawQuery != "" {
		t.Errorf("with the token: %d %q at %s, want the page at an address without the token", code, text, answer.Request.URL)
	}
	if code, text, _ := ask(t, browser, http.MethodGet, plain+"?q=1", nil); text != "in /n/default/runs?q=1" {
		t.Errorf("afterwards: %d %q, want the page", code, text)
	}
	if code, _, _ := ask(t, browser, http.MethodPost, plain, func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}); code != http.StatusForbidden {
		t.Errorf("a form of another site: %d, want 403", code)
	}
}

func TestNobodyElseSeesThePage(t *testing.T) {
	d := opened(t)
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for name, c := range map[string]struct {
		address string
		change  func(*http.Request)
		want    int
	}{
		"a wrong token":  {strings.Replace(d.URL("/"), "token=", "token=x", 1), nil, http.StatusForbidden},
		"an empty token": {"http://" + d.listener.Addr().String() + "/?token=", nil, http.StatusForbidden},
		"the token's own": {"http://" + d.listener.Addr().String() + "/", func(r *http.Request) {
			_, port, _ := strings.Cut(d.listener.Addr().String(), ":")
			r.AddCookie(&http.Cookie{Name: "kagzi-view-" + port, Value: d.token})
		}, http.StatusForbidden},
		"another host": {d.URL("/"), func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"a post":       {d.URL("/"), func(r *http.Request) { r.Method = http.MethodPost }, http.StatusForbidden},
	} {
		code, _, answer := ask(t, stay, http.MethodGet, c.address, c.change)
		if code != c.want || len(answer.Cookies()) > 0 {
			t.Errorf("%s: %d with %d cookies, want %d and none", name, code, len(answer.Cookies()), c.want)
		}
	}
}

func TestARedirectStaysOnThePage(t *testing.T) {
	d := opened(t)
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"//evil.example/", "/\\evil.example/", "/a b"} {
		_, _, answer := ask(t, stay, http.MethodGet, d.URL("/"), func(r *http.Request) { r.URL.Path = path })
		if to := answer.Header.Get("Location"); strings.HasPrefix(to, "//") || !strings.HasPrefix(to, "/") {
			t.Errorf("%q leads to %q, want a path", path, to)
		}
	}
}
