package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The page in a real browser: Chromium, one for all tests, with a profile of its own for each.
//
//	KAGZI_TEST_AXE           axe.min.js of axe-core, which finds what keeps people from using a page
//	KAGZI_TEST_SCREENSHOTS   a directory for pictures of the pages; none are made without it

const (
	axeVariable         = "KAGZI_TEST_AXE"
	screenshotsVariable = "KAGZI_TEST_SCREENSHOTS"
	// patience is how long a page may take to show something.
	patience = 20 * time.Second
)

func init() { endBrowser = endChromium }

// chromium is the browser of all tests. It ends with the process.
var chromium struct {
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
}

// startChromium starts the browser, once.
func startChromium(path string) (context.Context, error) {
	c := &chromium
	c.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
			chromedp.Flag("no-sandbox", true)) // the sandbox does not start for root, and these pages are ours
		allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		var endBrowser func()
		c.ctx, endBrowser = chromedp.NewContext(allocator)
		c.end = func() { endBrowser(); endAllocator() }
		c.err = chromedp.Do(c.ctx)
	})
	return c.ctx, c.err
}

// endChromium ends the browser, if it was started.
func endChromium() {
	if chromium.end != nil {
		chromium.end()
	}
}

// tab is a page in the browser. At the end of the test it must have complained of nothing, and must
// have asked no other server for anything.
type tab struct {
	t    *testing.T
	ctx  context.Context
	site string // "http://127.0.0.1:50052"

	mute bool // JavaScript is off

	mu      sync.Mutex
	wrong   []string
	expects []string // parts of complaints that the test expects
}

// profile is a fresh profile of the browser: it shares no cookie with others.
func profile(t *testing.T, site string) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("chromium is needed and not installed")
		}
		t.Skip("SKIPPED: chromium is not installed, so the page is not tried in a browser")
	}
	browser, err := startChromium(path)
	if err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return newTab(t, browser, site, chromedp.WithNewBrowserContext())
}

func newTab(t *testing.T, parent context.Context, site string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(parent, options...)
	p := &tab{t: t, ctx: ctx, site: site}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	// A violation is told even if the page stops listening.
	script := `addEventListener("securitypolicyviolation", e => console.error("CSP " + e.violatedDirective + " " + e.blockedURI))`
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.t.Logf("at the end the page was:\n%.3000s", p.text("body"))
		}
		end()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, complaint := range p.wrong {
			t.Errorf("the page complained: %s", complaint)
		}
	})
	return p
}

// hear notes what no page should do.
func (p *tab) hear(event any) {
	switch e := event.(type) {
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			text, _ := json.Marshal(e.Args)
			p.note("console: " + string(text))
		}
	case *cdpruntime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		p.note("exception: " + string(text))
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Source == "security" || e.Entry.Source == "violation" {
			p.note("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		p.note("dialog: " + e.Message)
	case *network.EventRequestWillBeSent:
		if to := e.Request.URL; !strings.HasPrefix(to, p.site+"/") && !strings.HasPrefix(to, "data:") && to != "about:blank" {
			p.note("request to " + to)
		}
	}
}

func (p *tab) note(complaint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.expects {
		if strings.Contains(complaint, part) {
			return
		}
	}
	p.wrong = append(p.wrong, complaint)
}

// expect allows complaints with a text.
func (p *tab) expect(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expects = append(p.expects, part)
}

// do carries out actions within patience.
func (p *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

func (p *tab) open(path string) {
	p.t.Helper()
	p.do("open "+path, chromedp.Navigate(p.site+path))
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%s) !== null", quote(selector)))
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// fill replaces the text of a field.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%s) !== null", quote(selector)))
	value[bool](p, fmt.Sprintf(`document.querySelector(%s).value = ""; true`, quote(selector)))
	p.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

func (p *tab) keys(keys string) {
	p.t.Helper()
	p.do("press "+keys, chromedp.KeyEvent(keys))
}

// text returns the text that a reader sees in the first element; empty if there is none.
func (p *tab) text(selector string) string {
	return value[string](p, fmt.Sprintf(`(document.querySelector(%s) || {}).innerText || ""`, quote(selector)))
}

// value returns the value of an expression in the page.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Errorf("%.200s: %v", expression, err)
	}
	return v
}

// until waits for a condition in the page, which may have to load first. It is tried again at each
// change of the page.
func (p *tab) until(condition string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	expression := fmt.Sprintf(`new Promise(found => {
		const holds = () => { try { return %s } catch { return false } };
		if (holds()) { found(true); return }
		const seen = new MutationObserver(() => { if (holds()) { seen.disconnect(); found(true) } });
		seen.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		addEventListener("load", () => { if (holds()) found(true) });
	})`, condition)
	if p.mute { // nothing in the page can wait
		expression = fmt.Sprintf(`(() => { try { return Boolean(%s) } catch { return false } })()`, condition)
	}
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression, chromedp.EvalAwaitPromise))
		if err == nil && holds {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatalf("the page does not come to %s; it is at %s and says:\n%.2000s", condition,
				value[string](p, "location.href"), p.text("body"))
		}
		// the page went to another one meanwhile, and that is asked
	}
}

// shows waits for texts in the page.
func (p *tab) shows(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.until(fmt.Sprintf("document.body.innerText.toLowerCase().includes(%s)", quote(strings.ToLower(text))))
	}
}

// at waits for an address.
func (p *tab) at(path string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.readyState === 'complete' && location.href === %s", quote(p.site+path)))
}

// size sets the window.
func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.do("resize", chromedp.EmulateViewport(width, height))
}

// scheme sets the reader's choice of colours: dark or light.
func (p *tab) scheme(name string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// withoutScript turns JavaScript off in the page. Expressions of the test still work.
func (p *tab) withoutScript() {
	p.t.Helper()
	p.mute = true
	_, err := chromedp.Call(p.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	if err != nil {
		p.t.Fatal(err)
	}
}

// picture saves the page as name.png, if somebody wants to look.
func (p *tab) picture(name string) {
	p.t.Helper()
	dir := os.Getenv(screenshotsVariable)
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		p.t.Error(err)
	}
}

// finding is what axe-core says of a page.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML, FailureSummary string
	}
}

// axe reads axe-core; it fails the test without it if CI is set.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("axe-core is needed: npm pack axe-core, and set %s to its axe.min.js", axeVariable)
		}
		t.Skipf("SKIPPED: %s does not name axe.min.js of axe-core, so the page is not searched for barriers", axeVariable)
	}
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// barriers returns what axe-core finds in the page, by all of its rules or by some.
func (p *tab) barriers(script string, rules ...string) []finding {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	world, err := chromedp.Run(ctx, isolated)
	if err != nil {
		p.t.Fatal(err)
	}
	options := `{resultTypes: ["violations"]}`
	if len(rules) > 0 {
		options = fmt.Sprintf(`{resultTypes: ["violations"], runOnly: [%s]}`, quote(strings.Join(rules, ",")))
	}
	inWorld := func(e *cdpruntime.EvaluateParams) { e.ContextID = world }
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script+"; true", inWorld)); err != nil {
		p.t.Fatal(err)
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]finding](
		fmt.Sprintf(`axe.run(document, %s).then(r => r.violations)`, options), inWorld, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// isolated makes a world in the page whose scripts the page does not see, and to which its policy does
// not apply.
func isolated(ctx context.Context, target *chromedp.Target) (cdpruntime.ExecutionContextID, error) {
	frames, err := cdp.Call(ctx, target, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return 0, err
	}
	made, err := cdp.Call(ctx, target, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{
		FrameID: frames.FrameTree.Frame.ID, WorldName: "axe"})
	return made.ExecutionContextID, err
}

// quote writes a text for JavaScript.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // of a string it cannot fail
	return string(quoted)
}

// escaped writes a text for a query.
func escaped(text string) string { return url.QueryEscape(text) }

func TestTheBrowserTellsWhatNoPageMayDo(t *testing.T) {
	a := startAgents(t)
	p := profile(t, "http://"+a.http)
	p.open("/n/default/runs")
	for what, script := range map[string]string{
		"CSP style-src":   `document.body.insertAdjacentHTML("beforeend", "<p style='color: red'>x</p>")`,
		"CSP script-src":  `document.body.append(Object.assign(document.createElement("script"), {text: "1"}))`,
		"CSP connect-src": `fetch("http://127.0.0.2:1/").catch(() => {})`,
		"console: ":       `console.error("lost")`,
		"exception: ":     `setTimeout(() => { throw new Error("lost") })`,
	} {
		value[bool](p, script+"; true")
		p.complained(what)
	}
	_, _ = chromedp.Run(p.ctx, chromedp.Evaluate[bool](`location.href = "http://127.0.0.2:1/"; true`)) // nobody answers
	p.complained("request to http://127.0.0.2:1/")
	p.expect("") // of the page that says that nobody answered
}

// complained waits for a complaint, and takes the complaints so far as expected.
func (p *tab) complained(part string) {
	p.t.Helper()
	for began := time.Now(); ; {
		p.mu.Lock()
		all := strings.Join(p.wrong, "\n")
		if strings.Contains(all, part) {
			p.wrong = nil
		}
		p.mu.Unlock()
		switch {
		case strings.Contains(all, part):
			return
		case time.Since(began) > patience:
			p.t.Fatalf("the browser did not tell of %s, only of:\n%s", part, all)
		}
		_, _ = chromedp.Run(p.ctx, chromedp.Evaluate[int]("1")) // events come with answers
	}
}
