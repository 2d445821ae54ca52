package web

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui/scenario"
)

// logins are sessions in memory, of one key.
type logins struct{ open map[string]bool }

func (l *logins) Login(_ context.Context, key string, _ *http.Request) (string, time.Time, error) {
	if key != "kz_good" {
		return "", time.Time{}, status.Error(codes.Unauthenticated,
			"the key is not known: give one with --api-key-file")
	}
	l.open["session-1"] = true
	return "session-1", begin.Add(time.Hour), nil
}

func (l *logins) Identify(ctx context.Context, token string) (context.Context, error) {
	if !l.open[token] {
		return nil, status.Error(codes.Unauthenticated, "the session is over")
	}
	return ctx, nil
}

func (l *logins) Logout(_ context.Context, token string) error {
	delete(l.open, token)
	return nil
}

// guarded returns a page that asks for a login.
func guarded(t *testing.T, w *shop, base string) (*browser, *logins) {
	l := &logins{open: map[string]bool{}}
	return visit(t, w, func(o *Options) { o.Sessions, o.Base = l, base }), l
}

// logIn enters a key on the login page.
func (b *browser) logIn(base, key, next string) *httptest.ResponseRecorder {
	page := b.get(base + "/login" + queryOf("next", next))
	return b.post(base+"/login", "token", hiddenValue(b.t, page, "token"), "next", hiddenValue(b.t, page, "next"),
		"key", key)
}

func TestALoginLeadsBack(t *testing.T) {
	b, l := guarded(t, newShop(), "/kagzi")
	answer := b.do("GET", "/kagzi/n/default/runs?q=status:failed", "")
	login := answer.Header().Get("Location")
	if answer.Code != http.StatusSeeOther ||
		login != "/kagzi/login?next=%2Fkagzi%2Fn%2Fdefault%2Fruns%3Fq%3Dstatus%3Afailed" {
		t.Fatalf("without a session: %d to %q", answer.Code, login)
	}
	page := b.get(login)
	refused := b.post("/kagzi/login", "token", hiddenValue(t, page, "token"), "key", "kz_bad", "next", hiddenValue(t,
		page, "next"))
	if refused.Code != http.StatusUnauthorized || len(l.open) != 0 {
		t.Errorf("a wrong key: %d", refused.Code)
	}
	shows(t, refused.Body.String(), "the key is not known")
	answer = b.post("/kagzi/login", "token", hiddenValue(t, page, "token"), "key", " kz_good ", "next", hiddenValue(t,
		page, "next"))
	if to := answer.Header().Get("Location"); answer.Code != http.StatusSeeOther ||
		to != "/kagzi/n/default/runs?q=status:failed" {
		t.Fatalf("a good key: %d to %q", answer.Code, to)
	}
	cookie := answer.Header().Get("Set-Cookie")
	for _, want := range []string{"kagzi-50052-kagzi=session-1", "Path=/kagzi/", "HttpOnly", "SameSite=Lax",
		"Expires=Fri, 20 Nov 2026 10:00:00 GMT"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q, want %q", cookie, want)
		}
	}
	if strings.Contains(cookie, "Secure") || strings.Contains(cookie, "kz_good") {
		t.Errorf("the cookie is %q", cookie)
	}
	b.get("/kagzi/n/default/runs")
	page = b.get("/kagzi/n/default/")
	shows(t, page, "Log out")
	if to := b.post("/kagzi/logout", "token", hiddenValue(t, page,
		"token")).Header().Get("Location"); to != "/kagzi/login" || len(l.open) != 0 {
		t.Errorf("a logout leads to %q and leaves %v", to, l.open)
	}
	if code := b.do("GET", "/kagzi/n/default/", "").Code; code != http.StatusSeeOther {
		t.Errorf("after the logout: %d", code)
	}
}

func TestALoginLeadsNowhereElse(t *testing.T) {
	w := newShop()
	for next, want := range map[string]string{
		"/kagzi/n/default/runs?q=a%20b":  "/kagzi/n/default/runs?q=a%20b",
		"https://evil.example/":          "/kagzi/",
		"//evil.example/kagzi/":          "/kagzi/",
		`/\evil.example`:                 "/kagzi/",
		`/kagzi/\evil.example`:           "/kagzi/",
		"/other":                         "/kagzi/",
		"/kagzi/../other":                "/kagzi/",
		"/kagzi/%2e%2e/other":            "/kagzi/",
		"/kagziother/":                   "/kagzi/",
		"javascript:alert(1)":            "/kagzi/",
		"/kagzi/n\r\nSet-Cookie: a=b":    "/kagzi/",
		"http:/kagzi/":                   "/kagzi/",
		"":                               "/kagzi/",
		"/kagzi/n/default/?x=//evil.com": "/kagzi/n/default/?x=//evil.com",
	} {
		b, _ := guarded(t, w, "/kagzi")
		if got := b.logIn("/kagzi", "kz_good", next).Header().Get("Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
	b, _ := guarded(t, w, "")
	if got := b.logIn("", "kz_good", "//evil.example").Header().Get("Location"); got != "/" {
		t.Errorf("without a base path //evil.example leads to %q", got)
	}
}

func TestALoginOfAnotherSiteIsRefused(t *testing.T) {
	b, l := guarded(t, newShop(), "")
	if code := b.post("/login", "key", "kz_good").Code; code != http.StatusForbidden {
		t.Errorf("without a token: %d, want 403", code)
	}
	page := b.get("/login")
	b.header.Set("Sec-Fetch-Site", "cross-site")
	if code := b.post("/login", "key", "kz_good", "token", hiddenValue(t, page,
		"token")).Code; code != http.StatusForbidden {
		t.Errorf("from another site: %d, want 403", code)
	}
	if len(l.open) != 0 {
		t.Error("a session was opened")
	}
}

func TestAFormOfASessionThatIsOverAsksForALogin(t *testing.T) {
	w := newShop()
	b, l := guarded(t, w, "")
	b.logIn("", "kz_good", "")
	page := b.get("/n/default/act?do=cancel&id=" + w.ID(scenario.Signalled))
	delete(l.open, "session-1")
	answer := b.post("/n/default/act", formOf(t, page, "id", w.ID(scenario.Signalled), "act", "1")...)
	if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/login" {
		t.Errorf("the answer is %d to %q, want the login", answer.Code, answer.Header().Get("Location"))
	}
}

func TestTheStreamOfASessionThatIsOverEnds(t *testing.T) {
	b, _ := guarded(t, newShop(), "")
	b.header.Set("Accept", "text/event-stream")
	if code := b.do("GET", "/live?ns=default", "").Code; code != http.StatusUnauthorized {
		t.Errorf("the stream = %d, want 401", code)
	}
}

func TestTheCookieIsSecureWhereTheBrowsersSideIs(t *testing.T) {
	w := newShop()
	b, _ := guarded(t, w, "")
	r := httptest.NewRequest("GET", "https://kagzi.example/login", nil)
	r.TLS = &tls.ConnectionState{}
	answer := httptest.NewRecorder()
	b.handler.ServeHTTP(answer, r)
	if cookie := answer.Header().Get("Set-Cookie"); !strings.Contains(cookie, "; Secure") || !strings.HasPrefix(cookie,
		"kagzi-443=") {
		t.Errorf("the cookie is %q, want kagzi-443, Secure", cookie)
	}
	behind := visit(t, w, func(o *Options) {
		o.Secure = func(r *http.Request) bool { return r.Header.Get("X-Forwarded-Proto") == "https" }
	})
	behind.header.Set("X-Forwarded-Proto", "https")
	if cookie := behind.do("GET", "/n/default/", "").Header().Get("Set-Cookie"); !strings.Contains(cookie, "; Secure") {
		t.Errorf("behind a proxy with TLS the cookie is %q", cookie)
	}
}

func TestTwoServersAcceptTheSameForm(t *testing.T) {
	w := newShop()
	one, l := guarded(t, w, "")
	one.logIn("", "kz_good", "")
	page := one.get("/n/default/act?do=pin&id=" + w.ID(scenario.Failed))
	two := visit(t, w, func(o *Options) { o.Sessions = l })
	two.cookies = one.cookies
	answer := two.post("/n/default/act", formOf(t, page, "id", w.ID(scenario.Failed), "act", "1")...)
	if answer.Code != http.StatusSeeOther || !strings.Contains(answer.Header().Get("Location"), w.ID(scenario.Failed)) {
		t.Errorf("the answer is %d to %q", answer.Code, answer.Header().Get("Location"))
	}
	if u, _ := url.Parse(answer.Header().Get("Location")); u != nil {
		shows(t, two.get(u.String()), "pinned")
	}
}
