package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// plainPage is a page that says what the port tells it: who calls, whether that is over TLS, and who is
// logged in. POST /login?key= logs in, POST /logout out.
func plainPage(p Page) http.Handler {
	admin := kagziv1.NewAdminServiceClient(p.Conn)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		cookie, _ := r.Cookie("s")
		switch {
		case r.Method == http.MethodPost && r.URL.Path == p.Base+"/login":
			token, expires, err := p.Sessions.Login(ctx, r.FormValue("key"), r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
			http.SetCookie(w, &http.Cookie{Name: "s", Value: token, Path: p.Base + "/", Expires: expires,
				Secure: p.Secure(r)})
			return
		case cookie != nil && p.Sessions != nil:
			identified, err := p.Sessions.Identify(ctx, cookie.Value)
			if err != nil {
				http.Error(w, "out: "+err.Error(), http.StatusUnauthorized)
				return
			}
			if ctx = identified; r.Method == http.MethodPost {
				if err := p.Sessions.Logout(ctx, cookie.Value); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
				return
			}
		}
		me, err := admin.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
		fmt.Fprintf(w, "%s key=%q logins=%v secure=%v read-only=%v error=%v", r.URL.EscapedPath(), me.GetKey().GetName(),
			p.Sessions != nil, p.Secure(r), p.ReadOnly, err)
	})
}

func withPage(t *testing.T, change func(*Config)) (Config, Backends) {
	t.Helper()
	c, b := testConfig(t), embedded(nil)
	b.Page = plainPage
	if change != nil {
		change(&c)
	}
	return c, b
}

// requested sends a request to a server and returns its answer.
func requested(t *testing.T, method, address, cookie string, headers ...string) (code int, text string,
	answer *http.Response) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: "s", Value: cookie})
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err = http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer
}

// rootKey makes a key at a server without any.
func rootKey(t *testing.T, address string) (admin kagziv1.AdminServiceClient, secret string, as context.Context) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // its calls have ended
	admin = kagziv1.NewAdminServiceClient(conn)
	made, err := admin.CreateKey(t.Context(), &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{
		Name: "root", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN}})
	if err != nil {
		t.Fatal(err)
	}
	return admin, made.Secret, metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+made.Secret)
}

func TestThePageIsServedBelowTheBaseAndLogsInOnceThereAreKeys(t *testing.T) {
	c, b := withPage(t, func(c *Config) { c.HTTPBase = "/kagzi" })
	s := serve(t, c, b)
	if !s.Web || s.Base != "/kagzi" {
		t.Errorf("ready tells %+v, want the page below its base", s.Ready)
	}
	for path, want := range map[string]string{
		"/kagzi/": `/kagzi/ key="" logins=false secure=false`, "/kagzi/n/a%2Fb/runs": `/kagzi/n/a%2Fb/runs key=""`,
		"/kagzi/healthz": "ok", "/healthz": "ok", "/readyz": "ok", "/kagzi/metrics": "kagzi_healthy",
		"/kagzi/v1/whoami": "{}", "/": "nothing has this path", "/v1/whoami": "nothing has this path",
		"/metrics": "nothing has this path",
	} {
		if code, text, _ := requested(t, http.MethodGet, s.HTTP+path, ""); !strings.Contains(text, want) ||
			(code == http.StatusOK) != !strings.HasPrefix(want, "nothing") {
			t.Errorf("%s: %d %.200s, want %s", path, code, text, want)
		}
	}
	_, secret, _ := rootKey(t, s.Client)
	if _, text, _ := requested(t, http.MethodGet, s.HTTP+"/kagzi/", ""); !strings.Contains(text, "logins=true") ||
		!strings.Contains(text, "an API key is needed") {
		t.Errorf("with a key, without a session: %s", text)
	}
	for _, bad := range []string{"", "none", "Bearer " + secret, secret + "\r\nx", secret[:50]} {
		if code, text, answer := requested(t, http.MethodPost, s.HTTP+"/kagzi/login?key="+url.QueryEscape(bad), ""); code != 401 ||
			len(answer.Cookies()) > 0 {
			t.Errorf("login with %.8q…: %d %s, want 401", bad, code, text)
		}
	}
	_, _, answer := requested(t, http.MethodPost, s.HTTP+"/kagzi/login?key="+secret, "")
	if len(answer.Cookies()) != 1 {
		t.Fatalf("login set %d cookies", len(answer.Cookies()))
	}
	cookie := answer.Cookies()[0]
	if cookie.Secure || strings.Contains(cookie.Value, secret) ||
		cookie.Expires.Before(time.Now().Add(13*24*time.Hour)) {
		t.Errorf("the cookie is %v, want one without Secure, without the key, for as long as a session can last", cookie)
	}
	if _, text, _ := requested(t, http.MethodGet, s.HTTP+"/kagzi/", cookie.Value); !strings.Contains(text, `key="root"`) {
		t.Errorf("in the session: %s", text)
	}
	if code, text, _ := requested(t, http.MethodPost, s.HTTP+"/kagzi/logout", cookie.Value); code != http.StatusOK {
		t.Errorf("logout: %d %s", code, text)
	}
	if code, text, _ := requested(t, http.MethodGet, s.HTTP+"/kagzi/", cookie.Value); code != 401 {
		t.Errorf("after logout: %d %s", code, text)
	}
}

func TestASessionOfThePageOutlivesTheServer(t *testing.T) {
	c, b := withPage(t, nil)
	s := serve(t, c, b)
	_, secret, _ := rootKey(t, s.Client)
	_, _, answer := requested(t, http.MethodPost, s.HTTP+"/login?key="+secret, "")
	cookie := answer.Cookies()[0].Value
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	s = serve(t, c, b)
	if _, text, _ := requested(t, http.MethodGet, s.HTTP+"/", cookie); !strings.Contains(text, `key="root"`) {
		t.Errorf("after a restart: %s", text)
	}
}

func TestOnlyATrustedProxyMakesTheCookieSecureAndNamesTheCaller(t *testing.T) {
	for trusted, want := range map[string]bool{"127.0.0.0/8": true, "192.0.2.0/24": false} {
		c, b := withPage(t, func(c *Config) {
			c.TrustedProxies, c.HTTPHosts = []string{trusted}, []string{"kagzi.example"}
		})
		s := serve(t, c, b)
		admin, secret, root := rootKey(t, s.Client)
		_, _, answer := requested(t, http.MethodPost, s.HTTP+"/login?key="+secret, "", "X-Forwarded-Proto: https",
			"X-Forwarded-Host: kagzi.example", "X-Forwarded-For: 198.51.100.7", "Origin: https://kagzi.example")
		if !want {
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("a form of https://kagzi.example by an unknown proxy: %d, want 403", answer.StatusCode)
			}
			_, _, answer = requested(t, http.MethodPost, s.HTTP+"/login?key="+secret, "", "X-Forwarded-Proto: https",
				"X-Forwarded-For: 198.51.100.7")
		}
		if len(answer.Cookies()) != 1 || answer.Cookies()[0].Secure != want {
			t.Errorf("trusting %s, the cookies are %v, want Secure %v", trusted, answer.Cookies(), want)
		}
		events, err := admin.ListAuditEvents(root, &kagziv1.ListAuditEventsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if e := events.Events[0]; e.Method != "CreateSession" || strings.HasPrefix(e.Peer, "198.51.100.7:") != want {
			t.Errorf("trusting %s, the audit names %s by %s, want the browser's address: %v", trusted, e.Method, e.Peer, want)
		}
	}
}

func TestThePageCanBeOffOrReadOnly(t *testing.T) {
	c, b := withPage(t, func(c *Config) { c.Web = false })
	s := serve(t, c, b)
	if code, _, _ := requested(t, http.MethodGet, s.HTTP+"/", ""); code != http.StatusNotFound || s.Web {
		t.Errorf("without the page: %d, and ready says web: %v", code, s.Web)
	}
	c, b = withPage(t, func(c *Config) { c.WebReadOnly = true })
	s = serve(t, c, b)
	if _, text, _ := requested(t, http.MethodGet, s.HTTP+"/", ""); !strings.Contains(text, "read-only=true") {
		t.Errorf("read-only: %s", text)
	}
}

func TestTheStartTellsWhereThePageIs(t *testing.T) {
	for want, r := range map[string]Ready{
		"  web       http://127.0.0.1:50052/\n":        {HTTP: "127.0.0.1:50052", Web: true},
		"  web       https://127.0.0.1:50052/kagzi/\n": {HTTP: "127.0.0.1:50052", Web: true, HTTPS: true, Base: "/kagzi"},
		"  http      http://127.0.0.1:50052/openapi\n": {HTTP: "127.0.0.1:50052"},
		"  next      ": {},
	} {
		var out bytes.Buffer
		announce(&out, r)
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "  web ") != r.Web {
			t.Errorf("of %+v it tells:\n%swant %s", r, &out, want)
		}
	}
}

func TestNeitherKeyNorSessionIsInTheLogOfThePage(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	c, b := withPage(t, nil)
	c.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := serve(t, c, b)
	_, secret, _ := rootKey(t, s.Client)
	_, _, answer := requested(t, http.MethodPost, s.HTTP+"/login?key="+secret, "")
	cookie := answer.Cookies()[0].Value
	requested(t, http.MethodPost, s.HTTP+"/logout", cookie)
	requested(t, http.MethodGet, s.HTTP+"/", cookie)
	requested(t, http.MethodPost, s.HTTP+"/login?key="+secret[:len(secret)-1], "")
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, canary := range []string{strings.Split(secret, "_")[3], strings.Split(cookie, "_")[2]} {
		if strings.Contains(log.String(), canary) {
			t.Errorf("the log holds %.8s…", canary)
		}
	}
	if !strings.Contains(log.String(), "call refused") {
		t.Error("the log tells nothing of refused calls: it was not kept")
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
