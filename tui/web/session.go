package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"

	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// errForm refuses a form that this page did not write.
var errForm = status.Error(codes.PermissionDenied,
	"this form is not of this session: go back, reload the page and send it again")

// newSecret returns a random value for a cookie.
func newSecret() string {
	var secret [18]byte
	_, _ = rand.Read(secret[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(secret[:])
}

// cookieName differs between servers on one host: browsers keep cookies by host, not by port.
func (s *server) cookieName(r *http.Request) string {
	port := "80"
	if s.Secure(r) {
		port = "443"
	}
	if _, p, err := net.SplitHostPort(r.Host); err == nil {
		port = p
	}
	return "kagzi-" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' {
			return c
		}
		return '-'
	}, port+s.Base)
}

func (s *server) cookieOf(r *http.Request) string {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie sets the session's cookie; without an end it lives as long as the browser.
func (s *server) setCookie(w http.ResponseWriter, r *http.Request, value string, expires time.Time) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(r), Value: value, Path: s.Base + "/", Expires: expires,
		HttpOnly: true, Secure: s.Secure(r), SameSite: http.SameSiteLaxMode})
}

// formToken returns the token of the forms of a session. It follows from the session's own secret, so
// that every server accepts the forms of any other, and nothing is stored.
func formToken(cookie string) string {
	mac := hmac.New(sha256.New, []byte(cookie))
	mac.Write([]byte("kagzi form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// checkForm refuses a form that changes something: on a read-only page, and of another session.
func (p *page) checkForm() error {
	if p.ReadOnly {
		return status.Error(codes.PermissionDenied, "this page is read-only")
	}
	return p.checkToken()
}

// checkToken refuses a form that a page of this session did not write.
func (p *page) checkToken() error {
	if !sameOrigin(p.r) {
		return errForm
	}
	if err := p.r.ParseForm(); err != nil {
		return status.Error(codes.InvalidArgument, "the form cannot be read: "+err.Error())
	}
	if p.cookie == "" || !hmac.Equal([]byte(p.r.PostForm.Get("token")), []byte(formToken(p.cookie))) {
		return errForm
	}
	return nil
}

// sameOrigin reports whether a page of this server sent a form. Browsers say so where they consider
// the connection safe; elsewhere the origin must be that of the host.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true // no browser: the token decides
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// hidden returns the fields that every form needs.
func (p *page) hidden() g.Node {
	return h.Input(h.Type("hidden"), h.Name("token"), h.Value(formToken(p.cookie)))
}

// loginURL returns the login that leads back to a request.
func (s *server) loginURL(r *http.Request) string {
	next := ""
	if r.Method == http.MethodGet {
		next = r.URL.RequestURI()
	}
	return s.Base + "/login" + queryOf("next", next)
}

func (s *server) loginPage(w http.ResponseWriter, r *http.Request) {
	s.showLogin(w, r, http.StatusOK, r.URL.Query().Get("next"), "")
}

// showLogin asks for a key.
func (s *server) showLogin(w http.ResponseWriter, r *http.Request, code int, next, problem string) {
	p := s.newPage(r.Context(), w, r)
	if s.Sessions == nil {
		http.Redirect(w, r, s.Base+"/", http.StatusSeeOther)
		return
	}
	if p.cookie = s.cookieOf(r); p.cookie == "" {
		p.cookie = newSecret()
		s.setCookie(w, r, p.cookie, time.Time{})
	}
	_ = p.write(code, p.bare("Log in", h.Form(h.Class("login"), h.Method("post"), h.Action(s.Base+"/login"),
		h.H1(h.Text("Log in to Kagzi")),
		h.P(h.Text("Enter an API key. The browser keeps a session, never the key.")),
		g.If(problem != "", h.P(h.Class("problem"), h.Role("alert"), text(problem))),
		p.hidden(), h.Input(h.Type("hidden"), h.Name("next"), h.Value(s.within(next))),
		h.Label(h.For("key"), h.Text("API key")),
		h.Input(h.ID("key"), h.Name("key"), h.Type("password"), h.AutoComplete("current-password"), h.Required(),
			h.AutoFocus(), h.Attr("spellcheck", "false")),
		h.Button(h.Class("primary"), h.Type("submit"), h.Text("Log in")),
		h.P(h.Class("dim"), h.Text("An admin makes one: "), h.Code(h.Text("kagzi key create NAME --role operator"))),
	)))
}

// login changes a key into a session. The form's token is that of a cookie from before, so that no
// other site can log a browser in.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	p := s.newPage(r.Context(), w, r)
	if p.cookie = s.cookieOf(r); s.Sessions == nil {
		http.Redirect(w, r, s.Base+"/", http.StatusSeeOther)
		return
	}
	if err := p.checkToken(); err != nil {
		s.showLogin(w, r, http.StatusForbidden, r.PostForm.Get("next"), sentence(err))
		return
	}
	token, expires, err := s.Sessions.Login(r.Context(), strings.TrimSpace(r.PostForm.Get("key")), r)
	if err != nil {
		code, known := httpCodes[status.Code(err)]
		if !known {
			code = http.StatusInternalServerError
		}
		s.showLogin(w, r, code, r.PostForm.Get("next"), sentence(err))
		return
	}
	s.setCookie(w, r, token, expires)
	http.Redirect(w, r, s.within(r.PostForm.Get("next")), http.StatusSeeOther)
}

// logout ends the session.
func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	p := s.newPage(r.Context(), w, r)
	p.cookie = s.cookieOf(r)
	if err := p.checkToken(); err != nil {
		p.fail(err)
		return
	}
	if s.Sessions != nil {
		if err := s.Sessions.Logout(r.Context(), p.cookie); err != nil && status.Code(err) != codes.Unauthenticated {
			p.fail(err)
			return
		}
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(r), Path: s.Base + "/", MaxAge: -1, HttpOnly: true,
		Secure: s.Secure(r), SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, s.Base+"/login", http.StatusSeeOther)
}
