package web

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"google.golang.org/grpc"

	longtest "github.com/kagzi/kagzi/engine/lab/long"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

// pagesOf returns a path for each page.
func pagesOf(w *shop) map[string]string {
	run, schedule := "/n/default/runs/"+w.ID(scenario.Failed), firstID(w, "schedules")
	return map[string]string{
		"overview": "/n/default/", "runs": "/n/default/runs", "runs-failed": "/n/default/runs?q=status:failed+order",
		"runs-wrong": "/n/default/runs?q=status:nope", "run": run, "run-payloads": run + "/payloads",
		"run-events": run + "/events", "run-tree": run + "/tree", "run-step": run + "/step?name=ship",
		"run-diff": run + "/diff", "run-diff-with": run + "/diff?with=" + w.ID(scenario.Overridden),
		"run-timeline": run + "/timeline", "run-steps": run + "/steps",
		"workers": "/n/default/workers", "worker": "/n/default/workers/" + firstID(w, "workers"),
		"queues": "/n/default/queues", "schedules": "/n/default/schedules",
		"schedule":   "/n/default/schedules/" + schedule,
		"namespaces": "/admin/namespaces", "keys": "/admin/keys", "audit": "/admin/audit?ns=default",
		"server":     "/admin/server",
		"ask-retry":  "/n/default/act?do=retry&from=ship&id=" + w.ID(scenario.Failed),
		"ask-cancel": "/n/default/act?do=cancel&id=" + w.ID(scenario.Signalled),
		"ask-start":  "/n/default/act?do=start&type=order&input={}",
		"ask-edit":   "/n/default/act?do=edit-schedule&id=" + schedule,
		"bulk":       "/n/default/bulk?do=cancel&q=type:thumbnail", "missing": "/nothing/here",
		"missing-run": "/n/default/runs/01a1f826-e120-7000-b216-8d6984090000",
	}
}

// firstID returns the id of the first row of a list.
func firstID(w *shop, list string) string {
	page := (&browser{handler: Handler(Options{API: tui.Over(w.conn), Now: w.box.Now}), host: "127.0.0.1"}).do(
		"GET", "/n/default/"+list, "").Body.String()
	return regexp.MustCompile(`data-key="([^"]+)"`).FindStringSubmatch(page)[1]
}

// unstable is what differs between two builds or visits.
var unstable = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`name="(token|request)" value="[^"]*"`), `name="$1" value=""`},
	{regexp.MustCompile(`(page|icon)-[0-9a-f]{12}\.`), "$1-HASH."},
	{regexp.MustCompile(`data-build="[^"]*"`), `data-build=""`},
	{regexp.MustCompile(`(<(tr|li|div|section|main|header|nav|dl|form|table|tbody|h1|h2|svg|rect|` +
		`body|head|p|script|link|input|ol|ul)\b)`), "\n$1"},
}

func TestPagesLookAsRecorded(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	for name, path := range pagesOf(w) {
		text := b.do("GET", path, "").Body.String()
		for _, u := range unstable {
			text = u.pattern.ReplaceAllString(text, u.with)
		}
		file := filepath.Join("testdata", name+".html")
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text+"\n", "\n")); d != "" {
			t.Errorf("%s differs from %s; UPDATE=1 writes it again (-want +got):\n%s", path, file, d)
		}
	}
}

// inspect walks the elements of a page and reports what must not be there: scripts and styles of its own,
// links that leave the base path, elements and attributes that texts could have made, two elements with
// one id, and invisible characters. It returns the links.
func inspect(t *testing.T, base, path, page string) (links []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	scripts, ids := 0, map[string]bool{}
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			if i := strings.IndexFunc(n.Data, hiddenRune); i >= 0 && n.Parent.Data != "textarea" {
				t.Errorf("%s: the text %q has an invisible character", path, n.Data[i:min(i+8, len(n.Data))])
			}
		case html.ElementNode:
			if !slices.Contains(elements, n.Data) {
				t.Errorf("%s: there is an element %q", path, n.Data)
			}
			if n.Data == "script" {
				scripts++
			}
			for _, a := range n.Attr {
				switch {
				case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc":
					t.Errorf("%s: <%s> has the attribute %s", path, n.Data, a.Key)
				case a.Key == "id" && ids[a.Val]:
					t.Errorf("%s: two elements have the id %q", path, a.Val)
				case a.Key == "id":
					ids[a.Val] = true
				case slices.Contains([]string{"href", "src", "action", "data-live", "data-later"}, a.Key):
					local := a.Val == "" || a.Key == "data-live" && !strings.Contains(a.Val, "/")
					if !local && a.Val != "#main" && !strings.HasPrefix(a.Val, base+"/") || strings.HasPrefix(a.Val,
						"//") {
						t.Errorf("%s: <%s %s=%q> leaves the base path", path, n.Data, a.Key, a.Val)
					}
					if n.Data == "a" && a.Key == "href" && strings.HasPrefix(a.Val, base+"/") {
						links = append(links, a.Val)
					}
				}
			}
		}
	}
	if scripts > 1 {
		t.Errorf("%s: there are %d scripts", path, scripts)
	}
	return links
}

func hiddenRune(r rune) bool {
	return unicode.IsControl(r) && r != '\n' || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// elements are those that the page uses.
var elements = strings.Fields(`html aside head meta title link script body a header nav div span button main h1 h2 h3 h4
	p dialog dl dt dd kbd form input label select option textarea details summary table caption thead tbody tr th td
	section ul ol li pre code svg rect text time small b br`)

func TestHostileTextsAreTexts(t *testing.T) {
	w := newShop()
	paths := pagesOf(w)
	corpus := widgettest.Hostile()
	for name, text := range map[string]string{
		"attribute": `" onmouseover="alert(1)" x="`, "single quotes": `' onclick='alert(1)`,
		"closed element": `</textarea></pre></td><img src=x onerror=alert(1)>`,
		"script url":     `javascript:alert(1)`, "comment": `<!--`, "cdata": `]]><svg onload=alert(1)>`,
		"entity":    `&lt;script&gt;&#x3c;`,
		"title end": `</title><script>alert(1)</script>`, "backtick": "`onload=alert(1)", "protocol": "//evil.example/x",
	} {
		corpus[name] = text
	}
	for _, name := range longtest.Share(t, slices.Sorted(maps.Keys(corpus)), 12) {
		text := corpus[name]
		if len(text) > 100_000 || strings.HasPrefix(name, "unseen") && len(name)%2 == 0 {
			text = text[:min(len(text), 20_000)]
		}
		b := visit(t, w, func(o *Options) { o.API = tui.Over(widgettest.Spoil(w.conn, text)) })
		shown := []string{"run", "runs", "run-step", "overview", "schedule", "ask-cancel", "run-tree"}
		if strings.ContainsAny(name, "hq") { // the rest for a part of them
			shown = slices.Sorted(func(yield func(string) bool) {
				for page := range paths {
					if !yield(page) {
						return
					}
				}
			})
		}
		for _, page := range shown {
			inspect(t, "", name+" in "+page, b.do("GET", paths[page], "").Body.String())
		}
		for _, path := range []string{"/n/default/runs?q=", "/n/default/act?do=start&type=", "/n/default/act?do=cancel&reason=x&id=",
			"/admin/audit?subject=", "/login?next=", "/n/default/runs?cols=", "/n/default/runs?page="} {
			inspect(t, "", name+" in "+path, b.do("GET", path+url.QueryEscape(text[:min(len(text), 4000)]), "").Body.String())
		}
	}
}

// counting is a connection that counts calls by their method.
type counting struct {
	grpc.ClientConnInterface
	calls map[string]int
}

func (c *counting) Invoke(ctx context.Context, method string, request, reply any, o ...grpc.CallOption) error {
	c.calls[method[strings.LastIndexByte(method, '/')+1:]]++
	return c.ClientConnInterface.Invoke(ctx, method, request, reply, o...)
}

// reads are the methods that change nothing.
var reads = regexp.MustCompile(`^(Get|List|Explain|Preview|WhoAmI|HealthCheck)`)

func TestAllLinksStayBelowTheBasePathAndChangeNothing(t *testing.T) {
	w := newShop()
	conn := &counting{w.conn, map[string]int{}}
	b := visit(t, w, func(o *Options) { o.Base, o.API = "/kagzi", tui.Over(conn) })
	if to := b.do("GET", "/kagzi", "").Header().Get("Location"); to != "/kagzi/" {
		t.Errorf("/kagzi leads to %q", to)
	}
	queue, seen := []string{b.do("GET", "/kagzi/", "").Header().Get("Location")}, map[string]bool{}
	kinds := map[string]int{} // how many pages of one kind were visited
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		kind := regexp.MustCompile(`[0-9a-f-]{36}|=[^&]*`).ReplaceAllString(path, "")
		if seen[path] || kinds[kind] >= 4 {
			continue
		}
		seen[path] = true
		kinds[kind]++
		answer := b.do("GET", path, "")
		if to := answer.Header().Get("Location"); answer.Code == http.StatusSeeOther && strings.HasPrefix(to, "/kagzi/") {
			queue = append(queue, to)
			continue
		}
		if answer.Code != http.StatusOK {
			t.Errorf("GET %s = %d", path, answer.Code)
			continue
		}
		if strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
			queue = append(queue, inspect(t, "/kagzi", path, answer.Body.String())...)
		}
	}
	if len(kinds) < 30 {
		t.Errorf("only %d kinds of pages were found by their links", len(kinds))
	}
	for method := range conn.calls {
		if !reads.MatchString(method) {
			t.Errorf("a GET called %s", method)
		}
	}
}

func TestAnswersHaveStrictHeaders(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	header := b.do("GET", "/n/default/runs", "").Header()
	csp := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'",
		"base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q has no %q", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("the policy is %q", csp)
	}
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff"} {
		if header.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, header.Get(name), want)
		}
	}
	b.host = "kagzi.example"
	if got := b.do("GET", "/n/default/runs", "").Header().Get("Referrer-Policy"); got != "same-origin" {
		t.Errorf("over plain HTTP to another machine the policy is %q, want same-origin", got)
	}
}

func TestAssetsAreSmallAndKept(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	page := b.get("/n/default/runs")
	names := regexp.MustCompile(`/assets/[a-z0-9.-]+`).FindAllString(page, -1)
	b.header.Set("Accept-Encoding", "gzip")
	size := 0
	for _, name := range names {
		answer := b.do("GET", name, "")
		size += answer.Body.Len()
		if answer.Code != http.StatusOK || !strings.Contains(answer.Header().Get("Cache-Control"), "immutable") ||
			answer.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s = %d %v", name, answer.Code, answer.Header())
		}
	}
	if len(names) != 3 || size > 60<<10 {
		t.Errorf("%d assets have %d bytes", len(names), size)
	}
	if code := b.do("GET", "/assets/page-000000000000.js", "").Code; code != http.StatusNotFound {
		t.Errorf("an unknown asset = %d", code)
	}
}
