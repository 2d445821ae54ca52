package rest

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/proto/routes"
)

func get(t *testing.T, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	Description().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s = %d", path, w.Code)
	}
	return w
}

func TestTheDescriptionIsServedPlainAndCompressed(t *testing.T) {
	plain := get(t, "/openapi.json").Body.Bytes()
	packed := get(t, "/openapi.json", "Accept-Encoding: gzip, br")
	if packed.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("compressed: %v", packed.Header())
	}
	reader, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || !json.Valid(text) || string(text) != string(plain) {
		t.Errorf("compressed it differs, or is no JSON: %v", err)
	}
}

func TestThePageOfTheAPIHasAllAndLoadsNothing(t *testing.T) {
	answer := get(t, "/openapi")
	text := answer.Body.String()
	for _, r := range routes.All {
		r.Path = strings.Replace(r.Path, "{child.", "{", 1) // names with dots are no parameters there
		if !strings.Contains(text, "<code>"+r.Verb+" "+r.Path+"</code>") {
			t.Errorf("%s %s is missing", r.Verb, r.Path)
		}
	}
	if found := regexp.MustCompile(`(?i)(src|href)="[^#"o][^"]*"|<(script|img|iframe|link|object|form)|@import|url\(`).
		FindString(text); found != "" {
		t.Errorf("the page loads something: %s", found)
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(text, `id="`+link[1]+`"`) {
			t.Errorf("the link #%s leads nowhere", link[1])
		}
	}
	if policy := answer.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") ||
		!strings.Contains(policy, styleHash()) {
		t.Errorf("policy %q", policy)
	}
}
